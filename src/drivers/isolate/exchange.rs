//! One call over the pipes, as the host drives it.
//!
//! Invariant: one event at a time goes to the child, and the next only after it says that the script waits. What a child asks for is
//! checked against the table and the call's groups before it is done: its engine may not be its own any more.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{AbortHandle, Aborted, abortable};
use futures::stream::{FuturesUnordered, StreamExt as _};
use greenroom_boundary::isolate::{
    CallValue, Callback, CallbackVerdict, ContextOps, HandOff, IsolateError, Limits, OpArgs, OpDecl, OpError, OpIndex, OpKind,
};
use greenroom_boundary::{BoxFuture, CancellationToken, RawJson};
use tokio::sync::{mpsc, oneshot};

use super::messages::{Answer, Outcome, ToChild, ToHost};
use super::process::{ChildProcess, FromChild};

/// How long a child of a simulation may say nothing beyond its limit on computing before it counts as stuck. Its own watchdog answers
/// much earlier; this is for a process that was stopped or whose engine is beyond itself.
const SILENCE: Duration = Duration::from_secs(30);

/// What a child gave at the end.
#[derive(Debug)]
pub(super) enum Gave {
    Value(CallValue),
    Names(Vec<String>),
}

/// One call.
pub(super) struct Exchange<'a> {
    pub(super) child: &'a mut ChildProcess,
    pub(super) table: &'static [OpDecl],
    pub(super) ops: Arc<dyn ContextOps>,
    pub(super) limits: Limits,
    pub(super) hand_off: HandOff,
}

/// An operation under way; nothing comes of one that was dropped.
type Running = BoxFuture<'static, (u64, Result<Outcome, Aborted>)>;

/// Where it stands.
struct Turn {
    in_flight: FuturesUnordered<Running>,
    /// How to drop an operation.
    handles: BTreeMap<u64, AbortHandle>,
    asked: mpsc::UnboundedSender<Asked>,
    asks: BTreeMap<u64, oneshot::Sender<CallbackVerdict>>,
    next_ask: u64,
    running: bool,
    absent: Vec<&'static str>,
}

/// An operation calls the script back.
struct Asked {
    id: u64,
    args: Vec<RawJson>,
    reply: oneshot::Sender<CallbackVerdict>,
}

enum Event {
    Child(FromChild),
    Settled(u64, Outcome),
    Asked(Asked),
    End(IsolateError),
}

