//! What a scripted server says by itself: the handshake, the lists, and the spelling of frames.
//!
//! Invariant: an id is sent back as the bytes it came in. Deliberately no protocol state.

use greenroom_boundary::RawJson;
use greenroom_boundary::mcp::Frame;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::script::{McpScript, RpcError};

/// The revisions that a scripted server speaks, the newest last.
const REVISIONS: [&str; 3] = ["2025-03-26", "2025-06-18", "2025-11-25"];

/// A message from the host, as far as a server must understand it.
#[derive(Deserialize)]
pub(super) struct Incoming {
    pub(super) id: Option<RawJson>,
    pub(super) method: Option<String>,
    #[serde(default)]
    pub(super) params: Value,
}

/// What a request gets.
pub(super) type Reply = Result<Value, RpcError>;

pub(super) fn reply_frame(id: &RawJson, reply: &Reply) -> Frame {
    let id = id.get();
    Frame::from(match reply {
        Ok(result) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        Err(error) => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, json!(error)),
    })
}

pub(super) fn notification_frame(method: &str, params: Option<Value>) -> Frame {
    let mut message = json!({ "jsonrpc": "2.0", "method": method });
    if let Some(params) = params {
        message["params"] = params;
    }
    Frame::from(message.to_string())
}

pub(super) fn request_frame(id: u64, method: &str, params: Option<Value>) -> Frame {
    let mut message = json!({ "jsonrpc": "2.0", "id": id, "method": method });
    if let Some(params) = params {
        message["params"] = params;
    }
    Frame::from(message.to_string())
}

pub(super) fn error(code: i64, message: impl Into<String>) -> RpcError {
    RpcError { code, message: message.into(), data: None }
}

/// The result of `initialize`, or the scripted refusal.
pub(super) fn initialize(script: &McpScript, server: &str, params: &Value) -> Reply {
    let handshake = script.initialize.as_ref();
    if let Some(error) = handshake.and_then(|h| h.error.clone()) {
        return Err(error);
    }
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let newest = REVISIONS[REVISIONS.len() - 1];
    let revision = handshake
        .and_then(|h| h.protocol_version.as_deref())
        .or(asked.filter(|asked| REVISIONS.contains(asked)))
        .unwrap_or(newest);
    let info = script.server_info.clone().map_or_else(|| json!({ "name": server, "version": "1.0.0" }), Value::Object);
    let mut result = json!({ "protocolVersion": revision, "capabilities": capabilities(script), "serverInfo": info });
    if let Some(instructions) = &script.instructions {
        result["instructions"] = json!(instructions);
    }
    Ok(result)
}

fn capabilities(script: &McpScript) -> Map<String, Value> {
    if let Some(capabilities) = &script.capabilities {
        return capabilities.clone();
    }
    let lists = [("tools", &script.tools), ("prompts", &script.prompts), ("resources", &script.resources)];
    let mut capabilities = Map::new();
    for (name, list) in lists {
        let method = format!("notifications/{name}/list_changed");
        let changes = script.notifications.iter().any(|n| n.method == method);
        if changes {
            capabilities.insert(name.to_owned(), json!({ "listChanged": true }));
        } else if name == "tools" || !list.is_empty() || (name == "resources" && !script.resource_templates.is_empty()) {
            capabilities.insert(name.to_owned(), json!({}));
        }
    }
    capabilities
}

/// A page of a list; `None` if the method is no list.
pub(super) fn list(script: &McpScript, method: &str, params: &Value) -> Option<Reply> {
    let (key, entries) = match method {
        "tools/list" => ("tools", &script.tools),
        "prompts/list" => ("prompts", &script.prompts),
        "resources/list" => ("resources", &script.resources),
        "resources/templates/list" => ("resourceTemplates", &script.resource_templates),
        _ => return None,
    };
    let start = match params.get("cursor") {
        None => 0,
        Some(cursor) => match cursor.as_str().and_then(|text| text.parse::<usize>().ok()) {
            Some(start) if start <= entries.len() => start,
            _ => return Some(Err(error(-32602, "unknown cursor"))),
        },
    };
    let size = script.page_size.unwrap_or(usize::MAX).max(1);
    let end = start.saturating_add(size).min(entries.len());
    let mut page = json!({ key: entries[start..end] });
    if end < entries.len() {
        page["nextCursor"] = json!(end.to_string());
    }
    Some(Ok(page))
}
