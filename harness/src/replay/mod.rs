//! The replayer: drivers that serve a cassette, with no process and no network.
//!
//! Invariant: in strict mode the events of the replayed lanes happen in their recorded order; an event from outside is given
//! to the host when everything recorded before it has happened again, and the host has come to rest. A request that was not
//! recorded is an error with its reason, never the nearest answer. All waiting is for events; only `paced` replay looks at
//! the clock. Deliberately no causal mode: cassettes do not carry causes yet.

mod answers;
mod cli;
pub(crate) mod client;
mod llm;
mod mcp;
mod miss;
mod schedule;
mod session;

pub use cli::ReplayCli;
pub use client::{ClientAnswer, ReplayClient};
pub use llm::ReplayLlm;
pub use mcp::ReplayMcp;
pub use miss::{Candidate, ReplayMiss, ReplayProblem, Unused};
pub use session::{Mode, RecordedStimulus, Replay, ReplayOptions};
