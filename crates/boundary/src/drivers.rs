//! The set of drivers that a host runs on.
//!
//! Invariant: a host reaches the world through exactly this set. What is not listed is denied by the driver that stands
//! there, never by falling through to a real one.

use std::sync::Arc;

use crate::{
    AuditSink, CliRunner, Clock, Credentials, Egress, Entropy, IsolateDriver, Llm, McpConnector, Search, Tracer, Workspaces,
};

/// One driver per boundary. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Drivers {
    /// All LLM connectors: [`crate::llm::LlmRequest::connector`] says which is meant.
    pub llm: Arc<dyn Llm>,
    /// External MCP servers.
    pub mcp: Arc<dyn McpConnector>,
    /// CLI sandbox runner.
    pub cli: Arc<dyn CliRunner>,
    /// Script engine.
    pub isolate: Arc<dyn IsolateDriver>,
    /// Clock.
    pub clock: Arc<dyn Clock>,
    /// Entropy.
    pub entropy: Arc<dyn Entropy>,
    /// Policy on outgoing connections.
    pub egress: Arc<dyn Egress>,
    /// Search on the web, in knowledge bases and in tables.
    pub search: Arc<dyn Search>,
    /// The folders that agents work in.
    pub workspaces: Arc<dyn Workspaces>,
    /// Where the audit stream goes.
    pub audit: Arc<dyn AuditSink>,
    /// Where the host's events go.
    pub tracer: Tracer,
    /// The secrets that the host learns while it loads its config.
    pub credentials: Credentials,
}
