//! Scripted MCP servers: external servers as data.
//!
//! Invariant: a server says exactly what its script says, at the scripted time of the clock it was given; a request that
//! the script does not foresee gets an error that names it. Deliberately no behaviour of its own beyond the handshake,
//! `ping` and the lists.

mod answer;
mod asks;
mod pipe;
mod script;
mod server;
mod session;
mod switch;

pub use script::{
    McpAnswer, McpAsk, McpCall, McpInitialize, McpNotification, McpProgress, McpScript, McpWhen, OnCancel, RpcError,
};
pub use server::ScriptedMcp;
pub use switch::{DenyMcp, McpSwitch};
