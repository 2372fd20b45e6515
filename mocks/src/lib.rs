//! Simulated drivers of Greenroom's boundaries, for scenarios and for tests.
//!
//! Invariant: nothing here touches the world; what a script does not foresee is an error that says so. With the same
//! seed the same calls give the same answers, byte for byte. Deliberately no scenario model: the harness builds these
//! drivers from a scenario's `drivers:` section.
//!
//! | boundary | driver | module |
//! |---|---|---|
//! | clock | [`VirtualClock`] | [`clock`] |
//! | entropy | [`SeededEntropy`] | [`entropy`] |
//! | external MCP server | [`mcp::ScriptedMcp`], [`mcp::McpSwitch`], [`mcp::DenyMcp`] | [`mcp`] |
//! | outside client | [`client::ScriptedClient`] | [`client`] |
//! | CLI sandbox runner | [`cli::ScriptedCli`], [`cli::DenyCli`] | [`cli`] |
//! | LLM connector | [`llm::ScriptedLlm`], [`llm::LlmSwitch`], [`llm::DenyLlm`] | [`llm`] |
//! | isolate (script engine) | [`MockIsolate`] | [`isolate`] |
//! | search | [`search::ScriptedSearch`] | [`search`] |
//! | workspace | [`workspace::MemoryWorkspaces`] | [`workspace`] |
//! | egress (HTTP of scripts) | [`egress::ScriptedEgress`] | [`egress`] |
//! | audit sink | [`audit::MemoryAudit`] | [`audit`] |
//!
//! Scripts say what they expect with the operators of [`pattern`].

pub mod audit;
pub mod cli;
pub mod client;
pub mod clock;
pub mod duration;
pub mod egress;
pub mod entropy;
pub mod isolate;
pub mod llm;
pub mod mcp;
pub mod pattern;
pub mod search;
pub mod workspace;

pub use clock::VirtualClock;
pub use duration::{Duration, ScriptDuration, TextDuration};
pub use entropy::SeededEntropy;
pub use isolate::{IsolateScript, MockIsolate};
