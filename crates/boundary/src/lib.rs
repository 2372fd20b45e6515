//! The boundaries of a Greenroom host: one trait per place where the host meets the world, with plain types.
//!
//! Invariant: nothing here touches the world. A trait here has at least one real and one simulated driver elsewhere, and
//! one conformance suite (feature `conformance`) that runs over all of them. Every call that can wait takes a
//! [`CancellationToken`]. This crate deliberately holds no driver, no protocol logic and no heavy dependency.
//!
//! | boundary | trait | module |
//! |---|---|---|
//! | LLM connector | [`Llm`] | [`llm`] |
//! | external MCP server | [`McpConnector`] | [`mcp`] |
//! | CLI sandbox runner | [`CliRunner`] | [`cli`] |
//! | isolate (script engine) | [`IsolateDriver`] | [`isolate`] |
//! | clock | [`Clock`] | [`clock`] |
//! | entropy | [`Entropy`] | [`entropy`] |
//! | egress | [`Egress`] | [`egress`] |
//! | audit sink | [`AuditSink`] | [`audit`] |
//! | search | [`Search`] | [`search`] |
//! | workspace | [`Workspace`] | [`workspace`] |
//!
//! The [`trace`] module is the one vocabulary of events; host, recorder, replayer, expectations and reporters speak it.

pub mod audit;
pub mod cli;
pub mod clock;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod coverage;
pub mod drivers;
pub mod egress;
pub mod entropy;
pub mod ids;
pub mod isolate;
pub mod llm;
pub mod mcp;
pub mod script;
pub mod search;
pub mod secrets;
pub mod trace;
pub mod web;
pub mod workspace;

pub use audit::AuditSink;
pub use cli::CliRunner;
pub use clock::Clock;
pub use drivers::Drivers;
pub use egress::Egress;
pub use entropy::Entropy;
pub use ids::{AgentId, ConnectorName, Scope, ServerName, SpanId, ToolName};
pub use isolate::IsolateDriver;
pub use llm::Llm;
pub use mcp::McpConnector;
pub use search::Search;
pub use secrets::Credentials;
pub use tokio_util::sync::CancellationToken;
pub use trace::Tracer;
pub use workspace::{Workspace, Workspaces};

/// JSON text kept as it was written; the currency of the script bridge and of the wire.
pub type RawJson = Box<serde_json::value::RawValue>;

/// A boxed future that owns what it needs.
pub type BoxFuture<'a, T> = futures::future::BoxFuture<'a, T>;

/// A boxed stream that owns what it needs.
pub type BoxStream<'a, T> = futures::stream::BoxStream<'a, T>;
