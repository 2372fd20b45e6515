//! Where the permissions of the agent that calls are held against what it asks for.
//!
//! Invariant: calls and lists are judged by the same rules, so nothing is shown that cannot be called. Deliberately no
//! rules here: an agent brings its own.

use greenroom_boundary::ServerName;
use serde_json::Value;

use super::{CallContext, CallError};
use crate::hooks::Message;

/// Whether the agent that calls, if one does, may use this (shown name, upstream name).
pub(super) fn permitted(cx: &CallContext, server: &ServerName, names: &[&str]) -> Result<(), CallError> {
    cx.permissions.as_ref().map_or(Ok(()), |permissions| permissions.check(server, names))
}

/// What a request is about: the URI of a resource, else a name.
pub(super) fn subject(message: &Message) -> &str {
    text(&message.params, if message.method.starts_with("resources/") { "uri" } else { "name" })
}

/// What an item of a list is: a URI, or a name.
pub(super) fn named(item: &Value) -> &str {
    let uri = ["uri", "uriTemplate"].into_iter().find_map(|key| item.get(key)?.as_str());
    uri.unwrap_or_else(|| text(item, "name"))
}

fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
