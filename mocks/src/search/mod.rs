//! The simulated search: scripted answers on a clock.
//!
//! Invariant: what the script does not foresee is an error that says so. Deliberately no index.

mod script;
mod scripted;

pub use script::{ScriptedAnswer, SearchScript};
pub use scripted::ScriptedSearch;
