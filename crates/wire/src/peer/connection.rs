//! The handle of a connection.
//!
//! Invariant: cheap to clone, and every clone is the same connection. It ends by [`Peer::close`] or by the other side, not
//! by dropping handles: the tasks of the connection hold one too. Deliberately no channel to the tasks but the queue.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom_boundary::clock::MonoNanos;
use greenroom_boundary::mcp::{Frame, FrameDuplex, McpError};
use greenroom_boundary::{CancellationToken, Clock};
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot};

use super::pending::{Pending, UnderWay};
use super::request::{RequestError, RequestOptions};
use super::writer::Outgoing;
use super::{PeerHandler, reader, writer};
use crate::{RawJson, RequestId, notification_frame, request_frame, splice};

/// How many bytes may wait for the sink before progress and log messages are dropped.
const MOST_WAITING_BYTES: usize = 4 << 20;

/// What a connection needs to know.
#[derive(Clone, Debug)]
pub struct PeerOptions {
    /// Measures timeouts.
    pub clock: Arc<dyn Clock>,
    /// Names the other side in errors.
    pub name: String,
}

pub(super) struct Shared {
    pub(super) options: PeerOptions,
    pub(super) handler: Arc<dyn PeerHandler>,
    pub(super) under_way: UnderWay,
    pub(super) queue: mpsc::UnboundedSender<Outgoing>,
    /// How many bytes wait for the sink.
    pub(super) waiting_bytes: AtomicUsize,
    /// Notifications dropped since the queue was last empty.
    pub(super) dropped: AtomicUsize,
    /// Nothing more is read or queued.
    pub(super) closing: CancellationToken,
    /// The sink is closed.
    pub(super) closed: CancellationToken,
    /// The other side is a client: its requests are answered even when it stops sending, and it is told what was no message.
    pub(super) serves: bool,
    /// Requests of theirs whose answer is not queued yet.
    pub(super) unanswered: AtomicUsize,
    /// A request of theirs has been answered.
    pub(super) answered: Notify,
}

/// One connection. See the [module](crate::peer).
#[derive(Clone)]
pub struct Peer {
    pub(super) shared: Arc<Shared>,
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Peer({})", self.shared.options.name)
    }
}

impl Peer {
    /// Starts a connection on `duplex`. When the other side stops sending, the connection ends at once.
    pub fn start(duplex: FrameDuplex, handler: Arc<dyn PeerHandler>, options: PeerOptions) -> Self {
        Self::run(duplex, handler, options, false)
    }

    /// Like [`Peer::start`], but when the other side stops sending, its requests that are still under way are answered
    /// first: for a server whose client may close its half early. What is no message is answered with an error without id.
    pub fn serve(duplex: FrameDuplex, handler: Arc<dyn PeerHandler>, options: PeerOptions) -> Self {
        Self::run(duplex, handler, options, true)
    }

    fn run(duplex: FrameDuplex, handler: Arc<dyn PeerHandler>, options: PeerOptions, serves: bool) -> Self {
        let (queue, outgoing) = mpsc::unbounded_channel();
        let shared = Arc::new(Shared {
            options,
            handler,
            under_way: UnderWay::default(),
            queue,
            waiting_bytes: AtomicUsize::new(0),
            dropped: AtomicUsize::new(0),
            closing: CancellationToken::new(),
            closed: CancellationToken::new(),
            serves,
            unanswered: AtomicUsize::new(0),
            answered: Notify::new(),
        });
        let peer = Self { shared };
        tokio::spawn(writer::write(peer.clone(), duplex.sink, outgoing));
        tokio::spawn(reader::read(peer.clone(), duplex.source));
        peer
    }

    /// The name that the other side has here.
    pub fn name(&self) -> &str {
        &self.shared.options.name
    }

    /// Asks the other side and waits for its answer. Dropping the future gives the request up, as cancelling does.
    pub async fn request(
        &self,
        method: &str,
        params: Option<RawJson>,
        options: RequestOptions,
    ) -> Result<RawJson, RequestError> {
        if options.cancel.is_cancelled() {
            return Err(RequestError::Cancelled);
        }
        let (cancel, (id, mut answer)) = (options.cancel.clone(), self.enqueue(method, params, options)?);
        let mut guard = Guard { peer: self, id, reason: Some("the caller gave the request up") };
        loop {
            let deadline = self.shared.under_way.deadline(id).unwrap_or_default();
            tokio::select! {
                biased;
                outcome = &mut answer => {
                    guard.reason = None;
                    return outcome.unwrap_or_else(|_| Err(RequestError::Closed(self.gone("the connection ended"))));
                }
                () = cancel.cancelled() => {
                    guard.reason = Some("the caller cancelled the request");
                    return Err(RequestError::Cancelled);
                }
                () = self.wait_until(deadline) => {
                    // Progress may have moved the deadline while this slept; an entry that is gone has its answer ready.
                    if self.shared.under_way.deadline(id).is_some_and(|moved| moved <= self.shared.options.clock.now()) {
                        guard.reason = Some("no answer in time");
                        return Err(RequestError::Timeout);
                    }
                }
            }
        }
    }

