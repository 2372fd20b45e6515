//! What a call's thread and the host's runtime say to each other.
//!
//! Invariant: a call is killed once, for one reason; from then on the thread runs nothing of the script. Each message to the
//! thread is counted, so that the host knows whether the thread has seen it and waits. Deliberately no engine here.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use futures::task::AtomicWaker;
use greenroom_boundary::RawJson;
use greenroom_boundary::isolate::{
    CallValue, CallbackVerdict, ContextOps, IsolateCounters, IsolateError, Limits, OpArgs, OpError, OpIndex,
};
use tokio::sync::oneshot;

use crate::session::CpuMeter;

/// What an operation answered.
pub(crate) type OpResult = Result<Option<RawJson>, OpError>;

/// From the thread to the host.
pub(crate) enum ToHost {
    /// Drop an operation; nobody waits for it any more.
    Cancel { id: u64 },
    /// Start an operation.
    Start { id: u64, op: OpIndex, args: OpArgs, has_callback: bool },
    /// The thread waits, having taken this many messages.
    Waits { taken: u64 },
    /// The call is over.
    Finished(Result<CallValue, IsolateError>),
}

/// From the host to the thread.
pub(crate) enum ToThread {
    /// An operation ended.
    Done { id: u64, result: OpResult },
    /// Run the callback of an operation.
    Callback { id: u64, args: Vec<RawJson>, reply: oneshot::Sender<CallbackVerdict> },
    /// Stop; the reason is in [`Shared`].
    Kill,
}

/// The thread's end towards the host.
pub(crate) enum HostSender {
    /// The host's thread waits for it.
    Strict(mpsc::Sender<ToHost>),
    /// The host's runtime polls it.
    Concurrent(tokio::sync::mpsc::UnboundedSender<ToHost>),
}

impl HostSender {
    /// Sends; a host that has gone does not want it.
    pub(crate) fn send(&self, message: ToHost) {
        match self {
            Self::Strict(sender) => drop(sender.send(message)),
            Self::Concurrent(sender) => drop(sender.send(message)),
        }
    }
}

/// Why a call is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kill {
    Cpu = 1,
    Wall,
    Cancelled,
    Value,
    Heap,
    Output,
    Pending,
    Callback,
}

/// What an engine has alive.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    active: AtomicUsize,
    handles: AtomicUsize,
    finished: AtomicU64,
}

impl Counters {
    pub(crate) fn read(&self) -> IsolateCounters {
        IsolateCounters {
            active_calls: self.active.load(Ordering::SeqCst),
            live_handles: self.handles.load(Ordering::SeqCst),
            finished_calls: self.finished.load(Ordering::SeqCst),
        }
    }
}

/// What both sides of a call see.
pub(crate) struct Shared {
    pub(crate) limits: Limits,
    counters: Arc<Counters>,
    kill: AtomicU8,
    has_handle: AtomicBool,
    sent: AtomicU64,
    /// Wakes the host's side.
    pub(crate) waker: AtomicWaker,
}

impl Shared {
    /// Counts a call as begun.
    pub(crate) fn begin(limits: Limits, counters: &Arc<Counters>, has_handle: bool) -> Arc<Self> {
        counters.active.fetch_add(1, Ordering::SeqCst);
        counters.handles.fetch_add(usize::from(has_handle), Ordering::SeqCst);
        Arc::new(Self {
            limits,
            counters: Arc::clone(counters),
            kill: AtomicU8::new(0),
            has_handle: AtomicBool::new(has_handle),
            sent: AtomicU64::new(0),
            waker: AtomicWaker::new(),
        })
    }

