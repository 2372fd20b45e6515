//! Greenroom: an MCP host you can rehearse.
//!
//! A host whose every boundary is a swappable driver, and the command that runs, records, replays and tests it.
//!
//! Invariant: agents, built-in servers, hooks, scripts and outside clients reach a server only through
//! [`router::Router`]; only [`drivers`] touch the world. The map of the code is docs/ARCHITECTURE.md.

pub mod agents;
pub mod cli;
pub mod config;
pub mod context;
pub mod drivers;
pub mod front;
pub mod hook_run;
pub mod hooks;
pub mod host;
pub mod http;
pub mod rehearsal;
pub mod router;
pub mod script_coverage;
pub mod scripts;
pub mod servers;
pub mod sessions;

pub use host::Host;
