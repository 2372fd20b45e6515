//! An exchange that left and has no answer yet.
//!
//! Invariant: it is traced with exactly one response event, also if whoever waited for it is dropped: a hook that ran out
//! of time, a turn that was cancelled. Deliberately no request event: that is emitted when the request really leaves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use greenroom_boundary::llm::Usage;
use greenroom_boundary::trace::{EventKind, Outcome};
use greenroom_boundary::{AgentId, Scope, SpanId, Tracer};
use serde_json::{Value, json};

/// An exchange under way. Dropped without [`OpenExchange::close`], it counts as cancelled.
pub(crate) struct OpenExchange {
    /// Where its events go.
    pub(crate) tracer: Tracer,
    /// Who makes it.
    pub(crate) scope: Scope,
    /// For which agent.
    pub(crate) agent: Option<AgentId>,
    /// The exchange.
    pub(crate) span: SpanId,
    /// Where it goes.
    pub(crate) boundary: String,
    /// Its method.
    pub(crate) method: String,
    /// Whether its request left; nothing is traced before.
    pub(crate) left: Arc<AtomicBool>,
}

impl OpenExchange {
    /// Traces how it ended; `body` is made only if somebody listens.
    pub(crate) fn close(self, outcome: Outcome, body: impl FnOnce() -> Value, usage: Option<Usage>) {
        self.end(outcome, body, usage);
    }

    /// Like [`OpenExchange::close`], for whoever shares it; the first end counts.
    pub(crate) fn end(&self, outcome: Outcome, body: impl FnOnce() -> Value, usage: Option<Usage>) {
        if !self.left.swap(false, Ordering::SeqCst) || !self.tracer.enabled() {
            return;
        }
        let (boundary, method) = (self.boundary.clone(), self.method.clone());
        let event = EventKind::Response { span: self.span, boundary, method, outcome, body: body(), usage };
        self.tracer.emit(&self.scope, self.agent.as_ref(), event);
    }
}

impl Drop for OpenExchange {
    fn drop(&mut self) {
        let given_up = || json!({"error": {"code": "CALL_CANCELLED", "message": "whoever waited for the answer gave up"}});
        self.end(Outcome::Cancelled, given_up, None);
    }
}