impl Exchange<'_> {
    /// Drives the call to its end. After an error that is not the script's own the child must not be used again.
    pub(super) async fn drive(
        self,
        first: &ToChild,
        mut wall: BoxFuture<'static, ()>,
        cancel: &CancellationToken,
    ) -> Result<Gave, IsolateError> {
        let (sender, mut asked) = mpsc::unbounded_channel();
        let mut turn = Turn {
            in_flight: FuturesUnordered::new(),
            handles: BTreeMap::new(),
            asked: sender,
            asks: BTreeMap::new(),
            next_ask: 0,
            running: true,
            absent: self.ops.absent(),
        };
        self.send(first)?;
        loop {
            let event = if turn.running && self.hand_off == HandOff::Strict {
                match self.child.recv_blocking(self.limits.cpu.saturating_add(SILENCE)) {
                    Some(message) => Event::Child(message),
                    None => Event::End(IsolateError::Died { message: "it did not answer and was killed".to_owned() }),
                }
            } else {
                let parked = !turn.running;
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => Event::End(IsolateError::Cancelled),
                    () = &mut wall => Event::End(self.wall_limit()),
                    message = self.child.recv() => Event::Child(message),
                    Some((id, outcome)) = turn.in_flight.next(), if parked => {
                        turn.handles.remove(&id);
                        let Ok(outcome) = outcome else { continue };
                        Event::Settled(id, outcome)
                    }
                    Some(asked) = asked.recv(), if parked => Event::Asked(asked),
                }
            };
            match event {
                Event::Child(FromChild::Said(message)) => {
                    if let Some(result) = self.take(message, &mut turn) {
                        return result;
                    }
                }
                Event::Child(FromChild::Ended(how)) => return Err(died(&how)),
                Event::Settled(id, outcome) => {
                    turn.running = true;
                    self.send(&ToChild::Settled { id, outcome })?;
                }
                Event::Asked(Asked { id, args, reply }) => {
                    turn.running = true;
                    let ask = turn.next_ask;
                    turn.next_ask += 1;
                    turn.asks.insert(ask, reply);
                    self.send(&ToChild::Callback { id, ask, args })?;
                }
                Event::End(error) => return Err(error),
            }
        }
    }

    fn wall_limit(&self) -> IsolateError {
        IsolateError::WallLimit { limit_ms: u64::try_from(self.limits.wall.as_millis()).unwrap_or(u64::MAX) }
    }

    fn send(&self, message: &ToChild) -> Result<(), IsolateError> {
        self.child
            .send(message)
            .map_err(|error| IsolateError::Engine { message: format!("a message for the process: {error}") })
    }

    /// Does what the child asks; gives the result when it was the last message.
    fn take(&self, message: ToHost, turn: &mut Turn) -> Option<Result<Gave, IsolateError>> {
        let answer = match message {
            ToHost::Returned(result) => return Some(result.map(Gave::Value)),
            ToHost::Names(result) => return Some(result.map(Gave::Names)),
            ToHost::Parked => {
                turn.running = false;
                return None;
            }
            ToHost::Console { level, text } => {
                self.ops.console(&level, &text);
                return None;
            }
            ToHost::Verdict { ask, verdict } => {
                if let Some(reply) = turn.asks.remove(&ask) {
                    let _ = reply.send(verdict);
                }
                return None;
            }
            ToHost::Start { id, op, args, callback } => {
                if self.may(op, OpKind::Await, turn).is_none() {
                    return Some(Err(died("it asked for an operation that it does not have")));
                }
                let callback = callback.then(|| turn.asked.clone());
                let (operation, handle) = self.start(id, op, args, callback);
                turn.in_flight.push(operation);
                turn.handles.insert(id, handle);
                return None;
            }
            ToHost::Cancel { id } => {
                if let Some(handle) = turn.handles.remove(&id) {
                    handle.abort();
                }
                return None;
            }
            ToHost::Inline { op, args } => {
                let Some(decl) = self.may(op, OpKind::Inline, turn) else {
                    return Some(Err(died("it asked for an operation that it does not have")));
                };
                let outcome = catch_unwind(AssertUnwindSafe(|| self.ops.inline(op, args))).unwrap_or_else(|_| {
                    let path = decl.path;
                    Err(OpError::new("ERR_INTERNAL", format!("ctx.{path} failed inside the host; the host's log says where")))
                });
                Answer::Outcome(outcome.into())
            }
            ToHost::Now => Answer::Bits(self.ops.now_ms().to_bits()),
            ToHost::Random => Answer::Bits(self.ops.random().to_bits()),
        };
        self.send(&ToChild::Answer(answer)).err().map(Err)
    }

    /// The operation, if this call has it.
    fn may(&self, op: OpIndex, kind: OpKind, turn: &Turn) -> Option<&'static OpDecl> {
        let is_absent =
            |path: &str| turn.absent.iter().any(|group| path.strip_prefix(group).is_some_and(|rest| rest.starts_with('.')));
        self.table.get(op.0).filter(|decl| decl.kind == kind && !is_absent(decl.path))
    }

    fn start(&self, id: u64, op: OpIndex, args: OpArgs, asked: Option<mpsc::UnboundedSender<Asked>>) -> (Running, AbortHandle) {
        let callback = asked.map(|asked| Arc::new(PipedCallback { id, asked }) as Arc<dyn Callback>);
        let (operation, handle) = abortable(self.ops.start(op, args, callback));
        (Box::pin(async move { (id, operation.await.map(Outcome::from)) }), handle)
    }
}

fn died(how: &str) -> IsolateError {
    IsolateError::Died { message: how.to_owned() }
}

/// A script's callback as the host sees it.
struct PipedCallback {
    id: u64,
    asked: mpsc::UnboundedSender<Asked>,
}

#[async_trait]
impl Callback for PipedCallback {
    async fn call(&self, args: Vec<RawJson>) -> CallbackVerdict {
        let (reply, verdict) = oneshot::channel();
        if self.asked.send(Asked { id: self.id, args, reply }).is_err() {
            return CallbackVerdict::Stop;
        }
        verdict.await.unwrap_or(CallbackVerdict::Stop)
    }
}
