//! Tool overrides: how a server's tools are shown, and what a shown name means upstream.
//!
//! Invariant: a tool that is not listed cannot be called: the allow-list holds for calls as for lists. Deliberately pure.

use serde_json::{Value, json};

use crate::config::ServerConfig;

/// The server's tools as they are shown, with their upstream names.
pub(super) fn shown(config: &ServerConfig, upstream: Vec<Value>) -> Vec<(String, Value)> {
    let mut tools = Vec::new();
    for mut tool in upstream {
        let Some(name) = tool.get("name").and_then(Value::as_str).map(str::to_owned) else { continue };
        let mut shown_name = name.clone();
        if !config.tool_overrides.is_empty() {
            let Some(change) = config.tool_overrides.get(&name) else { continue };
            if let Some(new_name) = &change.name {
                shown_name.clone_from(new_name);
            }
            if let Some(description) = &change.description {
                tool["description"] = json!(description);
            }
            if let Some(schema) = &change.input_schema {
                tool["inputSchema"] = schema.clone();
            }
        }
        let shown_name = format!("{}{shown_name}", config.tool_prefix);
        tool["name"] = json!(shown_name);
        tools.push((name, tool));
    }
    tools
}

/// The name under which an upstream tool is shown.
pub(super) fn shown_name(config: &ServerConfig, upstream: &str) -> String {
    let renamed = config.tool_overrides.get(upstream).and_then(|change| change.name.as_deref());
    format!("{}{}", config.tool_prefix, renamed.unwrap_or(upstream))
}

/// The names that the overrides show.
pub(super) fn shown_names(config: &ServerConfig) -> Vec<String> {
    let names = config.tool_overrides.iter().map(|(upstream, change)| change.name.as_deref().unwrap_or(upstream));
    names.map(|name| format!("{}{name}", config.tool_prefix)).collect()
}

/// The upstream name of a shown tool by the overrides alone; `None` if the overrides hide it.
pub(crate) fn upstream_name<'a>(config: &'a ServerConfig, shown: &'a str) -> Option<&'a str> {
    let bare = shown.strip_prefix(config.tool_prefix.as_str())?;
    if config.tool_overrides.is_empty() {
        return Some(bare);
    }
    // Of two that are shown alike the last counts.
    let mut renamed = config.tool_overrides.iter().rev();
    renamed.find(|(upstream, change)| change.name.as_deref().unwrap_or(upstream) == bare).map(|(upstream, _)| upstream.as_str())
}
