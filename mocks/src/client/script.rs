//! The script of an outside client: what a scenario file holds under `client.NAME`.
//!
//! Invariant: an unknown key is an error. Deliberately the same answers as a scripted server's.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::mcp::McpCall;

/// An outside client: what it can do, and how it answers the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClientScript {
    /// Capabilities of its `initialize`: `sampling: {}`, `elicitation: {form: {}}`, `roots: {listChanged: true}`.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub capabilities: Map<String, Value>,
    /// The revision that it asks for (default: the newest).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Answers to the host's questions, addressed by `when: {method, params}`. A question takes the first one that matches
    /// and is not used up. `crash` hangs up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<McpCall>,
}
