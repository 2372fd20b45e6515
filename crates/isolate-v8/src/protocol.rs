//! The messages between the host's future of one call and the isolate's thread.
//!
//! Invariant: after each message to the isolate the host waits until it says `Parked` or `Finished` before it sends the next one
//! (a kill excepted), so both hand-off modes run a script through the same sequence of events. No V8 types here.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use greenroom_boundary::RawJson;
use greenroom_boundary::isolate::{CallValue, CallbackVerdict, IsolateError, OpArgs, OpError, OpIndex};
use tokio::sync::{Notify, oneshot};

use crate::control::KillReason;

/// One started operation of one call.
pub(crate) type OpId = u64;

/// How an operation ended.
pub(crate) type OpOutcome = Result<Option<RawJson>, OpError>;

/// What a job gave.
#[derive(Debug)]
pub(crate) enum JobValue {
    Called(CallValue),
    Functions(Vec<String>),
}

/// From the isolate's thread to the host's future.
#[derive(Debug)]
pub(crate) enum ToHost {
    /// Start this operation.
    Start { id: OpId, op: OpIndex, args: OpArgs, callback: bool },
    /// Drop this operation; nobody waits for it any more.
    Cancel(OpId),
    /// A callback answered.
    Verdict { reply: oneshot::Sender<CallbackVerdict>, verdict: CallbackVerdict },
    /// The script computes no more until a message comes.
    Parked,
    /// The end.
    Finished(Result<JobValue, IsolateError>),
    /// The thread did not react to a kill; the call ends without it.
    Abandoned(KillReason),
}

/// From the host's future to the isolate's thread.
#[derive(Debug)]
pub(crate) enum ToIsolate {
    Settled {
        id: OpId,
        outcome: OpOutcome,
    },
    Callback {
        id: OpId,
        args: Vec<RawJson>,
        reply: oneshot::Sender<CallbackVerdict>,
    },
    Killed,
    /// A debugger has sent something.
    Look,
}

/// Sends to the host, from any thread.
#[derive(Clone, Debug)]
pub(crate) struct HostSender {
    messages: mpsc::Sender<ToHost>,
    bell: Arc<Notify>,
}

impl HostSender {
    /// Sends; a host that is gone does not matter, the call is being ended then.
    pub(crate) fn send(&self, message: ToHost) {
        let _ = self.messages.send(message);
        self.bell.notify_one();
    }
}

impl Drop for HostSender {
    /// Wakes a waiting host, so that it notices when the last sender is gone.
    fn drop(&mut self) {
        self.bell.notify_one();
    }
}

/// How often a receiver looks again before it sleeps: some ten microseconds, less than being woken costs.
const LOOKS: u32 = 400;

/// Waits for a message: first awake, because the answer of a running thread is often near, then asleep. `None`: the sender is gone.
pub(crate) fn receive<T>(messages: &mpsc::Receiver<T>) -> Option<T> {
    look(messages).unwrap_or_else(|| messages.recv().map_err(RecvTimeoutError::from)).ok()
}

/// The same, but only so long.
pub(crate) fn receive_until<T>(messages: &mpsc::Receiver<T>, patience: Duration) -> Result<T, RecvTimeoutError> {
    look(messages).unwrap_or_else(|| messages.recv_timeout(patience))
}

fn look<T>(messages: &mpsc::Receiver<T>) -> Option<Result<T, RecvTimeoutError>> {
    for _ in 0..LOOKS {
        match messages.try_recv() {
            Ok(message) => return Some(Ok(message)),
            Err(mpsc::TryRecvError::Disconnected) => return Some(Err(RecvTimeoutError::Disconnected)),
            Err(mpsc::TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
    None
}

/// Receives at the host, blocking or not.
#[derive(Debug)]
pub(crate) struct HostInbox {
    messages: mpsc::Receiver<ToHost>,
    bell: Arc<Notify>,
}

/// Makes the channel towards the host.
pub(crate) fn host_channel() -> (HostSender, HostInbox) {
    let (sender, receiver) = mpsc::channel();
    let bell = Arc::new(Notify::new());
    (HostSender { messages: sender, bell: Arc::clone(&bell) }, HostInbox { messages: receiver, bell })
}

impl HostInbox {
    /// Blocks this thread until a message comes; `None` when the isolate's thread died.
    pub(crate) fn recv_blocking(&mut self) -> Option<ToHost> {
        receive(&self.messages)
    }

    /// Waits without blocking; `None` when the isolate's thread died.
    pub(crate) async fn recv(&mut self) -> Option<ToHost> {
        loop {
            match self.messages.try_recv() {
                Ok(message) => return Some(message),
                Err(mpsc::TryRecvError::Disconnected) => return None,
                Err(mpsc::TryRecvError::Empty) => self.bell.notified().await,
            }
        }
    }
}
