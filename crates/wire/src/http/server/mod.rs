//! The server's side of Streamable HTTP: sessions, each a duplex of frames for whoever accepts it.
//!
//! Invariant: a message goes out on exactly one stream. A client that hangs up has not cancelled anything. Sessions end by
//! DELETE, by the accepting side closing its duplex, by [`Sessions::shutdown`], or when they are idle and the
//! table is full. Deliberately no resuming of streams and
//! no batches.

mod checks;
mod endpoint;
mod routes;
mod session;
mod stream;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::http::HeaderMap;
use greenroom_boundary::mcp::FrameDuplex;
use greenroom_boundary::{Clock, Entropy};

pub use endpoint::mcp_router;
pub use session::{Sessions, Streams};

/// How the endpoint behaves.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Makes session ids.
    pub entropy: Arc<dyn Entropy>,
    /// Origins that browsers may call from, `https://app.example.com`, besides those on this machine.
    pub allowed_origins: Vec<String>,
    /// The largest message that is accepted.
    pub body_limit_bytes: usize,
    /// How many messages wait for a client that has no stream open.
    pub buffer_frames: usize,
    /// How many sessions may live at once; beyond that an idle one makes room, or the newcomer is refused.
    pub max_sessions: usize,
    /// Says something on a stream that has been silent for that long, so that nobody on the way takes it for dead.
    pub keep_alive: Option<KeepAlive>,
    /// Ends a session whose client has been away for that long.
    pub expiry: Option<Expiry>,
}

/// When sessions that their clients have left are ended. A client is away while it has no stream open and asks nothing.
#[derive(Clone, Debug)]
pub struct Expiry {
    /// Measures the absence.
    pub clock: Arc<dyn Clock>,
    /// The longest absence.
    pub after: Duration,
}

/// How silent streams are kept open.
#[derive(Clone, Debug)]
pub struct KeepAlive {
    /// Measures the silence.
    pub clock: Arc<dyn Clock>,
    /// The longest silence.
    pub every: Duration,
}

impl ServerOptions {
    /// 16 MiB per message, 256 waiting messages, 1024 sessions, local origins only, streams as silent as they are, and sessions
    /// without an end of their own.
    pub fn new(entropy: Arc<dyn Entropy>) -> Self {
        let (body_limit_bytes, buffer_frames, max_sessions) = (16 << 20, 256, 1024);
        Self {
            entropy,
            allowed_origins: Vec::new(),
            body_limit_bytes,
            buffer_frames,
            max_sessions,
            keep_alive: None,
            expiry: None,
        }
    }
}

/// A new session.
#[derive(Clone)]
pub struct SessionInfo {
    /// Its id, which is also the client's proof that the session is its own: it stays out of logs.
    pub id: String,
    /// `authorization`, `user-agent` and `origin`, as far as they were sent.
    pub headers: BTreeMap<String, String>,
    /// Says on which of its streams a question leaves.
    pub streams: Streams,
}

impl fmt::Debug for SessionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionInfo").field("headers", &self.headers.keys()).finish_non_exhaustive()
    }
}

/// A refusal, with its HTTP status.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// HTTP status: 401, 403, 503.
    pub status: u16,
    /// What to do about it; it goes to the client.
    pub message: String,
}

impl fmt::Debug for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Refusal({}: {})", self.status, self.message)
    }
}

/// Takes new sessions.
#[async_trait]
pub trait Acceptor: Send + Sync {
    /// Takes a session; its first frame is the client's `initialize`. Usually starts a [`Peer`](crate::Peer) on `duplex`.
    async fn accept(&self, session: SessionInfo, duplex: FrameDuplex) -> Result<(), Refusal>;

    /// Looks at the headers of every request before anything else is done with it.
    fn authorize(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let _ = headers;
        Ok(())
    }
}
