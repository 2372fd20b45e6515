//! `nanobot.meta`: what this host has.
//!
//! Invariant: it tells names and descriptions, never secrets. Deliberately no chats yet.

use std::sync::Weak;

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::host::HostCore;
use crate::router::{CallContext, CallError, ListMethod, Output, Server, ServerRequest};

/// The server.
pub struct MetaServer {
    core: Weak<HostCore>,
}

impl MetaServer {
    /// The server of a host.
    pub fn new(core: Weak<HostCore>) -> Self {
        Self { core }
    }
}

fn list_agents() -> Value {
    json!({
        "name": "list_agents",
        "description": "List the agents of this host",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": false},
        "annotations": {"readOnlyHint": true},
    })
}

#[async_trait]
impl Server for MetaServer {
    fn boundary(&self) -> String {
        "server.nanobot.meta".to_owned()
    }

    async fn request(&self, _cx: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        if let Some(list) = ListMethod::parse(&request.method) {
            (request.sent)();
            return Ok(list.page(if list == ListMethod::Tools { vec![list_agents()] } else { Vec::new() }));
        }
        let name = request.params["name"].as_str().unwrap_or_default();
        if request.method != "tools/call" || name != "list_agents" {
            let hint = "; its only tool is list_agents".to_owned();
            return Err(CallError::UnknownTool { server: "nanobot.meta".to_owned(), tool: name.to_owned(), hint });
        }
        (request.sent)();
        let mut agents = Vec::new();
        if let Some(core) = self.core.upgrade() {
            for (id, agent) in &core.config.agents {
                agents.push(json!({"id": id, "description": agent.description}));
            }
        }
        let structured = json!({"agents": agents});
        Ok(json!({"content": [{"type": "text", "text": structured.to_string()}], "structuredContent": structured}).into())
    }
}
