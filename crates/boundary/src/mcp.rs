//! The boundary to external MCP servers: open a duplex of raw frames.
//!
//! Invariant: a [`Frame`] is the bytes that were on the wire, without the transport's dress (newline, SSE field, HTTP
//! body). Nothing here parses it: that is `greenroom-wire`'s work. Order within a direction is kept.

use std::collections::BTreeMap;
use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{CancellationToken, ServerName};

/// One JSON-RPC message as raw bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Frame(pub Bytes);

impl Frame {
    /// The message's bytes as text; invalid UTF-8 is shown with replacement characters.
    pub fn to_text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({})", self.to_text())
    }
}

impl From<String> for Frame {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

/// How a server is reached, with every placeholder already expanded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerAddress {
    /// A child process on stdio.
    Process {
        /// Program to start.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment, on top of the few variables that every child gets (`PATH`, `HOME`, `USER`).
        env: BTreeMap<String, String>,
        /// Its working folder.
        workdir: Option<String>,
    },
    /// Streamable HTTP.
    Http {
        /// The endpoint.
        url: String,
        /// Headers for every request.
        headers: BTreeMap<String, String>,
    },
    /// Only a simulated driver can answer for it.
    Simulated,
}

/// A request to open a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpTarget {
    /// The server's name in the config.
    pub server: ServerName,
    /// How it is reached.
    pub address: ServerAddress,
}

/// Why a connection could not be opened, or broke.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// The process could not be started or the address could not be reached.
    #[error("server {server} cannot be reached: {message}")]
    Unreachable {
        /// The server.
        server: String,
        /// What happened and what to do.
        message: String,
    },
    /// The connection ended while frames were expected; for a process with its exit status and last stderr lines.
    #[error("server {server} closed the connection: {message}")]
    Closed {
        /// The server.
        server: String,
        /// Exit status, last lines of stderr.
        message: String,
    },
    /// A frame beyond the size limit; that frame is lost, the connection goes on.
    #[error("server {server} sent a message beyond the limit of {limit_bytes} bytes")]
    TooLarge {
        /// The server.
        server: String,
        /// The limit.
        limit_bytes: usize,
    },
    /// The HTTP transport answered with an error status.
    #[error("server {server} answered HTTP {status}: {message}")]
    Status {
        /// The server.
        server: String,
        /// HTTP status code.
        status: u16,
        /// The body, shortened.
        message: String,
    },
    /// The caller cancelled.
    #[error("opening {server} was cancelled")]
    Cancelled {
        /// The server.
        server: String,
    },
    /// Denied in this scenario, or no driver knows this server.
    #[error("{message}")]
    Denied {
        /// The server.
        server: String,
        /// What to do about it.
        message: String,
    },
}

impl McpError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "MCP_UNREACHABLE",
            Self::Closed { .. } => "MCP_CLOSED",
            Self::TooLarge { .. } => "MCP_TOO_LARGE",
            Self::Status { .. } => "MCP_STATUS",
            Self::Cancelled { .. } => "MCP_CANCELLED",
            Self::Denied { .. } => "MCP_DENIED",
        }
    }
}

/// The writing half of a connection.
#[async_trait]
pub trait FrameSink: Send {
    /// Waits until a frame may be sent. A caller that traces its frames does so between this and [`FrameSink::send`].
    async fn ready(&mut self) -> Result<(), McpError> {
        Ok(())
    }

    /// Sends one frame whole; frames are never interleaved.
    async fn send(&mut self, frame: Frame) -> Result<(), McpError>;

    /// How many progress and log messages it has dropped since the last question, because nobody reads them.
    fn take_dropped(&mut self) -> usize {
        0
    }

    /// Ends the connection and frees what stands behind it (the whole process group, sockets). Idempotent.
    async fn close(&mut self);
}

/// The reading half of a connection.
#[async_trait]
pub trait FrameSource: Send {
    /// The next frame, `None` at a clean end. After [`McpError::TooLarge`] more may follow; after other errors not.
    async fn next(&mut self) -> Option<Result<Frame, McpError>>;

    /// After [`McpError::TooLarge`]: the JSON text of the id that the lost message answered, `null` if it answered none,
    /// `None` if that could not be seen.
    fn lost_id(&self) -> Option<String> {
        None
    }

    /// After [`McpError::TooLarge`]: the JSON text of the lost message's own id, if it was a request and that could be seen.
    fn lost_request(&self) -> Option<String> {
        None
    }
}

/// An open connection.
pub struct FrameDuplex {
    /// Host to server.
    pub sink: Box<dyn FrameSink>,
    /// Server to host.
    pub source: Box<dyn FrameSource>,
}

impl fmt::Debug for FrameDuplex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FrameDuplex")
    }
}

/// Opens connections to external MCP servers.
#[async_trait]
pub trait McpConnector: Send + Sync + fmt::Debug {
    /// Opens a fresh connection. Dropping both halves closes it.
    async fn open(&self, target: &McpTarget, cancel: &CancellationToken) -> Result<FrameDuplex, McpError>;
}
