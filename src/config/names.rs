//! Names in a config that could not be told apart later.
//!
//! Invariant: what passes here can be named by a reference, and no two tools of a server are shown under one name by its
//! overrides. Deliberately no look at what a server offers: the config alone is judged.

use std::collections::BTreeMap;

use super::model::McpServer;

/// What is wrong with a server's name or its overrides, and where.
pub(super) fn check(name: &str, entry: &McpServer) -> Result<(), (String, String)> {
    let at = format!("mcpServers.{name}");
    if name.is_empty() || name.contains(['/', ':']) {
        let message = "a server's name is not empty and has no `/` and no `:`, as references are written server/tool:alias";
        return Err((at, message.to_owned()));
    }
    let mut shown: BTreeMap<&str, &str> = BTreeMap::new();
    for (tool, change) in &entry.tool_overrides {
        let as_what = change.name.as_deref().unwrap_or(tool);
        if let Some(other) = shown.insert(as_what, tool) {
            let message = format!("tools {other} and {tool} would both be called {as_what}; give one of them another name");
            return Err((format!("{at}.toolOverrides.{tool}"), message));
        }
    }
    Ok(())
}
