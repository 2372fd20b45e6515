//! Streamable HTTP (revisions 2025-03-26 to 2025-11-25), both roles.
//!
//! Invariant: to the rest of the host a session is a [`FrameDuplex`](crate::FrameDuplex) like any other. Deliberately no
//! batches, and a server here does not let a client resume a stream.

pub mod client;
pub mod server;
pub mod sse;

/// Header that names the session.
pub const SESSION_HEADER: &str = "mcp-session-id";
/// Header that names the protocol revision.
pub const VERSION_HEADER: &str = "mcp-protocol-version";

const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";
