//! What the isolate's thread knows: its handles, and the call that runs on it now.
//!
//! Invariant: no borrow of these cells is held while V8 is entered, because a getter, a `toJSON` or a proxy may come back here.
//! One call at a time per isolate; nested calls run on other threads.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use greenroom_boundary::isolate::{ContextOps, Limits, OpDecl};

use crate::control::CallControl;
use crate::handles::{Handle, Handles};
use crate::plan::Plans;
use crate::protocol::{HostSender, OpId, OpOutcome, ToHost, ToIsolate};

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
    pub(crate) nudge: v8::Global<v8::Function>,
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
        match self.mailbox.recv() {
            Ok(ToIsolate::Killed) | Err(_) => None,
            Ok(message) => Some(message),
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
    pub(crate) handles: RefCell<Handles>,
    pub(crate) call: RefCell<Option<Rc<ActiveCall>>>,
    pub(crate) rejections: RefCell<Vec<Rejection>>,
    pub(crate) class: RefCell<Option<v8::Global<v8::ObjectTemplate>>>,
    pub(crate) plans: RefCell<Plans>,
}

impl ThreadState {
    pub(crate) fn new(table: &'static [OpDecl]) -> Rc<Self> {
        Rc::new(Self {
            table,
            handles: RefCell::default(),
            call: RefCell::default(),
            rejections: RefCell::default(),
            class: RefCell::default(),
            plans: RefCell::default(),
        })
    }

    /// The state of the isolate that this scope is in.
    pub(crate) fn of(scope: &v8::PinScope<'_, '_>) -> Option<Rc<Self>> {
        scope.get_slot::<Rc<Self>>().cloned()
    }

    /// The call that runs now.
    pub(crate) fn active(&self) -> Option<Rc<ActiveCall>> {
        self.call.borrow().clone()
    }
}
