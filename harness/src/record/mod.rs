//! The recorder: wrappers over the drivers of the LLM, MCP and CLI boundaries that write what passes into a cassette.
//!
//! Invariant: recording never changes or fails the session; a recorder's own failure is counted and reported at the seal.
//! An event is written when the host sends or receives it, so `seq` is the order that the host saw; between two
//! events from outside the host comes to rest. Deliberately no isolate,
//! clock or entropy lane: scripts run again in a replay, and ids come from the head's seed.

pub(crate) mod cli;
mod gate;
mod llm;
pub(crate) mod mcp;
mod recording;
mod tap;

pub use cli::RecordingCli;
pub use gate::let_in;
pub use llm::RecordingLlm;
pub use mcp::RecordingMcp;
pub use recording::{HeadSpec, Recording, SealError, SealReport};
pub use tap::RecordingTap;
