//! The host on HTTP: MCP's Streamable HTTP at `/mcp`.
//!
//! Invariant: only loopback origins may call unless the operator names others. Deliberately no page yet.

mod serve;

pub use serve::{HttpFront, MCP_PATH};
