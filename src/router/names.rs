//! One table from (server, tool) to the name that a model or client sees.
//!
//! Invariant: the exact name that was shown always routes; a near miss never does. Names are made by rule and order of
//! declaration, never by chance. Deliberately no lookup by description.

use std::collections::BTreeMap;

use greenroom_boundary::ServerName;
use serde_json::Value;

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
    /// Whether calling it again does no harm, by its own word.
    pub fn is_idempotent(&self) -> bool {
        let hint = |name: &str| self.spec.pointer(&format!("/annotations/{name}")).and_then(Value::as_bool).unwrap_or(false);
        hint("idempotentHint") || hint("readOnlyHint")
    }
}

/// Shown names and what they stand for, in order of declaration.
#[derive(Clone, Debug, Default)]
pub struct NameTable {
    order: Vec<String>,
    entries: BTreeMap<String, ToolEntry>,
}

impl NameTable {
    /// Adds a tool under the name `wanted`, cleaned for providers; a taken name gets `_2`, `_3`, … Returns the name given.
    pub fn add(&mut self, wanted: &str, entry: ToolEntry) -> String {
        let clean: String =
            wanted.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect();
        let clean: String = clean.chars().take(MAX_NAME_CHARS).collect();
        let clean = if clean.is_empty() { "tool".to_owned() } else { clean };
        let mut name = clean.clone();
        let mut number = 2;
        while self.entries.contains_key(&name) {
            let suffix = format!("_{number}");
            name = clean.chars().take(MAX_NAME_CHARS - suffix.len()).collect::<String>() + &suffix;
            number += 1;
        }
        self.order.push(name.clone());
        self.entries.insert(name.clone(), entry);
        name
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
