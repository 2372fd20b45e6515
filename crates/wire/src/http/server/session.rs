//! A server's sessions.
//!
//! Invariant: a session that has ended is in no table, its streams are closed and its duplex has ended at both halves.
//! When the table is full, the session that has been idle the longest makes room; one whose client has been away for long is
//! ended. Deliberately no limit on how long a session lasts that is used.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use greenroom_boundary::CancellationToken;
use greenroom_boundary::mcp::{Frame, FrameDuplex, FrameSink, FrameSource, McpError};
use tokio::sync::mpsc;

use super::routes::{Routes, Stuck};
use super::stream::Used;
use super::{Expiry, ServerOptions};
use crate::RequestId;

/// How many frames of a client wait for the reader before its requests do.
const INBOX_FRAMES: usize = 64;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Table = Mutex<BTreeMap<String, Arc<Session>>>;

/// The sessions of an endpoint.
#[derive(Clone)]
pub struct Sessions {
    table: Arc<Table>,
    /// Counts uses of sessions, to tell which was used last.
    uses: Arc<AtomicU64>,
    pub(super) options: Arc<ServerOptions>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sessions({})", self.len())
    }
}

impl Sessions {
    pub(super) fn new(options: ServerOptions) -> Self {
        Self { table: Arc::default(), uses: Arc::default(), options: Arc::new(options) }
    }

    /// How many sessions live.
    pub fn len(&self) -> usize {
        lock(&self.table).len()
    }

    /// Whether none lives.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends all sessions and with them all open streams, so that a server can shut down gracefully.
    pub fn shutdown(&self) {
        let sessions: Vec<_> = lock(&self.table).values().cloned().collect();
        for session in sessions {
            session.end();
        }
    }

    /// Opens a session; `None` if there are too many and none is idle.
    pub(super) fn open(&self) -> Option<(Arc<Session>, FrameDuplex)> {
        if self.len() >= self.options.max_sessions {
            let oldest = {
                let table = lock(&self.table);
                let idle = table.values().filter(|session| session.routes().is_idle());
                idle.min_by_key(|session| session.last_use.load(Ordering::Relaxed)).cloned()
            };
            oldest?.end();
        }
        let id = self.options.entropy.id("");
        let (inbox, received) = mpsc::channel(INBOX_FRAMES);
        let used = Used::now(self.options.expiry.as_ref().map(|expiry| expiry.clock.clone()));
        let session = Arc::new(Session {
            id: id.clone(),
            inbox: Mutex::new(Some(inbox)),
            routes: Mutex::new(Routes::of(used.clone())),
            most_waiting: self.options.buffer_frames,
            last_use: AtomicU64::new(self.next_use()),
            used,
            ended: CancellationToken::new(),
            dropped: AtomicUsize::default(),
            table: Arc::downgrade(&self.table),
        });
        lock(&self.table).insert(id, session.clone());
        if let Some(expiry) = &self.options.expiry {
            tokio::spawn(expire(Arc::downgrade(&session), session.ended.clone(), expiry.clone()));
        }
        let duplex = FrameDuplex { sink: Box::new(SessionSink(session.clone())), source: Box::new(SessionSource(received)) };
        Some((session, duplex))
    }

    pub(super) fn find(&self, id: &str) -> Option<Arc<Session>> {
        let session = lock(&self.table).get(id).cloned()?;
        session.last_use.store(self.next_use(), Ordering::Relaxed);
        session.used.again();
        Some(session)
    }

    fn next_use(&self) -> u64 {
        self.uses.fetch_add(1, Ordering::Relaxed)
    }
}

/// Ends the session once its client has been away for long.
async fn expire(session: Weak<Session>, ended: CancellationToken, Expiry { clock, after }: Expiry) {
    loop {
        let until = {
            let Some(session) = session.upgrade() else { return };
            if !session.routes().is_idle() {
                session.used.again();
            }
            session.used.at().after(after)
        };
        if clock.now() >= until {
            if let Some(session) = session.upgrade() {
                session.end();
            }
            return;
        }
        tokio::select! {
            biased;
            () = ended.cancelled() => return,
            () = clock.sleep_until(until) => {}
        }
    }
}

/// One session.
pub(super) struct Session {
    pub(super) id: String,
    inbox: Mutex<Option<mpsc::Sender<Frame>>>,
    routes: Mutex<Routes>,
    most_waiting: usize,
    last_use: AtomicU64,
    used: Arc<Used>,
    ended: CancellationToken,
    dropped: AtomicUsize,
    table: Weak<Table>,
}

impl Session {
    pub(super) fn routes(&self) -> MutexGuard<'_, Routes> {
        lock(&self.routes)
    }

    /// Hands a client's frame to whoever accepted the session; false if the session has ended.
    pub(super) async fn receive(&self, frame: Frame) -> bool {
        let inbox = lock(&self.inbox).clone();
        match inbox {
            Some(inbox) => inbox.send(frame).await.is_ok(),
            None => false,
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        lock(&self.inbox).is_none()
    }

    /// Ends the session. Idempotent.
    pub(super) fn end(&self) {
        if let Some(table) = self.table.upgrade() {
            lock(&table).remove(&self.id);
        }
        lock(&self.inbox).take();
        self.ended.cancel();
        self.routes().close();
    }

    fn send(&self, frame: Frame) -> Result<(), McpError> {
        let closed = |message: &str| McpError::Closed { server: "client".to_owned(), message: message.to_owned() };
        if self.has_ended() {
            return Err(closed("the session has ended"));
        }
        self.routes().route(frame, self.most_waiting).map_err(|stuck| match stuck {
            Stuck::Full => closed("it has no stream open, or reads none, and too many messages wait for it"),
            Stuck::Dropped => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                closed("it does not read its stream")
            }
            Stuck::NoStream => closed("it has no stream open on which it could be asked"),
        })
    }
}

/// The streams of a session, for whoever serves it.
#[derive(Clone, Default)]
pub struct Streams(Weak<Session>);

impl fmt::Debug for Streams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Streams")
    }
}

impl Streams {
    pub(super) fn of(session: &Arc<Session>) -> Self {
        Self(Arc::downgrade(session))
    }

    /// Says that a request of the server's own, which is sent next, comes from this request of the client: it then leaves on
    /// the stream of that one. See [`RequestOptions::on_send`](crate::RequestOptions::on_send).
    pub fn comes_from(&self, question: &RequestId, cause: &RequestId) {
        if let Some(session) = self.0.upgrade() {
            session.routes().comes_from(question.clone(), cause.clone());
        }
    }
}

struct SessionSink(Arc<Session>);

#[async_trait]
impl FrameSink for SessionSink {
    async fn send(&mut self, frame: Frame) -> Result<(), McpError> {
        self.0.send(frame)
    }

    fn take_dropped(&mut self) -> usize {
        self.0.dropped.swap(0, Ordering::Relaxed)
    }

    async fn close(&mut self) {
        self.0.end();
    }
}

impl Drop for SessionSink {
    fn drop(&mut self) {
        self.0.end();
    }
}

struct SessionSource(mpsc::Receiver<Frame>);

#[async_trait]
impl FrameSource for SessionSource {
    async fn next(&mut self) -> Option<Result<Frame, McpError>> {
        self.0.recv().await.map(Ok)
    }
}
