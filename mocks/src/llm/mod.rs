//! Simulated models: a script of turns, a switch between connectors, and a model that refuses.
//!
//! Invariant: a request that no turn foresees is an error that names the nearest turn and what differs; nothing is made
//! up. Deliberately no dialect: the simulation stands at the LLM boundary, not at a provider's HTTP.

mod chunks;
mod matching;
mod script;
mod scripted;
mod switch;

pub use script::{
    Chunking, LlmReply, LlmScript, LlmTurn, LlmWhen, ScriptedCall, ScriptedError, ScriptedUsage, StreamShape, TokenRate,
    ToolResultWhen,
};
pub use scripted::ScriptedLlm;
pub use switch::{DenyLlm, LlmSwitch};
