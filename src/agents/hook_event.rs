//! The trace event of a hook that looks at a whole turn.
//!
//! Invariant: `Create`, `Next` and the agent-level hooks of a config are told in one form. Deliberately no message hooks.

use std::sync::Arc;

use greenroom_boundary::SpanId;
use greenroom_boundary::trace::{EventKind, HookMode, HookPhase, HookVerdict};
use serde_json::Value;

use crate::host::HostCore;
use crate::router::CallContext;

/// What a hook of a turn decided.
pub(super) struct TurnHookEvent {
    /// `desk/Create`, `policy/check`.
    pub(super) hook: String,
    /// The turn.
    pub(super) of: SpanId,
    pub(super) phase: HookPhase,
    pub(super) verdict: HookVerdict,
    pub(super) patch: Option<Value>,
    /// (code, message) of a failure.
    pub(super) failure: Option<(String, String)>,
}

impl TurnHookEvent {
    /// Puts it into the trace.
    pub(super) fn emit(self, core: &Arc<HostCore>, cx: &CallContext) {
        let agent = cx.agent.as_ref().map_or("", |agent| agent.as_str());
        let (code, reason) = self.failure.unzip();
        let event = EventKind::Hook {
            hook: self.hook,
            of: self.of,
            boundary: format!("agent.{agent}"),
            method: "turn".to_owned(),
            phase: self.phase,
            mode: HookMode::Enforce,
            verdict: self.verdict,
            patch: self.patch,
            reason,
            code,
            depth: cx.hook_depth(),
        };
        core.drivers.tracer.emit(&cx.scope, cx.agent.as_ref(), event);
    }
}
