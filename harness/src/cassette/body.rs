//! Frames and JSON as bodies of lines.
//!
//! Invariant: what [`from_frame`] keeps, [`to_frame`] gives back byte for byte. Deliberately no redaction here.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use greenroom_boundary::RawJson;
use greenroom_boundary::mcp::Frame;
use serde_json::json;

use super::json::Node;

/// A frame as JSON text on one line.
pub fn from_frame(frame: &Frame) -> String {
    let Ok(text) = std::str::from_utf8(&frame.0) else {
        return json!({ "$b64": STANDARD.encode(&frame.0) }).to_string();
    };
    let stands_alone =
        !text.contains(['\n', '\r']) && text.trim() == text && Node::parse(text).is_ok_and(|node| !is_wrapper(&node));
    if stands_alone { text.to_owned() } else { json!({ "$text": text }).to_string() }
}

/// The frame that a body stands for.
pub fn to_frame(body: &str) -> Frame {
    let Ok(node) = Node::parse(body) else { return Frame(Bytes::copy_from_slice(body.as_bytes())) };
    if is_wrapper(&node) {
        if let Some(text) = node.get("$text").and_then(Node::text) {
            return Frame(Bytes::copy_from_slice(text.as_bytes()));
        }
        if let Some(bytes) = node.get("$b64").and_then(Node::text).and_then(|text| STANDARD.decode(text).ok()) {
            return Frame(Bytes::from(bytes));
        }
    }
    Frame(Bytes::copy_from_slice(body.as_bytes()))
}

/// JSON text as a body; text that is none becomes a string.
pub fn raw(text: String) -> RawJson {
    serde_json::value::RawValue::from_string(text).unwrap_or_else(|error| {
        let message = serde_json::Value::String(format!("not JSON: {error}"));
        serde_json::value::to_raw_value(&message).unwrap_or_else(|_| RawJson::default())
    })
}

fn is_wrapper(node: &Node) -> bool {
    match &node.value {
        super::json::Value::Object(members) => members.len() == 1 && matches!(members[0].name.as_str(), "$text" | "$b64"),
        _ => false,
    }
}