    /// Counts the call as ended.
    pub(crate) fn end(&self) {
        self.kill(Kill::Cancelled);
        self.release();
        self.counters.active.fetch_sub(1, Ordering::SeqCst);
        self.counters.finished.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts `ctx` as released, once.
    pub(crate) fn release(&self) {
        if self.has_handle.swap(false, Ordering::SeqCst) {
            self.counters.handles.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Kills the call, if it is not yet.
    pub(crate) fn kill(&self, why: Kill) {
        let _ = self.kill.compare_exchange(0, why as u8, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Why the call was killed.
    pub(crate) fn killed(&self) -> Option<Kill> {
        let kill = self.kill.load(Ordering::SeqCst);
        let all =
            [Kill::Cpu, Kill::Wall, Kill::Cancelled, Kill::Value, Kill::Heap, Kill::Output, Kill::Pending, Kill::Callback];
        all.into_iter().find(|why| *why as u8 == kill)
    }

    /// The same as the caller's error.
    pub(crate) fn kill_error(&self) -> Option<IsolateError> {
        let ms = |limit: std::time::Duration| u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        Some(match self.killed()? {
            Kill::Cpu => IsolateError::CpuLimit { limit_ms: ms(self.limits.cpu) },
            Kill::Wall => IsolateError::WallLimit { limit_ms: ms(self.limits.wall) },
            Kill::Cancelled => IsolateError::Cancelled,
            Kill::Heap => IsolateError::HeapLimit { limit_bytes: self.limits.heap_bytes },
            Kill::Value => IsolateError::ValueLimit { limit_bytes: self.limits.value_bytes },
            Kill::Output => IsolateError::OutputLimit { limit_bytes: self.limits.output_bytes },
            Kill::Pending => IsolateError::PendingLimit { limit: self.limits.pending_ops },
            Kill::Callback => IsolateError::CallbackLimit { limit_ms: ms(self.limits.callback_cpu) },
        })
    }

    /// Sends to the thread.
    pub(crate) fn send(&self, thread: &mpsc::Sender<ToThread>, message: ToThread) {
        self.sent.fetch_add(1, Ordering::SeqCst);
        drop(thread.send(message));
        self.waker.wake();
    }

    /// How many messages went to the thread.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::SeqCst)
    }
}

/// The thread's end of a call.
pub(crate) struct Link {
    pub(crate) shared: Arc<Shared>,
    pub(crate) ops: Arc<dyn ContextOps>,
    to_host: HostSender,
    from_host: mpsc::Receiver<ToThread>,
    stash: RefCell<VecDeque<ToThread>>,
    taken: Cell<u64>,
    started: Cell<u64>,
    twins: RefCell<Vec<u64>>,
    cancelled: RefCell<BTreeSet<u64>>,
    meter: OnceCell<Rc<CpuMeter>>,
    under_way: Cell<usize>,
    output_bytes: Cell<usize>,
}

impl Link {
    pub(crate) fn new(
        shared: Arc<Shared>,
        ops: Arc<dyn ContextOps>,
        to_host: HostSender,
        from_host: mpsc::Receiver<ToThread>,
    ) -> Self {
        Self {
            shared,
            ops,
            to_host,
            from_host,
            stash: RefCell::default(),
            taken: Cell::new(0),
            started: Cell::new(0),
            twins: RefCell::default(),
            cancelled: RefCell::default(),
            meter: OnceCell::new(),
            under_way: Cell::new(0),
            output_bytes: Cell::new(0),
        }
    }

    /// What this call may compute; the host's functions look at it too, for the engine polls too seldom for a script whose
    /// every turn is dear.
    pub(crate) fn metered(&self, meter: &Rc<CpuMeter>) {
        let _ = self.meter.set(Rc::clone(meter));
    }

    /// Whether the call is killed, or has now computed too long.
    pub(crate) fn is_over(&self) -> bool {
        if let Some(why) = self.meter.get().and_then(|meter| meter.over()) {
            self.shared.kill(why);
        }
        self.shared.killed().is_some()
    }

    /// Counts text handed to the host; over the limit the call is killed.
    pub(crate) fn count_output(&self, bytes: usize) {
        let sum = self.output_bytes.get().saturating_add(bytes);
        self.output_bytes.set(sum);
        if sum > self.shared.limits.output_bytes {
            self.shared.kill(Kill::Output);
        }
    }

    /// Counts one more operation under way; over the limit the call is killed.
    pub(crate) fn count_start(&self) {
        self.under_way.set(self.under_way.get() + 1);
        if self.under_way.get() > self.shared.limits.pending_ops {
            self.shared.kill(Kill::Pending);
        }
    }

    /// What this call computes, if it is measured yet.
    pub(crate) fn meter(&self) -> Option<&CpuMeter> {
        self.meter.get().map(|meter| &**meter)
    }

    /// Asks the host to start an operation; its id.
    pub(crate) fn start(&self, op: OpIndex, args: OpArgs, has_callback: bool) -> u64 {
        let id = self.started.get();
        self.started.set(id + 1);
        self.to_host.send(ToHost::Start { id, op, args, has_callback });
        id
    }

    /// The operation is a promise's; its messages are for [`Link::next`].
    pub(crate) fn is_twin(&self, id: u64) {
        self.twins.borrow_mut().push(id);
    }

    /// Drops the operation of a promise, its answer too if that is here already.
    pub(crate) fn cancel(&self, id: u64) {
        self.twins.borrow_mut().retain(|twin| *twin != id);
        let mut stash = self.stash.borrow_mut();
        let is_answer = |message: &ToThread| matches!(message, ToThread::Done { id: done, .. } if *done == id);
        if let Some(at) = stash.iter().position(is_answer) {
            stash.remove(at);
            return;
        }
        self.under_way.set(self.under_way.get().saturating_sub(1));
        self.cancelled.borrow_mut().insert(id);
        self.to_host.send(ToHost::Cancel { id });
    }

    /// Whether a promise waits for an operation.
    pub(crate) fn has_twins(&self) -> bool {
        !self.twins.borrow().is_empty()
    }

    /// The next message for the awaited operation or for callbacks of awaited ones; `None` once killed.
    pub(crate) fn next_for(&self, id: u64) -> Option<ToThread> {
        let wanted = |message: &ToThread| match message {
            ToThread::Done { id: done, .. } => *done == id,
            ToThread::Callback { id, .. } => !self.twins.borrow().contains(id),
            ToThread::Kill => true,
        };
        loop {
            let stashed = self.stash.borrow().iter().position(&wanted);
            if let Some(message) = stashed.and_then(|at| self.stash.borrow_mut().remove(at)) {
                return Some(message);
            }
            let message = self.receive()?;
            self.stash.borrow_mut().push_back(message);
        }
    }

    /// The next message for a promise; `None` once killed.
    pub(crate) fn next(&self) -> Option<ToThread> {
        let stashed = self.stash.borrow_mut().pop_front();
        let message = if stashed.is_some() { stashed } else { self.receive() };
        if let Some(ToThread::Done { id, .. }) = &message {
            self.twins.borrow_mut().retain(|twin| twin != id);
        }
        message
    }

    /// Waits for the host.
    fn receive(&self) -> Option<ToThread> {
        if self.shared.killed().is_some() {
            return None;
        }
        let message = loop {
            self.to_host.send(ToHost::Waits { taken: self.taken.get() });
            let message = self.from_host.recv();
            self.taken.set(self.taken.get() + 1);
            match &message {
                // It ended while it was dropped.
                Ok(ToThread::Done { id, .. }) if self.cancelled.borrow_mut().remove(id) => {}
                _ => break message,
            }
        };
        if matches!(message, Ok(ToThread::Done { .. })) {
            self.under_way.set(self.under_way.get().saturating_sub(1));
        }
        match message {
            Ok(ToThread::Kill) | Err(_) => {
                self.shared.kill(Kill::Cancelled);
                None
            }
            Ok(message) => self.shared.killed().is_none().then_some(message),
        }
    }

    /// Lets go of the host's side, and then tells the host that the call is over.
    pub(crate) fn finish(self, result: Result<CallValue, IsolateError>) {
        let Self { to_host, ops, .. } = self;
        drop(ops);
        to_host.send(ToHost::Finished(result));
    }

    /// Tells the host that the call is over.
    pub(crate) fn tell(&self, result: Result<CallValue, IsolateError>) {
        self.to_host.send(ToHost::Finished(result));
    }
}
