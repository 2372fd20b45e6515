//! The host's side of one call: starts operations, passes events on, and takes turns with the isolate's thread.
//!
//! Invariant: one event at a time goes to the script, and the next only after it waits again, in both hand-off modes; they differ only in
//! how the host waits while the script computes. When the pump is dropped, its operations are cancelled and the script is stopped.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::Sender;

use async_trait::async_trait;
use futures::future::{AbortHandle, Aborted, abortable};
use futures::stream::{FuturesUnordered, StreamExt};
use greenroom_boundary::isolate::{Callback, CallbackVerdict, ContextOps, HandOff, IsolateError, Limits, OpArgs, OpIndex};
use greenroom_boundary::{BoxFuture, CancellationToken, RawJson};
use tokio::sync::{mpsc, oneshot};

use crate::control::{CallControl, KillReason};
use crate::pool::Pool;
use crate::protocol::{HostInbox, JobValue, OpId, OpOutcome, ToHost, ToIsolate};

/// The host's side of one call.
pub(crate) struct Pump {
    pub(crate) inbox: HostInbox,
    pub(crate) mailbox: Sender<ToIsolate>,
    pub(crate) control: Arc<CallControl>,
    pub(crate) ops: Arc<dyn ContextOps>,
    pub(crate) limits: Limits,
    pub(crate) hand_off: HandOff,
    pub(crate) pool: Arc<Pool>,
    pub(crate) worker: u64,
    pub(crate) ended: bool,
}

/// What the host waits for.
enum Event {
    FromIsolate(Option<ToHost>),
    ToIsolate(ToIsolate),
    Kill(KillReason),
}

/// An operation under way; nothing comes of one that was dropped.
type Running = BoxFuture<'static, (OpId, Result<OpOutcome, Aborted>)>;

/// Where a call stands.
struct Turn {
    in_flight: FuturesUnordered<Running>,
    /// How to drop an operation.
    handles: BTreeMap<OpId, AbortHandle>,
    requests: mpsc::UnboundedSender<ToIsolate>,
    running: bool,
    killed: bool,
}

impl Pump {
    /// Drives the call to its end.
    pub(crate) async fn drive(
        mut self,
        mut wall: BoxFuture<'static, ()>,
        cancel: &CancellationToken,
    ) -> Result<JobValue, IsolateError> {
        let (requests, mut asked) = mpsc::unbounded_channel();
        let mut turn =
            Turn { in_flight: FuturesUnordered::new(), handles: BTreeMap::new(), requests, running: true, killed: false };
        loop {
            let event = if turn.killed || (turn.running && self.hand_off == HandOff::Strict) {
                Event::FromIsolate(self.next_message().await)
            } else {
                let parked = !turn.running;
                // While the script computes, its operations stand still: what it sees never depends on how long that takes.
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => Event::Kill(KillReason::Cancelled),
                    () = &mut wall => Event::Kill(KillReason::Wall),
                    message = self.inbox.recv() => Event::FromIsolate(message),
                    Some((id, outcome)) = turn.in_flight.next(), if parked => {
                        turn.handles.remove(&id);
                        let Ok(outcome) = outcome else { continue };
                        Event::ToIsolate(ToIsolate::Settled { id, outcome })
                    }
                    Some(request) = asked.recv(), if parked => Event::ToIsolate(request),
                }
            };
            match event {
                Event::FromIsolate(message) => {
                    if let Some(result) = self.take(message, &mut turn) {
                        self.ended = true;
                        return result;
                    }
                }
                Event::ToIsolate(message) => {
                    turn.running = true;
                    let _ = self.mailbox.send(message);
                }
                // A person has looked at the script: that time is not its own.
                Event::Kill(KillReason::Wall) if self.control.take_paused() => {
                    wall = self.ops.wall_deadline(self.limits.wall);
                }
                Event::Kill(reason) => {
                    turn.killed = true;
                    turn.in_flight.clear();
                    self.kill(reason);
                }
            }
        }
    }

    /// Does what the isolate's thread asks; gives the result when it was the last message.
    fn take(&self, message: Option<ToHost>, turn: &mut Turn) -> Option<Result<JobValue, IsolateError>> {
        match message {
            Some(ToHost::Finished(result)) => return Some(result),
            Some(ToHost::Abandoned(reason)) => {
                self.pool.give_up(self.worker);
                return Some(Err(reason.error(&self.limits)));
            }
            None => {
                self.pool.write_off(self.worker);
                return Some(Err(IsolateError::Engine { message: "the isolate's thread ended unexpectedly".to_owned() }));
            }
            Some(ToHost::Parked) => turn.running = false,
            Some(ToHost::Verdict { reply, verdict }) => drop(reply.send(verdict)),
            Some(ToHost::Cancel(id)) => {
                if let Some(handle) = turn.handles.remove(&id) {
                    handle.abort();
                }
            }
            Some(ToHost::Start { .. }) if turn.killed => {}
            Some(ToHost::Start { id, op, args, callback }) => {
                let requests = callback.then(|| turn.requests.clone());
                let (operation, handle) = self.start(id, op, args, requests);
                turn.in_flight.push(operation);
                turn.handles.insert(id, handle);
            }
        }
        None
    }

    async fn next_message(&mut self) -> Option<ToHost> {
        match self.hand_off {
            HandOff::Strict => self.inbox.recv_blocking(),
            HandOff::Concurrent => self.inbox.recv().await,
        }
    }

    fn start(
        &self,
        id: OpId,
        op: OpIndex,
        args: OpArgs,
        requests: Option<mpsc::UnboundedSender<ToIsolate>>,
    ) -> (Running, AbortHandle) {
        let callback = requests.map(|requests| Arc::new(BridgeCallback { id, requests }) as Arc<dyn Callback>);
        let (operation, handle) = abortable(self.ops.start(op, args, callback));
        (Box::pin(async move { (id, operation.await) }), handle)
    }

    fn kill(&self, reason: KillReason) {
        self.control.kill(reason);
        let _ = self.mailbox.send(ToIsolate::Killed);
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        self.kill(KillReason::Cancelled);
        self.control.handle_died();
        // In simulation nothing of a call may be alive after it; the script runs no more, so this is short.
        while self.hand_off == HandOff::Strict {
            match self.inbox.recv_blocking() {
                None | Some(ToHost::Finished(_)) => break,
                Some(ToHost::Abandoned(_)) => {
                    self.pool.give_up(self.worker);
                    break;
                }
                Some(_) => {}
            }
        }
    }
}

/// A script's callback as the host sees it.
struct BridgeCallback {
    id: OpId,
    requests: mpsc::UnboundedSender<ToIsolate>,
}

#[async_trait]
impl Callback for BridgeCallback {
    async fn call(&self, args: Vec<RawJson>) -> CallbackVerdict {
        let (reply, verdict) = oneshot::channel();
        if self.requests.send(ToIsolate::Callback { id: self.id, args, reply }).is_err() {
            return CallbackVerdict::Stop;
        }
        verdict.await.unwrap_or(CallbackVerdict::Stop)
    }
}
