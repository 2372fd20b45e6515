//! Asking a hook: the call of its tool, and what its result says.
//!
//! Invariant: a hook that gave no readable answer has failed; it never passes for one that had nothing to say. Deliberately
//! no verdicts: the cascade reads the answer.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use greenroom_boundary::clock::timeout_at;
use serde_json::Value;

use super::{CallContext, CallError, Router};
use crate::hooks::{HookBinding, HookFailure, HookRunner, without_notes};

/// Asks hooks on behalf of a call.
pub(super) struct RouterHooks<'a> {
    pub(super) router: &'a Router,
    pub(super) cx: &'a CallContext,
}

#[async_trait]
impl HookRunner for RouterHooks<'_> {
    async fn ask(&self, hook: &HookBinding, question: Arc<Value>) -> Result<Option<Value>, HookFailure> {
        let cx = self.cx.for_hook(&hook.id, hook.timeout);
        let clock = &self.router.drivers().clock;
        let call = pin!(self.router.call_shared(&cx, &hook.target.server, hook.target.tool.as_str(), question));
        let output = match timeout_at(clock.as_ref(), clock.now().after(hook.timeout), call).await {
            Ok(Ok(output)) => output,
            Ok(Err(CallError::Timeout { .. })) | Err(_) => return Err(timed_out(hook, hook.timeout)),
            Ok(Err(error)) => {
                return Err(HookFailure::new(error.code(), format!("hook {} failed: {error}", hook.id)));
            }
        };
        if output.value.get("isError").and_then(Value::as_bool) == Some(true) {
            let text = output.value.pointer("/content/0/text").and_then(Value::as_str).unwrap_or("no message");
            return Err(HookFailure::new("HOOK_ERROR", format!("hook {} failed: {text}", hook.id)));
        }
        let mut value = output.value;
        // Taken, not copied: nobody else sees this result.
        if let Some(structured) = value.get_mut("structuredContent").map(Value::take).filter(|given| !given.is_null()) {
            return Ok(Some(structured));
        }
        if value.is_null() || is_broken_json(&value) {
            return Err(HookFailure::new("HOOK_MALFORMED", format!("hook {} gave an answer that cannot be read", hook.id)));
        }
        Ok(structured(&value).or_else(|| other_json(&value)))
    }
}

/// Text that begins as a JSON object but is none: cut off, or nested too deep to be read.
fn is_broken_json(result: &Value) -> bool {
    let text = match without_notes(result) {
        [only] => only.get("text").and_then(Value::as_str).unwrap_or_default(),
        _ => "",
    };
    text.trim_start().starts_with('{') && serde_json::from_str::<Value>(text).is_err()
}

/// JSON text that is no object: a hook's answer of a wrong type. Prose and `null` are no answer (nanobot §8).
fn other_json(result: &Value) -> Option<Value> {
    match without_notes(result) {
        [only] => serde_json::from_str::<Value>(only.get("text")?.as_str()?).ok().filter(|value| !value.is_null()),
        _ => None,
    }
}

fn timed_out(hook: &HookBinding, limit: Duration) -> HookFailure {
    HookFailure::new("HOOK_TIMEOUT", format!("hook {} did not answer within {} ms", hook.id, limit.as_millis()))
}

/// The value of a tool result: its structured content, else its only text if that is a JSON object (nanobot §6.6).
pub(crate) fn structured(result: &Value) -> Option<Value> {
    if let Some(value) = result.get("structuredContent").filter(|value| !value.is_null()) {
        return Some(value.clone());
    }
    match without_notes(result) {
        [only] => {
            let text = only.get("text")?.as_str()?;
            serde_json::from_str::<Value>(text).ok().filter(Value::is_object)
        }
        _ => None,
    }
}
