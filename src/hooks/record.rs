//! The mutation record: what hooks changed, told to the caller.
//!
//! Invariant: a result whose request or response was mutated says so in `_meta` under nanobot's key and in its content,
//! unless the policy leaves that to trace and audit. A record that the server sent itself is kept within it, as `upstream`.
//! Deliberately no originals in the record beyond the patch that leads to them.

use greenroom_boundary::trace::{HookMode, HookPhase, HookVerdict};
use serde_json::{Map, Value, json};

/// Key of the record in a result's `_meta` (nanobot).
pub const MUTATIONS_KEY: &str = "ai.nanobot.hooks/mutations";

/// How much a result tells of what hooks changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NoteMode {
    /// `_meta`, and a text in the content (nanobot).
    #[default]
    Content,
    /// `_meta` only.
    Meta,
    /// Nothing: only trace and audit tell.
    Off,
}

/// What one hook said in one exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct HookStatus {
    /// Which side it looked at.
    pub phase: HookPhase,
    /// The method of the exchange.
    pub method: String,
    /// Its id.
    pub hook: String,
    /// What was called.
    pub target: String,
    /// Whether its word counts.
    pub mode: HookMode,
    /// What it decided.
    pub verdict: HookVerdict,
    /// What it changed, or would have changed.
    pub patch: Option<Value>,
    /// Why.
    pub reason: Option<String>,
}

/// What hooks did in one exchange.
#[derive(Clone, Debug, Default)]
pub struct MutationRecord {
    request: Vec<Mutation>,
    response: Vec<Mutation>,
    /// `None`: nobody asks for them.
    statuses: Option<Vec<HookStatus>>,
    sent: Option<Value>,
    original: Option<Value>,
    /// Named in each entry if the exchange is not the caller's own.
    boundary: Option<&'static str>,
}

#[derive(Clone, Debug)]
struct Mutation {
    hook: String,
    reason: Option<String>,
    patch: Value,
}

impl MutationRecord {
    /// A record of another boundary than the one that the result comes from; it joins what is already told.
    pub fn at(boundary: &'static str) -> Self {
        Self { boundary: Some(boundary), ..Self::default() }
    }

    /// Notes a change of the request.
    pub fn note_request(&mut self, hook: &str, reason: Option<String>, patch: Value) {
        self.request.push(Mutation { hook: hook.to_owned(), reason, patch });
    }

    /// Notes a change of the response.
    pub fn note_response(&mut self, hook: &str, reason: Option<String>, patch: Value) {
        self.response.push(Mutation { hook: hook.to_owned(), reason, patch });
    }

    /// Says whether to keep what hooks said, whatever it was.
    pub(crate) fn keep_statuses(&mut self, keep: bool) {
        self.statuses = keep.then(Vec::new);
    }

    /// Notes what a hook said, if anybody asks for it.
    pub(super) fn note_status(&mut self, status: impl FnOnce() -> HookStatus) {
        if let Some(statuses) = &mut self.statuses {
            statuses.push(status());
        }
    }

    /// Takes over what hooks said elsewhere, without their changes.
    pub(crate) fn take_statuses(&mut self, other: Self) {
        if let (Some(own), Some(more)) = (&mut self.statuses, other.statuses) {
            own.extend(more);
        }
    }

    /// What all hooks said, in order.
    pub(crate) fn statuses(&self) -> &[HookStatus] {
        self.statuses.as_deref().unwrap_or_default()
    }

    /// Notes what was sent, if hooks changed it and anybody asks.
    pub(crate) fn note_sent(&mut self, params: &Value) {
        if self.statuses.is_some() && !self.request.is_empty() {
            self.sent = Some(params.clone());
        }
    }

    /// Notes what came before hooks changed it.
    pub(crate) fn note_original(&mut self, body: Option<Value>) {
        self.original = body;
    }

    pub(super) fn sent(&self) -> Option<&Value> {
        self.sent.as_ref()
    }

