//! The host as an MCP server for outside clients, whatever transport carries them.
//!
//! Invariant: an outside call goes through the router like any other; a result that nothing changed leaves as the bytes
//! that came. Deliberately no transport here: a connection is a duplex of frames.

mod catalogue;
mod client;
mod handler;
mod hooked;
mod introduction;
mod resources;
mod wishes;

pub use catalogue::Catalogue;
pub(crate) use catalogue::publishes;
pub use handler::{Arrival, OutsideCall, answer, serve, serve_as, told};
pub(crate) use handler::{PROGRESS, boundary, note, progress};