    /// Tells the other side something. Completes when the frame has been sent.
    pub async fn notify(&self, method: &str, params: Option<RawJson>) -> Result<(), McpError> {
        let (done, sent) = oneshot::channel();
        let frame = notification_frame(method, params.as_deref());
        self.queue(Outgoing::Frame { frame, done: Some(done) })?;
        sent.await.unwrap_or_else(|_| Err(self.gone("the connection ended before the message was sent")))
    }

    /// Like [`Peer::notify`], without waiting until it has been sent; what happens to it is not told. Progress and log
    /// messages are dropped while too much waits for a side that does not read: see [`PeerHandler::flooded`].
    pub fn post(&self, method: &str, params: Option<&RawValue>) {
        let droppable = matches!(method, "notifications/progress" | "notifications/message");
        if droppable && self.shared.waiting_bytes.load(Ordering::SeqCst) >= MOST_WAITING_BYTES {
            self.shared.dropped.fetch_add(1, Ordering::SeqCst);
            return;
        }
        let _ = self.queue(Outgoing::Frame { frame: notification_frame(method, params), done: None });
    }

    /// Ends the connection: what was queued and can be sent at once is sent, requests under way fail. Idempotent.
    pub async fn close(&self) {
        self.shut(None);
        self.closed().await;
    }

    /// Waits until the connection has ended and its sink is closed.
    pub async fn closed(&self) {
        self.shared.closed.cancelled().await;
    }

    /// Whether the connection has ended, or is about to.
    pub fn is_closed(&self) -> bool {
        self.shared.closing.is_cancelled()
    }

    /// How many requests of ours have no answer yet.
    pub fn in_flight(&self) -> usize {
        self.shared.under_way.in_flight()
    }

    /// How many requests of theirs have no answer yet.
    pub fn answering(&self) -> usize {
        self.shared.under_way.answering()
    }

    pub(super) fn shut(&self, why: Option<McpError>) {
        let reason = why.clone().unwrap_or_else(|| self.gone("the connection ended"));
        if self.shared.under_way.shut(&reason) {
            self.shared.closing.cancel();
            self.shared.handler.closed(why);
        }
    }

    pub(super) fn gone(&self, message: &str) -> McpError {
        McpError::Closed { server: self.shared.options.name.clone(), message: message.to_owned() }
    }

    pub(super) fn queue(&self, item: Outgoing) -> Result<(), McpError> {
        self.shared.waiting_bytes.fetch_add(item.size_bytes(), Ordering::SeqCst);
        self.shared.queue.send(item).map_err(|_| self.gone("the connection ended"))
    }

    fn enqueue(
        &self,
        method: &str,
        params: Option<RawJson>,
        options: RequestOptions,
    ) -> Result<(i64, oneshot::Receiver<Result<RawJson, RequestError>>), RequestError> {
        let (answer, receiver) = oneshot::channel();
        let now = self.shared.options.clock.now();
        let cap = options.cap.map_or(MonoNanos(u64::MAX), |cap| now.after(cap));
        let own_token = splice::progress_token_of(params.as_deref());
        let entered = self.shared.under_way.enter(|id| Pending {
            answer,
            on_answer: options.on_answer,
            progress: options.progress.map(Arc::from),
            token: if options.attach_progress_token { Some(RequestId::Number(id)) } else { own_token },
            last_progress: None,
            timeout: options.timeout,
            cap,
            deadline: options.timeout.map_or(cap, |timeout| now.after(timeout).min(cap)),
            sent: false,
            cancellable: method != "initialize",
        });
        let id = entered.map_err(RequestError::Closed)?;
        let request_id = RequestId::Number(id);
        let params = if options.attach_progress_token {
            let with_token = splice::params_with_token(params.as_deref(), &request_id);
            Some(with_token.map_err(|error| {
                self.shared.under_way.take(id);
                RequestError::Params(error)
            })?)
        } else {
            params
        };
        let frame = request_frame(&request_id, method, params.as_deref());
        self.queue(Outgoing::Request { id, frame, on_send: options.on_send }).map_err(RequestError::Closed)?;
        Ok((id, receiver))
    }

    async fn wait_until(&self, deadline: MonoNanos) {
        match deadline {
            MonoNanos(u64::MAX) => std::future::pending().await,
            deadline => self.shared.options.clock.sleep_until(deadline).await,
        }
    }

    /// Forgets a request of ours and tells the other side, if it has heard of it.
    fn abandon(&self, id: i64, reason: &str) {
        let Some(pending) = self.shared.under_way.take(id) else { return };
        if pending.sent && pending.cancellable {
            let params = serde_json::value::to_raw_value(&serde_json::json!({"requestId": id, "reason": reason})).ok();
            self.post("notifications/cancelled", params.as_deref());
        }
    }
}

/// Gives a request up, unless it has ended.
struct Guard<'a> {
    peer: &'a Peer,
    id: i64,
    reason: Option<&'static str>,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if let Some(reason) = self.reason {
            self.peer.abandon(self.id, reason);
        }
    }
}

/// A frame as the writer's queue takes it, without anyone waiting for it.
pub(super) fn unattended(frame: Frame) -> Outgoing {
    Outgoing::Frame { frame, done: None }
}
