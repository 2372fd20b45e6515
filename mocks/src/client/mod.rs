//! Scripted outside clients: whoever speaks to a host, as data.
//!
//! Invariant: a client answers what its script foresees, at the scripted time of the clock it was given, and anything else
//! with an error that says what would have matched. Deliberately no calls of its own: a scenario's steps make those.

mod script;
mod scripted;

pub use script::ClientScript;
pub use scripted::ScriptedClient;
