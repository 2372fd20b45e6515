//! What outside clients see: published tools, prompts and resources.
//!
//! Invariant: the exact name that is listed can be called. Without a `publish` section the agents are published, or all
//! external servers if there are none. Deliberately made anew for each list, so that changes show.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_boundary::ServerName;
use serde_json::{Value, json};

use crate::config::ServerKind;
use crate::host::HostCore;
use crate::router::{CallContext, CallError, NameTable, ToolEntry};
use crate::servers::PROMPTS_SERVER;

/// The list of tools.
pub(super) const TOOLS: &str = "tools/list";
/// The list of prompts.
pub(super) const PROMPTS: &str = "prompts/list";

/// A server, and its own name for what is meant.
pub(super) type Owner = (ServerName, String);

/// Why no server is behind a name.
pub(super) enum Unowned {
    /// A server that may have it is out of reach.
    Failed(CallError),
    /// Nobody has it.
    Unknown {
        /// The shown name that is nearest.
        nearest: Option<String>,
    },
}

/// The published tools, or prompts.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// Published name to server and tool (or prompt).
    pub entries: NameTable,
    /// Why a server is left out, if one is.
    pub failed: Option<CallError>,
    /// Names that may belong to a server before theirs that is out of reach, and why it is.
    uncertain: BTreeMap<String, CallError>,
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
        let known = cx.root.shown.owners(core, method);
        let mut catalogue = Self { entries: NameTable::for_clients(known.clone()), ..Self::default() };
        let mut failures: Vec<(Option<&str>, &CallError)> = Vec::new();
        for (server, only, alias) in &parsed {
            match lists.get(server) {
                Some(Ok(items)) => {
                    for name in catalogue.add(server, *only, *alias, items) {
                        let before = failures.iter().find(|(only, _)| only.is_none_or(|only| only == name));
                        if let Some((_, error)) = before.filter(|_| !known.contains_key(&name)) {
                            catalogue.uncertain.insert(name, (*error).clone());
                        }
                    }
                }
                Some(Err(error)) => {
                    let reason = core.drivers.credentials.mask(&error.to_string());
                    tracing::warn!(server = %server, code = error.code(), "server left out of the list: {reason}");
                    failures.push((only.map(|only| alias.unwrap_or(only)), error));
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

    fn add(&mut self, server: &ServerName, only: Option<&str>, alias: Option<&str>, items: &[Value]) -> Vec<String> {
        let mut names = Vec::new();
        for spec in items {
            let Some(tool) = spec.get("name").and_then(Value::as_str).map(str::to_owned) else { continue };
            if only.is_none_or(|only| only == tool) {
                let shown = alias.unwrap_or(&tool).to_owned();
                names.push(self.entries.add(&shown, ToolEntry { server: server.clone(), tool, spec: spec.clone() }));
            }
        }
        names
    }

    /// Which server is behind a name: what the client was shown holds; what it was not is looked up now.
    pub(super) async fn owner(core: &Arc<HostCore>, cx: &CallContext, method: &str, name: &str) -> Result<Owner, Unowned> {
        if let Some(owner) = cx.root.shown.owner(core, method, name) {
            return Ok(owner);
        }
        let catalogue = match method {
            PROMPTS => Self::prompts(core, cx).await,
            _ => Self::collect(core, cx).await,
        };
        let certain = catalogue.entries.iter().filter(|(name, _)| !catalogue.uncertain.contains_key(*name));
        cx.root.shown.note(core, method, certain.map(owned));
        match (catalogue.entries.get(name), catalogue.uncertain.get(name)) {
            // The name may be that of another tool: better none than the wrong one.
            (Some(_), Some(error)) => Err(Unowned::Failed(error.clone())),
            (Some(entry), None) => Ok((entry.server.clone(), entry.tool.clone())),
            // It may be a tool of a server that is out of reach: then that is the news.
            (None, _) => Err(match catalogue.failed {
                Some(error) => Unowned::Failed(error),
                None => Unowned::Unknown { nearest: catalogue.entries.nearest(name).map(str::to_owned) },
            }),
        }
    }

    /// As the list method shows them to the client of the session, who may rely on the names from now on.
    pub(super) fn show(&self, core: &Arc<HostCore>, cx: &CallContext, method: &str) -> Vec<Value> {
        cx.root.shown.note(core, method, self.entries.iter().map(owned));
        let mut shown = self.list();
        if method == TOOLS {
            // The protocol wants one; clients refuse whole lists without it.
            for tool in shown.iter_mut().filter(|tool| !tool.get("inputSchema").is_some_and(Value::is_object)) {
                tool["inputSchema"] = json!({"type": "object"});
            }
        }
        shown
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

fn owned((name, entry): (&str, &ToolEntry)) -> (String, Owner) {
    (name.to_owned(), (entry.server.clone(), entry.tool.clone()))
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
