//! The tools of one turn: collected once, so that the running turn keeps one consistent catalogue.
//!
//! Invariant: an agent sees exactly its own servers' tools; one server that fails does not take the turn down. Names are
//! made by the one name table. Deliberately no limit on their number: nothing is dropped silently.

use std::collections::BTreeSet;

use greenroom_boundary::ServerName;
use greenroom_boundary::llm::ToolSpec;
use greenroom_boundary::trace::EventKind;
use serde_json::{Value, json};

use super::scripts::ServerReference;
use crate::config::AgentConfig;
use crate::host::HostCore;
use crate::router::{CallContext, CallError, NameTable, ToolEntry};

/// The tools of one turn.
#[derive(Clone, Debug, Default)]
pub struct Toolset {
    /// Shown name to server and tool.
    pub names: NameTable,
}

impl Toolset {
    /// Collects the agent's tools; `servers` of `Create` replace the agent's own references. The servers are asked side by
    /// side, and the order is that of the references.
    pub async fn collect(core: &HostCore, cx: &CallContext, agent: &AgentConfig, servers: Option<&[ServerReference]>) -> Self {
        let mut wanted: Vec<Wanted> = match servers.filter(|list| !list.is_empty()) {
            Some(list) => list.iter().map(Wanted::of_create).collect(),
            None => agent.tools.iter().map(|reference| Wanted::parse(reference)).collect(),
        };
        wanted.extend(agent.agents.iter().map(|other| Wanted::all_of(other.as_str())));
        let lists = core.router.list_each(cx, wanted.iter().map(|wanted| &wanted.server), "tools/list").await;
        let mut set = Self::default();
        let mut told = BTreeSet::new();
        for wanted in &wanted {
            match lists.get(&wanted.server) {
                Some(Ok(tools)) => set.add(core, wanted, tools),
                Some(Err(error)) if told.insert(&wanted.server) => left_out(core, cx, &wanted.server, error),
                _ => {}
            }
        }
        for renamed in set.names.renamed() {
            renamed.warn(&core.drivers.tracer, cx);
        }
        set
    }

    fn add(&mut self, core: &HostCore, wanted: &Wanted, tools: &[Value]) {
        for spec in tools {
            let Some(tool) = spec.get("name").and_then(Value::as_str).map(str::to_owned) else { continue };
            if wanted.only.as_ref().is_some_and(|only| !only.contains(&tool)) {
                continue;
            }
            let server = &wanted.server;
            let name = match &wanted.alias {
                Some(alias) => alias.clone(),
                None if core.is_agent(server) => tool.clone(),
                None => format!("{server}__{tool}"),
            };
            self.names.add(&name, ToolEntry { server: server.clone(), tool, spec: spec.clone() });
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

/// What an agent may use: `server[/tool][:alias]`, read.
struct Wanted {
    server: ServerName,
    only: Option<Vec<String>>,
    alias: Option<String>,
}

impl Wanted {
    fn all_of(server: &str) -> Self {
        Self { server: ServerName::new(server), only: None, alias: None }
    }

    fn parse(reference: &str) -> Self {
        let (path, alias) = reference.split_once(':').map_or((reference, None), |(path, alias)| (path, Some(alias.to_owned())));
        let (server, tool) = path.split_once('/').map_or((path, None), |(server, tool)| (server, Some(vec![tool.to_owned()])));
        Self { server: ServerName::new(server), only: tool, alias }
    }

    fn of_create(reference: &ServerReference) -> Self {
        Self { server: ServerName::new(&reference.server_id), only: reference.tools.clone(), alias: None }
    }
}

fn left_out(core: &HostCore, cx: &CallContext, server: &ServerName, error: &CallError) {
    let body = json!({"server": server, "code": error.code(), "message": error.to_string()});
    let event = EventKind::Warning { boundary: format!("mcp.{server}"), method: "server_unavailable".to_owned(), body };
    core.drivers.tracer.emit(&cx.scope, cx.agent.as_ref(), event);
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
