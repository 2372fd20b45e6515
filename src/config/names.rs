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
    unprintable(&at, entry)
}

/// What no program and no address can be given.
fn unprintable(at: &str, entry: &McpServer) -> Result<(), (String, String)> {
    let nul = |text: &&String| text.contains('\0');
    let fields = [
        ("command", entry.command.iter().find(nul)),
        ("args", entry.args.iter().find(nul)),
        ("workdir", entry.workdir.iter().find(nul)),
        ("env", entry.env.values().find(nul)),
    ];
    if let Some((field, _)) = fields.iter().find(|(_, text)| text.is_some()) {
        let message = "it has a NUL character (`\\0`), which no program can be given; leave it out";
        return Err((format!("{at}.{field}"), message.to_owned()));
    }
    if let Some(name) = entry.env.keys().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
        let message = format!("{name:?} is no name of a variable; a name is not empty and has no `=` and no NUL character");
        return Err((format!("{at}.env"), message));
    }
    if let Some(url) = entry.url.iter().find(|url| url.contains(char::is_control)) {
        return Err((format!("{at}.url"), format!("{url:?} has a control character, which no address has; leave it out")));
    }
    if let Some(name) = entry.headers.keys().find(|name| !is_header_name(name)) {
        return Err((format!("{at}.headers"), format!("{name:?} is no name of a header; write letters, digits and `-`")));
    }
    Ok(())
}

/// A token of RFC 9110.
fn is_header_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}
