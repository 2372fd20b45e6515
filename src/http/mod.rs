//! The host on HTTP: MCP's Streamable HTTP at `/mcp`.
//!
//! Invariant: only loopback origins may call unless the operator names others. Deliberately no page yet.

#[cfg(feature = "v8")]
mod inspect;
mod serve;

#[cfg(feature = "v8")]
pub use inspect::InspectFront;
pub use serve::{HttpFront, MCP_PATH};
