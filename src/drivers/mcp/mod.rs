//! External MCP servers, for real: child processes on stdio, and Streamable HTTP.
//!
//! Invariant: a process starts with a cleared environment and dies with its connection, whole group included; an HTTP
//! endpoint is contacted only after [`Egress`](greenroom_boundary::Egress) allowed it. Deliberately nothing of MCP itself:
//! frames pass as they are.

mod connector;
mod exchange;
mod http;
mod process;
mod shutdown;
mod stderr;

pub use connector::{RealMcp, RealMcpLimits};
