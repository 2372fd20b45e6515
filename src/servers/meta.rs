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
    question("list_agents", "List the agents of this host")
}

fn list_servers() -> Value {
    question("list_servers", "List the servers of this host and how they are doing: ready, idle, degraded or disabled")
}

fn agents_of(core: &HostCore) -> Value {
    let agents = core.config.agents.iter().map(|(id, agent)| json!({"id": id, "description": agent.description}));
    json!({"agents": agents.collect::<Vec<_>>()})
}

/// Codes, never messages: what a server or the config says may hold a secret.
fn servers_of(core: &HostCore, cx: &CallContext) -> Value {
    let states = core.router.health(cx.root.id).into_iter().filter(|(name, _)| !core.is_agent(name));
    let servers = states.map(|(name, state)| {
        let mut told = state.to_value();
        told["id"] = json!(name);
        told
    });
    json!({"servers": servers.collect::<Vec<_>>()})
}

fn question(name: &str, description: &str) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": false},
        "annotations": {"readOnlyHint": true},
    })
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
        let agents = name == "list_agents";
        if request.method != "tools/call" || !(agents || name == "list_servers") {
            let hint = "; its tools are list_agents and list_servers".to_owned();
            return Err(CallError::UnknownTool { server: "nanobot.meta".to_owned(), tool: name.to_owned(), hint });
        }
        (request.sent)();
        let core = self.core.upgrade();
        let structured = match &core {
            Some(core) if agents => agents_of(core),
            Some(core) => servers_of(core, cx),
            None => json!({}),
        };
        Ok(json!({"content": [{"type": "text", "text": structured.to_string()}], "structuredContent": structured}).into())
    }
}
