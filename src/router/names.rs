//! One table from (server, tool) to the name that a model or client sees.
//!
//! Invariant: the exact name that was shown always routes; a near miss never does. Names are made by rule and order of
//! declaration, never by chance. Deliberately no lookup by description.

use std::collections::BTreeMap;

use greenroom_boundary::trace::EventKind;
use greenroom_boundary::{ServerName, Tracer};
use serde_json::{Value, json};

use super::CallContext;
use crate::sessions::Owners;

pub use greenroom_harness::load::nearest;

/// Which names may be shown.
#[derive(Clone, Copy, Debug)]
struct Rule {
    max_chars: usize,
    /// What a name may have besides letters, digits and `_`.
    further: &'static [char],
}

/// What every provider of models takes.
const MODELS: Rule = Rule { max_chars: 64, further: &['-'] };
/// What MCP allows (2025-11-25, tool names).
const CLIENTS: Rule = Rule { max_chars: 128, further: &['-', '.'] };

impl Default for Rule {
    fn default() -> Self {
        MODELS
    }
}

/// A tool as it is shown.
#[derive(Clone, Debug)]
pub struct ToolEntry {
    /// The server behind it.
    pub server: ServerName,
    /// The tool's name at the router (after overrides).
    pub tool: String,
    /// The tool object as the server wrote it, overrides applied.
    pub spec: Value,
}

impl ToolEntry {
    /// Whether calling it again does no harm, by its own word.
    pub fn is_idempotent(&self) -> bool {
        let hint = |name: &str| self.spec.pointer(&format!("/annotations/{name}")).and_then(Value::as_bool).unwrap_or(false);
        hint("idempotentHint") || hint("readOnlyHint")
    }
}

/// A tool that is shown under another name than it should be, as that one was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renamed {
    /// The name it has.
    pub shown: String,
    /// The name it should have.
    pub wanted: String,
    /// Its server.
    pub server: ServerName,
    /// The tool.
    pub tool: String,
    /// The tool that has that name, `server/tool`.
    pub taken_by: String,
}

impl Renamed {
    /// Says so in the trace and in the log.
    pub(crate) fn warn(&self, tracer: &Tracer, cx: &CallContext) {
        let Self { shown, wanted, server, tool, taken_by } = self;
        tracing::warn!(
            "{server}/{tool} is shown as {shown}, as {taken_by} is called {wanted} already; give one of them an alias"
        );
        let body = json!({"name": wanted, "tool": tool, "takenBy": taken_by, "shownAs": shown});
        let event = EventKind::Warning { boundary: format!("mcp.{server}"), method: "name_taken".to_owned(), body };
        tracer.emit(&cx.scope, cx.agent.as_ref(), event);
    }
}

/// Shown names and what they stand for, in order of declaration.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    order: Vec<String>,
    entries: BTreeMap<String, ToolEntry>,
    renamed: Vec<Renamed>,
    /// Names that stand for a tool already, though it may be out of reach.
    reserved: Owners,
    /// From which number on a taken name is tried again.
    next: BTreeMap<String, usize>,
    rule: Rule,
    /// What a tool was named, by server, tool and the name wanted.
    given: BTreeMap<(ServerName, String, String), String>,
}

impl NameTable {
    /// A table for clients, in which some names have their owner already.
    pub(crate) fn for_clients(reserved: Owners) -> Self {
        Self { reserved, rule: CLIENTS, ..Self::default() }
    }

    /// Who has a name.
    fn owner(&self, name: &str) -> Option<(&ServerName, &str)> {
        let entry = self.entries.get(name).map(|entry| (&entry.server, entry.tool.as_str()));
        entry.or_else(|| self.reserved.get(name).map(|(server, tool)| (server, tool.as_str())))
    }

    /// Adds a tool under the name `wanted`, cleaned for whoever is shown it; a taken name gets `_2`, `_3`, … Returns the name given.
    /// The same tool under the same name is there once.
    pub fn add(&mut self, wanted: &str, entry: ToolEntry) -> String {
        let Rule { max_chars, further } = self.rule;
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || further.contains(&c);
        let clean: String = wanted.chars().map(|c| if is_allowed(c) { c } else { '_' }).take(max_chars).collect();
        let clean = if clean.is_empty() { "tool".to_owned() } else { clean };
        let mut name = clean.clone();
        let mut taken_by = None;
        let own = (entry.server.clone(), entry.tool.clone(), clean.clone());
        if let Some(name) = self.given.get(&own) {
            return name.clone();
        }
        let mut number = self.next.get(&clean).copied().unwrap_or(2);
        while let Some((server, tool)) = self.owner(&name) {
            if *server == entry.server && tool == entry.tool {
                if self.entries.contains_key(&name) {
                    return name;
                }
                break;
            }
            taken_by.get_or_insert_with(|| format!("{server}/{tool}"));
            let suffix = format!("_{number}");
            name = clean.chars().take(max_chars - suffix.len()).collect::<String>() + &suffix;
            number += 1;
        }
        if taken_by.is_some() {
            self.next.insert(clean.clone(), number);
        }
        self.given.insert(own, name.clone());
        if let Some(taken_by) = taken_by {
            self.renamed.push(Renamed {
                shown: name.clone(),
                wanted: clean,
                server: entry.server.clone(),
                tool: entry.tool.clone(),
                taken_by,
            });
        }
        self.order.push(name.clone());
        self.entries.insert(name.clone(), entry);
        name
    }

    /// The tools whose name was taken, in order of declaration.
    pub fn renamed(&self) -> &[Renamed] {
        &self.renamed
    }

    /// What a shown name stands for.
    pub fn get(&self, name: &str) -> Option<&ToolEntry> {
        self.entries.get(name)
    }

    /// All (name, tool) pairs in order of declaration.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ToolEntry)> {
        self.order.iter().filter_map(|name| Some((name.as_str(), self.entries.get(name)?)))
    }

    /// The shown name nearest to `name`.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        nearest(name, self.order.iter().map(String::as_str))
            .and_then(|found| self.order.iter().find(|n| n.as_str() == found).map(String::as_str))
    }

    /// Whether it has no tools.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}
