//! The client's side of Streamable HTTP, as a duplex of frames.
//!
//! Invariant: a notification or an answer has been taken by the server before the next frame is sent; requests run side by
//! side. A request whose HTTP exchange fails gets an error answer (code [`RpcError::TRANSPORT`](crate::RpcError::TRANSPORT))
//! that says so, and the session goes on; a session that the server has forgotten ends the connection. Deliberately no
//! connection of its own making: the driver builds the HTTP client, after its egress check.

mod exchange;
mod session;
mod stream;

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_boundary::Clock;
use greenroom_boundary::mcp::{FrameDuplex, McpError};
use tokio::sync::mpsc;

use session::{HttpSink, HttpSource, Session};

/// Where the server is and how it is spoken to.
#[derive(Clone, Debug)]
pub struct HttpClientOptions {
    /// Names the server in errors.
    pub server: String,
    /// The endpoint.
    pub url: String,
    /// Headers for every request.
    pub headers: BTreeMap<String, String>,
    /// The largest message that is accepted.
    pub limit_bytes: usize,
    /// Measures the wait before a stream is opened again.
    pub clock: Arc<dyn Clock>,
}

/// A connection to the server; nothing is sent before the first frame.
pub fn duplex(client: reqwest::Client, options: HttpClientOptions) -> Result<FrameDuplex, McpError> {
    let (inbox, received) = mpsc::channel(INBOX_FRAMES);
    let session = Arc::new(Session::new(client, options, inbox)?);
    let closing = session.closing.clone();
    Ok(FrameDuplex { sink: Box::new(HttpSink::new(session)), source: Box::new(HttpSource::new(received, closing)) })
}

/// How many frames wait for the reader before the streams do.
const INBOX_FRAMES: usize = 256;
