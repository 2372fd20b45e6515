//! One table from (server, tool) to the name that a model or client sees.
//!
//! Invariant: the exact name that was shown always routes; a near miss never does. Names are made by rule and order of
//! declaration, never by chance. Deliberately no lookup by description.

use std::collections::BTreeMap;

use greenroom_boundary::trace::EventKind;
use greenroom_boundary::{ServerName, Tracer};
use serde_json::{Value, json};

use super::CallContext;

pub use greenroom_harness::load::nearest;

/// Longest name that every provider takes.
const MAX_NAME_CHARS: usize = 64;

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
    fn path(&self) -> String {
        format!("{}/{}", self.server, self.tool)
    }

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
}

impl NameTable {
    /// Adds a tool under the name `wanted`, cleaned for providers; a taken name gets `_2`, `_3`, … Returns the name given.
    /// The same tool under the same name is there once.
    pub fn add(&mut self, wanted: &str, entry: ToolEntry) -> String {
        let clean: String =
            wanted.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect();
        let clean: String = clean.chars().take(MAX_NAME_CHARS).collect();
        let clean = if clean.is_empty() { "tool".to_owned() } else { clean };
        let mut name = clean.clone();
        let mut number = 2;
        let mut taken_by = None;
        while let Some(other) = self.entries.get(&name) {
            if other.server == entry.server && other.tool == entry.tool {
                return name;
            }
            taken_by.get_or_insert_with(|| other.path());
            let suffix = format!("_{number}");
            name = clean.chars().take(MAX_NAME_CHARS - suffix.len()).collect::<String>() + &suffix;
            number += 1;
        }
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
