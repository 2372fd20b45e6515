//! The host's own MCP servers, made when first needed.
//!
//! Invariant: each is a [`crate::router::Server`] like any other; it reaches the world through drivers only. Deliberately
//! few so far: `nanobot.meta`, `nanobot.system`, `greenroom.prompts`, and a server per script.

mod meta;
mod prompts;
mod script;
mod system;

pub use meta::MetaServer;
pub use prompts::{PROMPTS_SERVER, PromptsServer};
pub use script::ScriptServer;
pub use system::SystemServer;