    pub(super) fn original(&self) -> Option<&Value> {
        self.original.as_ref()
    }

    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.request.is_empty() && self.response.is_empty()
    }

    /// Writes the record into a result: `_meta`, a note before the content and a note after it.
    pub fn write_into(&self, result: &mut Value, note: NoteMode) {
        let Value::Object(result) = result else { return };
        if self.is_empty() || note == NoteMode::Off {
            return;
        }
        let meta = result.entry("_meta").or_insert_with(|| json!({}));
        if !meta.is_object() {
            *meta = json!({});
        }
        let mut record = match meta.get(MUTATIONS_KEY) {
            Some(Value::Object(told)) if self.boundary.is_some() => told.clone(),
            // The server's own word, a host behind this one say: it must not pass for ours, and must not be lost.
            Some(told) => Map::from_iter([("upstream".to_owned(), told.clone())]),
            None => Map::new(),
        };
        for (side, mutations) in [("request", &self.request), ("response", &self.response)] {
            if !mutations.is_empty() {
                let new = self.side_record(mutations);
                let joined = record.get(side).map_or_else(|| new.clone(), |told| join(told, &new));
                record.insert(side.to_owned(), joined);
            }
        }
        meta[MUTATIONS_KEY] = Value::Object(record);
        if note == NoteMode::Content
            && let Some(Value::Array(content)) = result.get_mut("content")
        {
            if !self.request.is_empty() {
                content.insert(0, text_item(note_text("request", &reasons(&self.request))));
            }
            if !self.response.is_empty() {
                content.push(text_item(note_text("response", &reasons(&self.response))));
            }
        }
    }

    fn side_record(&self, mutations: &[Mutation]) -> Value {
        let hooks: Vec<Value> = mutations
            .iter()
            .map(|mutation| match self.boundary {
                Some(boundary) => json!({"hook": mutation.hook, "boundary": boundary, "patch": mutation.patch}),
                None => json!({"hook": mutation.hook, "patch": mutation.patch}),
            })
            .collect();
        json!({"mutated": true, "reasons": reasons(mutations), "hooks": hooks})
    }
}

fn reasons(mutations: &[Mutation]) -> Vec<&str> {
    mutations.iter().filter_map(|mutation| mutation.reason.as_deref()).collect()
}

/// What was told first, then what is new.
fn join(told: &Value, new: &Value) -> Value {
    let list = |key: &str| {
        let of = |value: &Value| value.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        [of(told), of(new)].concat()
    };
    json!({"mutated": true, "reasons": list("reasons"), "hooks": list("hooks")})
}

fn text_item(text: String) -> Value {
    json!({"type": "text", "text": text})
}

fn note_text(side: &str, reasons: &[&str]) -> String {
    let mut text = format!("MCP {side} was mutated by hooks.");
    if !reasons.is_empty() {
        text.push_str(" Reasons: ");
        text.push_str(&reasons.join("; "));
    }
    text
}

/// The notes that a result's record stands for: before its content and after it.
pub(crate) fn notes(result: &Value) -> [Option<String>; 2] {
    let record = result.get("_meta").and_then(|meta| meta.get(MUTATIONS_KEY));
    ["request", "response"].map(|side| {
        let told = record?.get(side)?;
        let reasons = told.get("reasons").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let reasons: Vec<&str> = reasons.iter().filter_map(Value::as_str).collect();
        Some(note_text(side, &reasons))
    })
}

/// The content of a result without the notes on mutations.
pub(crate) fn without_notes(result: &Value) -> &[Value] {
    let mut content = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let record = result.get("_meta").and_then(|meta| meta.get(MUTATIONS_KEY));
    let told = |side: &str| record.is_some_and(|record| record.get(side).is_some());
    let is_note = |item: &Value, side: &str| {
        let text = item.get("text").and_then(Value::as_str).unwrap_or_default();
        text.starts_with(&note_text(side, &[]))
    };
    while let [first, rest @ ..] = content
        && told("request")
        && is_note(first, "request")
    {
        content = rest;
    }
    while let [rest @ .., last] = content
        && told("response")
        && is_note(last, "response")
    {
        content = rest;
    }
    content
}
