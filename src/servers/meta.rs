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

fn list_servers() -> Value {
    json!({
        "name": "list_servers",
        "description": "Tell how the servers of this host are doing for this session",
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": false},
        "annotations": {"readOnlyHint": true},
    })
}

impl MetaServer {
    fn agents(&self) -> Value {
        let core = self.core.upgrade();
        let agents = core.iter().flat_map(|core| &core.config.agents);
        json!({"agents": agents.map(|(id, agent)| json!({"id": id, "description": agent.description})).collect::<Vec<_>>()})
    }

    fn servers(&self, cx: &CallContext) -> Value {
        let health = self.core.upgrade().map(|core| core.router.health(cx.root.id)).unwrap_or_default();
        let told = health.into_iter().map(|(name, state)| {
            let mut told = json!({"name": name});
            if let (Value::Object(told), Value::Object(state)) = (&mut told, state.to_value()) {
                told.extend(state);
            }
            told
        });
        json!({"servers": told.collect::<Vec<_>>()})
    }
}

#[async_trait]
impl Server for MetaServer {
    fn boundary(&self) -> String {
        "server.nanobot.meta".to_owned()
    }

    async fn request(&self, cx: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        if let Some(list) = ListMethod::parse(&request.method) {
            (request.sent)();
            return Ok(list.page(if list == ListMethod::Tools { vec![list_agents(), list_servers()] } else { Vec::new() }));
        }
        let name = request.params["name"].as_str().unwrap_or_default();
        if request.method != "tools/call" || !["list_agents", "list_servers"].contains(&name) {
            let hint = "; its tools are list_agents and list_servers".to_owned();
            return Err(CallError::UnknownTool { server: "nanobot.meta".to_owned(), tool: name.to_owned(), hint });
        }
        let structured = if name == "list_agents" { self.agents() } else { self.servers(cx) };
        (request.sent)();
        Ok(json!({"content": [{"type": "text", "text": structured.to_string()}], "structuredContent": structured}).into())
    }
}
