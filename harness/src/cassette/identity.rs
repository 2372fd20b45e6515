//! The identity of a request: one function for the recorder, the replayer and the check at seal.
//!
//! Invariant: the key depends on lane, operation and the projected, redacted request alone; fields that name an exchange
//! instead of describing it (ids, trace context) are projected away. Deliberately no per-scenario match rules yet.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::envelope::{Envelope, Kind};
use super::json::{Node, quote};

/// Names the rules of this module in a head.
pub const RULES: &str = "default-1";

/// A request as it is compared: canonical, without the fields that do not count.
pub fn projected(lane: &str, body: &str) -> String {
    let kind = lane.split('.').next().unwrap_or_default();
    let Ok(node) = Node::parse(body) else { return quote(body) };
    match kind {
        "mcp" => {
            let frame = super::body::to_frame(body);
            let envelope = Envelope::of(&frame.to_text());
            let Some(frame_node) = &envelope.node else { return node.canonical(&[]) };
            // An answer is known by the id of the request that it answers.
            if matches!(envelope.kind, Kind::Result | Kind::Error) {
                frame_node.canonical(&[&["jsonrpc"]])
            } else {
                frame_node.canonical(&[&["jsonrpc"], &["id"], &["params", "_meta"]])
            }
        }
        "llm" => node.canonical(&[&["metadata", "request_id"]]),
        _ => node.canonical(&[]),
    }
}

/// 128 bits of SHA-256 over the canonical `[lane, op, projected request]`, as hex.
pub fn exchange_key(lane: &str, op: &str, body: &str) -> String {
    let text = format!("[{},{},{}]", quote(lane), quote(op), projected(lane, body));
    hex::encode(&Sha256::digest(text.as_bytes())[..16])
}

/// Counts equal keys within their scopes.
#[derive(Debug, Default)]
pub struct Occurrences(BTreeMap<(String, String), u64>);

impl Occurrences {
    /// The next number of this key in this scope, from 1.
    pub fn next(&mut self, scope: &str, key: &str) -> u64 {
        let count = self.0.entry((scope.to_owned(), key.to_owned())).or_insert(0);
        *count += 1;
        *count
    }

    /// How many exchanges share their key with an earlier one.
    pub fn repeated(&self) -> u64 {
        self.0.values().map(|count| count - 1).sum()
    }
}
