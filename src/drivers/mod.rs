//! The real drivers: what stands behind the boundaries when a host meets the world.
//!
//! Invariant: time, randomness, network, processes and environment are touched here and nowhere else (`clippy.toml`
//! enforces it), and each driver passes its boundary's conformance suite. Deliberately no host logic.
//!
//! | boundary | driver |
//! |---|---|
//! | LLM connector | [`llm::OpenAiChat`], all of a config as [`llm::LlmProviders`] |
//! | external MCP server | [`mcp`] |
//! | CLI sandbox runner | [`sandbox`] |
//! | isolate | [`isolate::ProcessIsolates`], around an engine |
//! | clock | [`SystemClock`] |
//! | entropy | [`OsEntropy`] |
//! | egress | [`EgressPolicy`], [`HttpEgress`] |
//! | search | [`search::ConfiguredSearch`] |
//! | workspace | [`FolderWorkspaces`] |
//! | audit sink | [`audit::FileAudit`], [`audit::HttpAudit`] |
//!
//! [`FileWatch`] tells a person's edits; it is no boundary of the host, which never reads a file by itself twice.

pub mod audit;
mod clock;
mod egress;
mod egress_http;
mod entropy;
pub mod isolate;
pub mod llm;
pub mod mcp;
pub mod sandbox;
pub mod search;
mod standard_streams;
mod watch;
mod workspace;

pub use clock::SystemClock;
pub use egress::{EgressPolicy, EgressRule, EgressRuleError};
pub use egress_http::{HttpEgress, HttpEgressError};
pub use entropy::OsEntropy;
pub use standard_streams::{StandardInput, StandardOutput, standard_streams};
pub use watch::{FileWatch, WatchError, real_path};
pub use workspace::FolderWorkspaces;
