//! What the isolate's thread knows: its handles, and the call that runs on it now.
//!
//! Invariant: no borrow of these cells is held while V8 is entered, because a getter, a `toJSON` or a proxy may come back here.
//! One call at a time per thread; nested calls run on other threads.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use greenroom_boundary::isolate::{ContextOps, Limits, OpDecl};

use crate::control::{CallControl, KillReason};
use crate::debugger;
use crate::handles::{Handle, Handles};
use crate::plan::Plans;
use crate::protocol::{self, HostSender, OpId, OpOutcome, ToHost, ToIsolate};
use crate::spaces::Spaces;

thread_local! {
    /// The call that runs on this thread now.
    static ACTIVE: RefCell<Option<Rc<ActiveCall>>> = const { RefCell::new(None) };
    /// Whether a script has asked the host for anything since somebody looked.
    static TOUCHED: Cell<bool> = const { Cell::new(false) };
}

/// The call that runs on this thread now; only host functions ask, so asking is noted.
pub(crate) fn active() -> Option<Rc<ActiveCall>> {
    TOUCHED.set(true);
    ACTIVE.with_borrow(Clone::clone)
}

/// Whether the call that runs on this thread has been stopped: V8 forgets a stop once it has unwound a script, and the next one
/// must not begin.
pub(crate) fn is_stopped() -> bool {
    ACTIVE.with_borrow(|call| call.as_ref().is_some_and(|call| call.control.is_killed()))
}

/// The kill switch of the call that runs on this thread now.
pub(crate) fn control() -> Option<Arc<CallControl>> {
    ACTIVE.with_borrow(|call| call.as_ref().map(|call| Arc::clone(&call.control)))
}

/// Says which call runs on this thread now.
pub(crate) fn set_active(call: Option<Rc<ActiveCall>>) {
    // The old one is dropped outside of the cell's borrow.
    drop(ACTIVE.replace(call));
}

/// Whether a script has asked the host for anything since the last question.
pub(crate) fn take_touched() -> bool {
    TOUCHED.replace(false)
}

/// An operation that the host works on.
#[derive(Default)]
pub(crate) struct PendingOp {
    pub(crate) resolver: Option<v8::Global<v8::PromiseResolver>>,
    pub(crate) callback: Option<v8::Global<v8::Function>>,
    /// What the callback threw; becomes the `cause` of the operation's error.
    pub(crate) thrown: Option<v8::Global<v8::Value>>,
}

/// An operation that ended while somebody waits for it on the stack.
pub(crate) struct CompletedOp {
    pub(crate) outcome: OpOutcome,
    pub(crate) thrown: Option<v8::Global<v8::Value>>,
}

/// The call that runs now.
pub(crate) struct ActiveCall {
    pub(crate) ops: Arc<dyn ContextOps>,
    pub(crate) host: HostSender,
    pub(crate) mailbox: Receiver<ToIsolate>,
    pub(crate) control: Arc<CallControl>,
    pub(crate) limits: Limits,
    pub(crate) handle: Handle,
    pub(crate) state: Rc<ThreadState>,
    pub(crate) nudge: v8::Global<v8::Function>,
    /// The constructors of `ctx` objects, by space.
    pub(crate) constructors: v8::Global<v8::Array>,
    pub(crate) without: v8::Global<v8::Function>,
    pub(crate) queue: Rc<v8::MicrotaskQueueHandle>,
    /// The spaces that this call does not have.
    pub(crate) absent: Vec<usize>,
    /// Bytes handed to the host so far.
    pub(crate) output_bytes: Cell<usize>,
    pub(crate) next_op: Cell<OpId>,
    pub(crate) pending: RefCell<BTreeMap<OpId, PendingOp>>,
    pub(crate) completed: RefCell<BTreeMap<OpId, CompletedOp>>,
    /// The error thrown because a value was too large, to know it again.
    pub(crate) too_large: RefCell<Option<v8::Global<v8::Value>>>,
}

impl ActiveCall {
    /// Number for the next operation.
    pub(crate) fn new_op(&self, pending: PendingOp) -> OpId {
        let id = self.next_op.get();
        self.next_op.set(id + 1);
        self.pending.borrow_mut().insert(id, pending);
        id
    }

    /// Waits for the next message; `None` when the call has been stopped.
    pub(crate) fn receive(&self) -> Option<ToIsolate> {
        self.host.send(ToHost::Parked);
        loop {
            match protocol::receive(&self.mailbox) {
                Some(ToIsolate::Look) => debugger::look(),
                other => return other.filter(|message| !matches!(message, ToIsolate::Killed)),
            }
        }
    }

    /// Counts text handed to the host; over the limit the call is stopped.
    pub(crate) fn count_output(&self, bytes: usize) {
        let sum = self.output_bytes.get().saturating_add(bytes);
        self.output_bytes.set(sum);
        if sum > self.limits.output_bytes {
            self.control.kill(KillReason::Output);
        }
    }
}

/// A rejected promise that nobody handles yet.
pub(crate) struct Rejection {
    pub(crate) promise: v8::Global<v8::Promise>,
    pub(crate) value: v8::Global<v8::Value>,
}

/// The state of one isolate, in a slot of it.
pub(crate) struct ThreadState {
    pub(crate) table: &'static [OpDecl],
    pub(crate) spaces: Arc<Spaces>,
    pub(crate) handles: RefCell<Handles>,
    pub(crate) rejections: RefCell<Vec<Rejection>>,
    pub(crate) plans: RefCell<Plans>,
    /// What stands before a file's own code in scripts made of it, in UTF-16 units by V8's id of the script.
    pub(crate) prefixes: RefCell<BTreeMap<String, u32>>,
    /// The names that the global object of a fresh context has.
    pub(crate) global_names: RefCell<Option<Rc<BTreeSet<String>>>>,
}

impl ThreadState {
    pub(crate) fn new(table: &'static [OpDecl], spaces: Arc<Spaces>) -> Rc<Self> {
        Rc::new(Self {
            table,
            spaces,
            handles: RefCell::default(),
            rejections: RefCell::default(),
            plans: RefCell::default(),
            prefixes: RefCell::default(),
            global_names: RefCell::default(),
        })
    }
}
