//! What the tests share: a clock that is moved by hand, a handler that writes down what it hears, raw ends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use greenroom_boundary::clock::{Hold, HoldCounter, MonoNanos, UnixNanos};
use greenroom_boundary::mcp::{Frame, FrameDuplex, McpError};
use greenroom_boundary::{BoxFuture, Clock};
use greenroom_wire::{
    DropReason, IncomingRequest, Peer, PeerHandler, PeerOptions, RawJson, RequestId, RpcError, WireError, pipe,
};
use serde_json::value::RawValue;
use tokio::sync::watch;

/// A clock that stands still until it is advanced.
#[derive(Debug)]
pub(crate) struct HandClock(watch::Sender<MonoNanos>, HoldCounter);

impl HandClock {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(MonoNanos(0)), HoldCounter::default()))
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.0.send_modify(|now| *now = now.after(by));
    }

    /// How many wait for a time to come.
    pub(crate) fn sleepers(&self) -> usize {
        self.0.receiver_count()
    }
}

impl Clock for HandClock {
    fn now(&self) -> MonoNanos {
        *self.0.borrow()
    }

    fn wall(&self) -> UnixNanos {
        UnixNanos(self.now().0)
    }

    fn sleep_until(&self, deadline: MonoNanos) -> BoxFuture<'static, ()> {
        let mut now = self.0.subscribe();
        Box::pin(async move {
            if now.wait_for(|now| *now >= deadline).await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }

    fn hold(&self) -> Hold {
        self.1.hold()
    }
}

type Answer = dyn Fn(IncomingRequest) -> BoxFuture<'static, Result<RawJson, RpcError>> + Send + Sync;

/// Writes down what happens on a connection.
pub(crate) struct Notes {
    pub(crate) lines: Mutex<Vec<String>>,
    answer: Box<Answer>,
}

impl Notes {
    pub(crate) fn new() -> Arc<Self> {
        Self::answering(|request| async move { Err(RpcError::method_not_found(&request.method)) })
    }

    pub(crate) fn answering<F>(answer: impl Fn(IncomingRequest) -> F + Send + Sync + 'static) -> Arc<Self>
    where
        F: Future<Output = Result<RawJson, RpcError>> + Send + 'static,
    {
        Arc::new(Self { lines: Mutex::default(), answer: Box::new(move |request| Box::pin(answer(request))) })
    }

    fn note(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.lines.lock().unwrap())
    }
}

#[async_trait]
impl PeerHandler for Notes {
    async fn request(&self, request: IncomingRequest) -> Result<RawJson, RpcError> {
        (self.answer)(request).await
    }

    fn notification(&self, _peer: &Peer, method: &str, params: Option<&RawValue>, _frame: &Frame) {
        assert_ne!(method, "panic", "a handler that fails");
        self.note(format!("notification {method} {}", params.map_or("-", RawValue::get)));
    }

    fn stale_response(&self, id: Option<&RequestId>, _frame: &Frame) {
        self.note(format!("stale {}", id.map_or("-".to_owned(), RequestId::to_json)));
    }

    fn malformed(&self, _frame: &Frame, error: &WireError) {
        self.note(format!("malformed {}", error.code()));
    }

    fn flooded(&self, dropped: usize) {
        self.note(format!("flooded {dropped}"));
    }

    fn too_large(&self, error: &McpError) {
        self.note(format!("too large {}", error.code()));
    }

    fn dropped_notification(&self, method: &str, reason: DropReason, _frame: &Frame) {
        self.note(format!("dropped {method} {}", reason.code()));
    }

    fn closed(&self, why: Option<McpError>) {
        self.note(format!("closed {}", why.map_or("-", |error| error.code())));
    }
}

pub(crate) fn options(clock: &Arc<HandClock>) -> PeerOptions {
    PeerOptions { clock: clock.clone(), name: "other".to_owned() }
}

/// A connection whose other end the test plays frame by frame.
pub(crate) struct Bench {
    pub(crate) peer: Peer,
    pub(crate) notes: Arc<Notes>,
    pub(crate) clock: Arc<HandClock>,
    pub(crate) far: FrameDuplex,
}

impl Bench {
    pub(crate) fn new(notes: Arc<Notes>) -> Self {
        let (near, far) = pipe("other");
        let clock = HandClock::new();
        let peer = Peer::start(near, notes.clone(), options(&clock));
        Self { peer, notes, clock, far }
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.far.sink.send(frame(text)).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> String {
        self.far.source.next().await.unwrap().unwrap().to_text()
    }

    /// Passes time once everything that can run has run.
    pub(crate) async fn pass(&self, by: Duration) {
        settle().await;
        self.clock.advance(by);
        settle().await;
    }
}

/// Lets every task run until all of them wait for something outside.
pub(crate) async fn settle() {
    for _ in 0..64 {
        tokio::task::yield_now().await;
    }
}

pub(crate) fn frame(text: &str) -> Frame {
    Frame::from(text.to_owned())
}

pub(crate) fn raw(text: &str) -> RawJson {
    RawValue::from_string(text.to_owned()).unwrap()
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
