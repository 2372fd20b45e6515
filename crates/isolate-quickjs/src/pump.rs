//! The host's side of a call: runs its operations, watches its deadline and its caller, and waits for its thread.
//!
//! Invariant: an operation starts, runs and is dropped on the host's runtime; when the call is over or its future is
//! dropped, none is left. Handing over strictly, the runtime's thread waits whenever the script's thread has something to
//! do. A thread that does not stop when it is killed, lost in a native loop that never polls, is left behind after a grace.
//! Deliberately no engine here.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{AbortHandle, Aborted, abortable};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use greenroom_boundary::isolate::{CallValue, Callback, CallbackVerdict, ContextOps, IsolateError};
use greenroom_boundary::{BoxFuture, CancellationToken, RawJson};
use tokio::sync::oneshot;

use crate::link::{Kill, OpResult, Shared, ToHost, ToThread};

/// How long a thread may go on after its limit; measured in real time, and long, for the machine may be busy.
const GRACE: Duration = Duration::from_secs(5);
/// How much longer than its limit on computing a thread may take for it, on a busy machine.
const CPU_SHARE: u32 = 8;

/// The host's end of the thread's messages.
pub(crate) enum FromThread {
    Strict(mpsc::Receiver<ToHost>),
    Concurrent(tokio::sync::mpsc::UnboundedReceiver<ToHost>),
}

/// An operation under way; nothing comes of one that was dropped.
type Running = BoxFuture<'static, (u64, Result<OpResult, Aborted>)>;

/// A call under way, as a future.
pub(crate) struct Pump {
    shared: Arc<Shared>,
    ctx: Arc<dyn ContextOps>,
    to_thread: mpsc::Sender<ToThread>,
    from_thread: FromThread,
    ops: FuturesUnordered<Running>,
    /// How to drop an operation.
    handles: BTreeMap<u64, AbortHandle>,
    cancelled: BoxFuture<'static, ()>,
    deadline: BoxFuture<'static, ()>,
    /// Once killed: when the thread is left behind.
    grace: Option<BoxFuture<'static, ()>>,
    waits_at: Option<u64>,
    is_killed: bool,
}

impl Pump {
    pub(crate) fn new(
        shared: Arc<Shared>,
        ctx: Arc<dyn ContextOps>,
        to_thread: mpsc::Sender<ToThread>,
        from_thread: FromThread,
        cancel: &CancellationToken,
    ) -> Self {
        let deadline = ctx.wall_deadline(shared.limits.wall);
        let cancelled = cancel.clone().cancelled_owned().boxed();
        let (ops, handles) = (FuturesUnordered::new(), BTreeMap::new());
        Self {
            shared,
            ctx,
            to_thread,
            from_thread,
            ops,
            handles,
            cancelled,
            deadline,
            grace: None,
            waits_at: None,
            is_killed: false,
        }
    }

    /// Whether the thread has something to do.
    fn thread_is_busy(&self) -> bool {
        self.waits_at != Some(self.shared.sent())
    }

    /// The thread's next message. Handing over strictly, it is waited for while the thread is busy.
    fn poll_thread(&mut self, cx: &mut Context<'_>) -> Poll<Option<ToHost>> {
        match &mut self.from_thread {
            FromThread::Concurrent(receiver) => receiver.poll_recv(cx),
            FromThread::Strict(receiver) if self.waits_at != Some(self.shared.sent()) => {
                let patience = self.shared.limits.cpu.saturating_mul(CPU_SHARE).saturating_add(GRACE);
                Poll::Ready(match receiver.recv_timeout(patience) {
                    Ok(message) => Some(message),
                    Err(mpsc::RecvTimeoutError::Disconnected) => None,
                    Err(mpsc::RecvTimeoutError::Timeout) => {
                        self.shared.kill(Kill::Cpu);
                        self.shared.kill_error().map(|error| ToHost::Finished(Err(error)))
                    }
                })
            }
            FromThread::Strict(_) => Poll::Pending,
        }
    }

    /// The next operation that ended. While the script computes they stand still: what it sees never depends on how long that takes.
    fn poll_ops(&mut self, cx: &mut Context<'_>) -> Poll<Option<(u64, Result<OpResult, Aborted>)>> {
        if self.thread_is_busy() { Poll::Pending } else { self.ops.poll_next_unpin(cx) }
    }

    fn take(&mut self, message: ToHost) -> Option<Result<CallValue, IsolateError>> {
        match message {
            ToHost::Finished(result) => return Some(result),
            ToHost::Waits { taken } => self.waits_at = Some(taken),
            ToHost::Start { id, op, args, has_callback } if !self.is_killed => {
                let callback = has_callback.then(|| {
                    let (shared, to_thread) = (Arc::clone(&self.shared), self.to_thread.clone());
                    Arc::new(ScriptCallback { shared, to_thread, id }) as Arc<dyn Callback>
                });
                let (running, handle) = abortable(self.ctx.start(op, args, callback));
                self.ops.push(running.map(move |result| (id, result)).boxed());
                self.handles.insert(id, handle);
            }
            ToHost::Start { .. } => {}
            ToHost::Cancel { id } => {
                if let Some(handle) = self.handles.remove(&id) {
                    handle.abort();
                }
            }
        }
        None
    }

    fn kill(&mut self, why: Kill) {
        self.is_killed = true;
        self.shared.kill(why);
        self.ops.clear();
        self.shared.send(&self.to_thread, ToThread::Kill);
        self.grace = Some(self.ctx.wall_deadline(GRACE));
    }
}

impl Future for Pump {
    type Output = Result<CallValue, IsolateError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let pump = &mut *self;
        pump.shared.waker.register(cx.waker());
        loop {
            while let Poll::Ready(message) = pump.poll_thread(cx) {
                let Some(message) = message else {
                    let message = "the script's thread ended; report this with the script".to_owned();
                    return Poll::Ready(Err(IsolateError::Engine { message }));
                };
                if let Some(result) = pump.take(message) {
                    pump.ops.clear();
                    return Poll::Ready(result);
                }
            }
            if pump.is_killed {
                let Some(grace) = &mut pump.grace else { return Poll::Pending };
                return grace.poll_unpin(cx).map(|()| Err(pump.shared.kill_error().unwrap_or(IsolateError::Cancelled)));
            }
            if pump.cancelled.poll_unpin(cx).is_ready() {
                pump.kill(Kill::Cancelled);
            } else if pump.deadline.poll_unpin(cx).is_ready() {
                pump.kill(Kill::Wall);
            } else if let Poll::Ready(Some((id, result))) = pump.poll_ops(cx) {
                pump.handles.remove(&id);
                if let Ok(result) = result {
                    pump.shared.send(&pump.to_thread, ToThread::Done { id, result });
                }
            } else if !(matches!(pump.from_thread, FromThread::Strict(_)) && pump.thread_is_busy()) {
                return Poll::Pending;
            }
        }
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.shared.end();
    }
}

/// The callback of an operation, run on the script's thread.
struct ScriptCallback {
    shared: Arc<Shared>,
    to_thread: mpsc::Sender<ToThread>,
    id: u64,
}

#[async_trait]
impl Callback for ScriptCallback {
    async fn call(&self, args: Vec<RawJson>) -> CallbackVerdict {
        let (reply, verdict) = oneshot::channel();
        self.shared.send(&self.to_thread, ToThread::Callback { id: self.id, args, reply });
        // A thread that ended meanwhile wants no more.
        verdict.await.unwrap_or(CallbackVerdict::Stop)
    }
}
