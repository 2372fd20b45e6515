//! The mutation record: what hooks changed, told to the caller.
//!
//! Invariant: a result whose request or response was mutated says so in `_meta` under nanobot's key and in its content.
//! Deliberately no originals in the record beyond the patch that leads back to them.

use serde_json::{Map, Value, json};

/// Key of the record in a result's `_meta` (nanobot).
pub const MUTATIONS_KEY: &str = "ai.nanobot.hooks/mutations";

/// What hooks changed in one exchange.
#[derive(Clone, Debug, Default)]
pub struct MutationRecord {
    request: Vec<Mutation>,
    response: Vec<Mutation>,
}

#[derive(Clone, Debug)]
struct Mutation {
    hook: String,
    reason: Option<String>,
    patch: Value,
}

impl MutationRecord {
    /// Notes a change of the request.
    pub fn note_request(&mut self, hook: &str, reason: Option<String>, patch: Value) {
        self.request.push(Mutation { hook: hook.to_owned(), reason, patch });
    }

    /// Notes a change of the response.
    pub fn note_response(&mut self, hook: &str, reason: Option<String>, patch: Value) {
        self.response.push(Mutation { hook: hook.to_owned(), reason, patch });
    }

    /// Whether anything changed.
    pub fn is_empty(&self) -> bool {
        self.request.is_empty() && self.response.is_empty()
    }

    /// Writes the record into a tool result: `_meta`, a note before the content and a note after it.
    pub fn write_into(&self, result: &mut Value) {
        let Value::Object(result) = result else { return };
        if self.is_empty() {
            return;
        }
        let mut record = Map::new();
        for (side, mutations) in [("request", &self.request), ("response", &self.response)] {
            if !mutations.is_empty() {
                record.insert(side.to_owned(), side_record(mutations));
            }
        }
        let meta = result.entry("_meta").or_insert_with(|| json!({}));
        if let Value::Object(meta) = meta {
            meta.insert(MUTATIONS_KEY.to_owned(), Value::Object(record));
        }
        if let Some(Value::Array(content)) = result.get_mut("content") {
            if !self.request.is_empty() {
                content.insert(0, note("request", &self.request));
            }
            if !self.response.is_empty() {
                content.push(note("response", &self.response));
            }
        }
    }
}

fn side_record(mutations: &[Mutation]) -> Value {
    let reasons: Vec<&String> = mutations.iter().filter_map(|mutation| mutation.reason.as_ref()).collect();
    let hooks: Vec<Value> = mutations.iter().map(|m| json!({"hook": m.hook, "patch": m.patch})).collect();
    json!({"mutated": true, "reasons": reasons, "hooks": hooks})
}

fn note(side: &str, mutations: &[Mutation]) -> Value {
    let reasons: Vec<&str> = mutations.iter().filter_map(|mutation| mutation.reason.as_deref()).collect();
    let mut text = format!("MCP {side} was mutated by hooks.");
    if !reasons.is_empty() {
        text.push_str(" Reasons: ");
        text.push_str(&reasons.join("; "));
    }
    json!({"type": "text", "text": text})
}
