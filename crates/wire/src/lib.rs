//! MCP on the wire: raw JSON-RPC frames, connections in both roles, stdio and Streamable HTTP.
//!
//! Invariant: the wire loses nothing. A [`Frame`] is kept as the bytes that came; its envelope is looked at in place, and
//! forwarding rewrites only ids, progress tokens and params that the caller replaced. Within a connection, order is kept.
//! This crate deliberately knows no MCP feature (tools, prompts, resources) beyond the handshake, progress, cancellation
//! and ping, and opens no process and no connection of its own: drivers do, and hand it the ends.
//!
//! | what | where |
//! |---|---|
//! | a frame's meaning | [`Envelope`], [`Message`], [`RequestId`], [`RpcError`] |
//! | new frames, changed frames | [`frame`], [`splice`] |
//! | one connection, either role | [`Peer`], [`PeerHandler`] |
//! | newline framing, in-memory pairs | [`stdio`], [`pipe`] |
//! | Streamable HTTP | [`http`] |
//! | protocol revisions and the handshake | [`ProtocolVersion`], [`handshake`] |

mod doubled;
pub mod envelope;
pub mod error;
pub mod frame;
pub mod handshake;
pub mod http;
pub mod id;
pub mod peer;
mod pipe;
pub mod splice;
pub mod stdio;
pub mod version;

pub use doubled::has_doubled_keys;
pub use envelope::{Envelope, Message};
pub use error::{RpcError, WireError};
pub use frame::{error_frame, notification_frame, request_frame, response_frame};
pub use greenroom_boundary::RawJson;
pub use greenroom_boundary::mcp::{Frame, FrameDuplex, FrameSink, FrameSource, McpError};
pub use handshake::{ClientHello, HandshakeError, ServerHello, client_handshake, server_hello};
pub use id::{ProgressToken, RequestId};
pub use peer::{
    DropReason, IncomingRequest, OnAnswer, OnProgress, OnSend, Peer, PeerHandler, PeerOptions, Progress, RequestError,
    RequestOptions,
};
pub use pipe::pipe;
pub use version::{ProtocolVersion, negotiate};
