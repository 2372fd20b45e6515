//! The tools of one turn: collected once, so that the running turn keeps one consistent catalogue.
//!
//! Invariant: an agent sees exactly its own servers' tools; one server that fails does not take the turn down. Names are
//! made by the one name table. Deliberately no limit on their number: nothing is dropped silently.

use greenroom_boundary::ServerName;
use greenroom_boundary::llm::ToolSpec;
use greenroom_boundary::trace::EventKind;
use serde_json::{Value, json};

use super::scripts::ServerReference;
use crate::config::AgentConfig;
use crate::host::HostCore;
use crate::router::{CallContext, NameTable, ToolEntry};

/// The tools of one turn.
#[derive(Clone, Debug, Default)]
pub struct Toolset {
    /// Shown name to server and tool.
    pub names: NameTable,
}

impl Toolset {
    /// Collects the agent's tools; `servers` of `Create` replace the agent's own references.
    pub async fn collect(core: &HostCore, cx: &CallContext, agent: &AgentConfig, servers: Option<&[ServerReference]>) -> Self {
        let mut set = Self::default();
        match servers.filter(|list| !list.is_empty()) {
            Some(list) => {
                for reference in list {
                    set.add_server(core, cx, &ServerName::new(&reference.server_id), reference.tools.as_deref(), None).await;
                }
            }
            None => {
                for reference in &agent.tools {
                    set.add_reference(core, cx, reference).await;
                }
            }
        }
        for other in &agent.agents {
            set.add_server(core, cx, &ServerName::new(other.as_str()), None, None).await;
        }
        set
    }

    /// Adds `server[/tool][:alias]`.
    pub async fn add_reference(&mut self, core: &HostCore, cx: &CallContext, reference: &str) {
        let (path, alias) = match reference.split_once(':') {
            Some((path, alias)) => (path, Some(alias)),
            None => (reference, None),
        };
        match path.split_once('/') {
            Some((server, tool)) => self.add_server(core, cx, &ServerName::new(server), Some(&[tool.to_owned()]), alias).await,
            None => self.add_server(core, cx, &ServerName::new(path), None, alias).await,
        }
    }

    async fn add_server(
        &mut self,
        core: &HostCore,
        cx: &CallContext,
        server: &ServerName,
        only: Option<&[String]>,
        alias: Option<&str>,
    ) {
        let tools = match core.router.list_tools(cx, server).await {
            Ok(tools) => tools,
            Err(error) => {
                let body = json!({"server": server, "code": error.code(), "message": error.to_string()});
                let event =
                    EventKind::Warning { boundary: format!("mcp.{server}"), method: "server_unavailable".to_owned(), body };
                core.drivers.tracer.emit(&cx.scope, cx.agent.as_ref(), event);
                return;
            }
        };
        for spec in tools {
            let Some(tool) = spec.get("name").and_then(Value::as_str).map(str::to_owned) else { continue };
            if only.is_some_and(|only| !only.contains(&tool)) {
                continue;
            }
            let wanted = match alias {
                Some(alias) => alias.to_owned(),
                None if core.is_agent(server) => tool.clone(),
                None => format!("{server}__{tool}"),
            };
            self.names.add(&wanted, ToolEntry { server: server.clone(), tool, spec });
        }
    }

    /// As they are shown to the model.
    pub fn specs(&self) -> Vec<ToolSpec> {
        self.names
            .iter()
            .map(|(name, entry)| ToolSpec {
                name: name.to_owned(),
                description: entry.spec.get("description").and_then(Value::as_str).map(str::to_owned),
                parameters: schema(entry.spec.get("inputSchema")),
            })
            .collect()
    }
}

/// Providers want an object schema with properties.
fn schema(schema: Option<&Value>) -> Value {
    match schema {
        Some(Value::Object(map)) => {
            let mut map = map.clone();
            map.entry("type").or_insert_with(|| json!("object"));
            map.entry("properties").or_insert_with(|| json!({}));
            Value::Object(map)
        }
        _ => json!({"type": "object", "properties": {}}),
    }
}
