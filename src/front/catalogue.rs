//! What outside clients see: published tools, prompts and resources.
//!
//! Invariant: the exact name that is listed can be called. Without a `publish` section the agents are published, or all
//! external servers if there are none. Deliberately made anew for each list, so that changes show.

use std::sync::Arc;

use greenroom_boundary::ServerName;
use serde_json::{Value, json};

use crate::config::ServerKind;
use crate::host::HostCore;
use crate::router::{CallContext, CallError, NameTable, ToolEntry};
use crate::servers::PROMPTS_SERVER;

/// The published tools, or prompts.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Published name to server and tool (or prompt).
    pub entries: NameTable,
    /// Why a server is left out, if one is.
    pub failed: Option<CallError>,
}

impl Catalogue {
    /// Collects what is published now; a server that fails is left out with a warning in the trace.
    pub async fn collect(core: &Arc<HostCore>, cx: &CallContext) -> Self {
        Self::of(core, cx, &tool_references(core), "tools/list").await
    }

    /// Collects the published prompts: those that `publish.prompts` names, else all of the config.
    pub async fn prompts(core: &Arc<HostCore>, cx: &CallContext) -> Self {
        Self::of(core, cx, &prompt_references(core), "prompts/list").await
    }

    /// The servers are asked side by side; the order is that of the references.
    async fn of(core: &Arc<HostCore>, cx: &CallContext, references: &[String], method: &str) -> Self {
        let parsed: Vec<_> = references.iter().map(|reference| parse(reference)).collect();
        let lists = core.router.list_each(cx, parsed.iter().map(|(server, ..)| server), method).await;
        let mut catalogue = Self::default();
        for (server, only, alias) in &parsed {
            match lists.get(server) {
                Some(Ok(items)) => catalogue.add(server, *only, *alias, items),
                Some(Err(error)) => {
                    let reason = core.drivers.credentials.mask(&error.to_string());
                    tracing::warn!(server = %server, code = error.code(), "server left out of the list: {reason}");
                    catalogue.failed.get_or_insert_with(|| error.clone());
                }
                None => {}
            }
        }
        for renamed in catalogue.entries.renamed() {
            renamed.warn(&core.drivers.tracer, cx);
        }
        catalogue
    }

    fn add(&mut self, server: &ServerName, only: Option<&str>, alias: Option<&str>, items: &[Value]) {
        for spec in items {
            let Some(tool) = spec.get("name").and_then(Value::as_str).map(str::to_owned) else { continue };
            if only.is_none_or(|only| only == tool) {
                let shown = alias.unwrap_or(&tool).to_owned();
                self.entries.add(&shown, ToolEntry { server: server.clone(), tool, spec: spec.clone() });
            }
        }
    }

    /// As the list method shows them.
    pub fn list(&self) -> Vec<Value> {
        let shown = self.entries.iter().map(|(name, entry)| {
            let mut spec = entry.spec.clone();
            spec["name"] = json!(name);
            spec
        });
        shown.collect()
    }
}

/// `server[/item][:alias]`, read.
fn parse(reference: &str) -> (ServerName, Option<&str>, Option<&str>) {
    let (path, alias) = reference.split_once(':').map_or((reference, None), |(path, alias)| (path, Some(alias)));
    let (server, only) = path.split_once('/').map_or((path, None), |(server, tool)| (server, Some(tool)));
    (ServerName::new(server), only, alias)
}

/// Servers whose resources and prompts are published.
pub(super) fn external_servers(core: &HostCore) -> Vec<String> {
    let external = core.config.servers.iter().filter(|(_, server)| matches!(server.kind, ServerKind::External(_)));
    external.map(|(name, _)| name.to_string()).collect()
}

fn tool_references(core: &HostCore) -> Vec<String> {
    let publish = &core.config.publish;
    let mut references: Vec<String> = core.config.entry_agents().iter().map(ToString::to_string).collect();
    references.extend(publish.mcp_servers.entries());
    references.extend(publish.tools.entries());
    if references.is_empty() { external_servers(core) } else { references }
}

fn prompt_references(core: &HostCore) -> Vec<String> {
    let named = core.config.publish.prompts.entries();
    let own = |name: String| if core.config.prompts.contains_key(&name) { format!("{PROMPTS_SERVER}/{name}") } else { name };
    if named.is_empty() { vec![PROMPTS_SERVER.to_owned()] } else { named.into_iter().map(own).collect() }
}

/// Servers whose resources are published.
pub(super) fn resource_servers(core: &HostCore) -> Vec<String> {
    let named = core.config.publish.resources.entries();
    let nothing_published = core.config.agents.is_empty() && core.config.publish.mcp_servers.entries().is_empty();
    if named.is_empty() && nothing_published { external_servers(core) } else { named }
}

/// Whether a list that clients see can change when a server says that its own has (`notifications/tools/list_changed`, …).
pub(crate) fn publishes(core: &HostCore, server: &ServerName, notice: &str) -> bool {
    let references = match notice {
        "notifications/tools/list_changed" => tool_references(core),
        "notifications/prompts/list_changed" => prompt_references(core),
        _ => resource_servers(core),
    };
    references.iter().any(|reference| reference.split([':', '/']).next() == Some(server.as_str()))
}
