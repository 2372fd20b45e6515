//! One record of the audit stream, from the beginning of an exchange to its end.
//!
//! Invariant: an entry that was begun is written, also if its exchange is dropped half-way. The shape is nanobot's, with
//! the boundary, the scope and each hook's patch beside it. Deliberately no headers of clients: they hold credentials.

use std::sync::Arc;

use greenroom_boundary::clock::MonoNanos;
use greenroom_boundary::trace::{HookMode, HookPhase, HookVerdict};
use greenroom_harness::cassette::stamp;
use serde_json::{Map, Value, json};

use super::AuditLog;
use super::queue::Queue;
use crate::hooks::{HookStatus, MutationRecord};
use crate::router::CallContext;

/// Largest body in a record; a larger one is told by its size.
const BODY_LIMIT_BYTES: usize = 256 << 10;

/// A record that is being made.
pub(crate) struct AuditEntry {
    queue: Arc<Queue>,
    began: MonoNanos,
    fields: Map<String, Value>,
    is_closed: bool,
}

impl AuditLog {
    /// Begins a record; `None` if nothing is written down.
    pub(crate) fn open(
        &self,
        cx: &CallContext,
        boundary: &str,
        (method, name): (&str, &str),
        body: &Value,
    ) -> Option<AuditEntry> {
        let queue = self.queue()?.clone();
        let began = queue.clock.now();
        let scope = cx.scope.to_string();
        let fields = json!({
            "createdAt": stamp::format(queue.clock.wall()),
            "sessionID": cx.session.id,
            "requestID": request_id(&scope, cx.root.id.0 != 0),
            "callType": method,
            "callIdentifier": name,
            "boundary": boundary,
            "agent": cx.agent,
            "scope": scope,
        });
        let Value::Object(fields) = fields else { return None };
        let mut entry = AuditEntry { queue, began, fields, is_closed: false };
        entry.body("requestBody", body);
        Some(entry)
    }
}

impl AuditEntry {
    /// Ends the record with what came of the exchange: its result, or code and message of its error.
    pub(crate) fn close(mut self, result: Result<&Value, (String, String)>, record: &MutationRecord) {
        if let Some(sent) = record.sent() {
            self.body("mutatedRequestBody", sent);
        }
        if let Some(original) = record.original() {
            self.body("originalResponseBody", original);
        }
        match result {
            Ok(value) => self.body("responseBody", value),
            Err((code, message)) => {
                self.fields.insert("error".to_owned(), json!({"code": code, "message": message}));
            }
        }
        let statuses = record.statuses().iter().map(status).collect();
        self.write(statuses);
    }

    fn body(&mut self, key: &str, body: &Value) {
        if !self.queue.config.bodies || body.is_null() {
            return;
        }
        let bytes = body.to_string().len();
        let body = if bytes > BODY_LIMIT_BYTES { json!({"truncated": bytes}) } else { body.clone() };
        self.fields.insert(key.to_owned(), body);
    }

    fn write(&mut self, statuses: Value) {
        self.is_closed = true;
        let passed = self.queue.clock.now().0.saturating_sub(self.began.0) / 1_000_000;
        self.fields.insert("processingTimeMs".to_owned(), json!(passed));
        self.fields.insert("webhookStatuses".to_owned(), statuses);
        self.queue.push(Value::Object(std::mem::take(&mut self.fields)));
    }
}

impl Drop for AuditEntry {
    fn drop(&mut self) {
        if !self.is_closed {
            let error = json!({"code": "CALL_CANCELLED", "message": "the exchange was given up"});
            self.fields.insert("error".to_owned(), error);
            self.write(json!([]));
        }
    }
}

fn status(status: &HookStatus) -> Value {
    let word = match (status.mode, status.verdict) {
        (HookMode::Audit, verdict) if verdict != HookVerdict::Skipped => "audit",
        (_, HookVerdict::Unchanged) => "ok",
        (_, HookVerdict::Mutated) => "mutated",
        (_, HookVerdict::Rejected) => "rejected",
        (_, HookVerdict::Error | HookVerdict::Timeout) => "failed",
        (_, HookVerdict::Skipped) => "skipped",
    };
    let mut value = json!({
        "type": phase_name(status.phase),
        "method": status.method,
        "name": status.hook,
        "tool": status.target,
        "status": word,
    });
    for (key, part) in [("message", status.reason.clone().map(Value::from)), ("patch", status.patch.clone())] {
        if let Some(part) = part {
            value[key] = part;
        }
    }
    value
}

fn phase_name(phase: HookPhase) -> Value {
    serde_json::to_value(phase).unwrap_or_default()
}

/// The client's request that the work is for: the first segments of its path.
fn request_id(scope: &str, is_outside: bool) -> String {
    scope.split('/').take(if is_outside { 2 } else { 1 }).collect::<Vec<_>>().join("/")
}
