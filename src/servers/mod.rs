//! The host's own MCP servers, made when first needed.
//!
//! Invariant: each is a [`crate::router::Server`] like any other; it reaches the world through drivers only. Deliberately
//! few so far: `nanobot.meta`, `nanobot.system`, and a server per script.

mod meta;
mod script;
mod system;

pub use meta::MetaServer;
pub use script::ScriptServer;
pub use system::SystemServer;
