//! Running a chain: each hook gets a fresh copy of the current message; its answer is checked, applied and traced.
//!
//! Invariant: a mutator that fails ends the chain, as there is no final value to judge; what was not asked is traced as
//! skipped. Validators all judge, and every refusal is reported: the first decides, the rest are attached. An audit hook's
//! word is recorded, never applied. Deliberately no retry: a hook that fails has failed.

use async_trait::async_trait;
use greenroom_boundary::trace::{EventKind, HookMode, HookPhase, HookVerdict};
use greenroom_boundary::{AgentId, Scope, SpanId, Tracer};
use serde_json::{Value, json};

use super::answer::{self, Answer};
use super::key::{HookBinding, HookForm, Side};
use super::record::MutationRecord;

/// A JSON-RPC message as hooks see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// `tools/call`, …
    pub method: String,
    /// Parameters of the request, on both sides.
    pub params: Value,
    /// The result, on the response side.
    pub result: Option<Value>,
    /// The error, on the response side.
    pub error: Option<Value>,
}

impl Message {
    /// A request.
    pub fn request(method: &str, params: Value) -> Self {
        Self { method: method.to_owned(), params, result: None, error: None }
    }

    /// As JSON.
    pub fn to_value(&self) -> Value {
        let mut value = json!({"jsonrpc": "2.0", "method": self.method, "params": self.params});
        for (key, part) in [("result", &self.result), ("error", &self.error)] {
            if let Some(part) = part {
                value[key] = part.clone();
            }
        }
        value
    }

    /// Whether it is still a message of its method.
    pub(super) fn check(&self) -> Result<(), String> {
        let field = match self.method.as_str() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            _ => return Ok(()),
        };
        if !self.params.get(field).is_some_and(Value::is_string) {
            return Err(format!("the new message is no valid {}: params.{field} is missing or no string", self.method));
        }
        if self.method == "tools/call" && self.params.get("arguments").is_some_and(|arguments| !arguments.is_object()) {
            return Err("the new message is no valid tools/call: params.arguments is no object".to_owned());
        }
        Ok(())
    }
}

/// A refusal, or a hook that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HookFailure {
    /// `HOOK_REJECTED`, `HOOK_MALFORMED`, `HOOK_TIMEOUT`, or the code of what failed.
    pub code: String,
    /// Names the hook and says why.
    pub message: String,
    /// What other hooks of the chain said against the same message.
    pub others: Vec<HookFailure>,
}

impl HookFailure {
    /// One hook's failure.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), others: Vec::new() }
    }

    /// The first failure, with the rest attached.
    fn first_of(failures: Vec<Self>) -> Option<Self> {
        let mut failures = failures.into_iter();
        let mut first = failures.next()?;
        first.others = failures.collect();
        Some(first)
    }

    /// What the trace calls it: a limit of the hook's time is a timeout, whoever set it.
    pub fn verdict(&self) -> HookVerdict {
        match self.code.as_str() {
            "HOOK_TIMEOUT" | "HOOK_WALL_LIMIT" | "HOOK_CPU_LIMIT" => HookVerdict::Timeout,
            _ => HookVerdict::Error,
        }
    }
}

/// Asks one hook.
#[async_trait]
pub trait HookRunner: Send + Sync {
    /// Calls the hook's tool. `Ok(None)`: it returned nothing. A timeout has code `HOOK_TIMEOUT`.
    async fn ask(&self, hook: &HookBinding, arguments: Value) -> Result<Option<Value>, HookFailure>;
}

/// The exchange that a chain looks at.
pub struct Exchange<'a> {
    /// Asks the hooks.
    pub runner: &'a dyn HookRunner,
    /// Where decisions go.
    pub tracer: &'a Tracer,
    /// Who makes the call.
    pub scope: &'a Scope,
    /// For which agent.
    pub agent: Option<&'a AgentId>,
    /// The exchange.
    pub span: SpanId,
    /// Where it goes.
    pub boundary: &'a str,
    /// How many hooks deep the call is.
    pub depth: u32,
}

struct Decision {
    verdict: HookVerdict,
    patch: Option<Value>,
    reason: Option<String>,
    code: Option<String>,
}

impl Exchange<'_> {
    /// Runs one side of a chain and returns the message that goes on.
    pub async fn run(
        &self,
        hooks: &[HookBinding],
        side: Side,
        message: Message,
        record: &mut MutationRecord,
    ) -> Result<Message, HookFailure> {
        let mut current = message;
        let mut failures = Vec::new();
        let mut value_is_lost = false;
        for hook in hooks {
            if side == Side::Response && hook.matcher.call_on_error.is_some_and(|wanted| wanted != current.error.is_some()) {
                continue;
            }
            if value_is_lost {
                let skipped = Decision { verdict: HookVerdict::Skipped, patch: None, reason: None, code: None };
                self.trace(hook, side, &current.method, skipped);
            } else if let Err(failure) = self.step(hook, side, &mut current, record).await {
                failures.push(failure);
                value_is_lost = hook.form.is_mutator();
            }
        }
        HookFailure::first_of(failures).map_or(Ok(current), Err)
    }

    async fn step(
        &self,
        hook: &HookBinding,
        side: Side,
        current: &mut Message,
        record: &mut MutationRecord,
    ) -> Result<(), HookFailure> {
        let arguments = match hook.form {
            HookForm::Envelope { .. } => json!({"accept": true, "mutated": false, "message": current.to_value(), "reason": ""}),
            HookForm::Mutate | HookForm::Validate => current.to_value(),
        };
        let answer = match self.runner.ask(hook, arguments).await {
            Ok(value) => answer::read(hook.form, side, current, value),
            Err(failure) => return self.fail(hook, side, &current.method, failure),
        };
        match answer {
            Answer::Pass => {
                let pass = Decision { verdict: HookVerdict::Unchanged, patch: None, reason: None, code: None };
                self.trace(hook, side, &current.method, pass);
                Ok(())
            }
            Answer::Mutate { message, reason } => {
                let patch = json!(json_patch::diff(&current.to_value(), &message.to_value()));
                let decision =
                    Decision { verdict: HookVerdict::Mutated, patch: Some(patch.clone()), reason: reason.clone(), code: None };
                self.trace(hook, side, &current.method, decision);
                if hook.mode == HookMode::Enforce {
                    match side {
                        Side::Request => record.note_request(&hook.id, reason, patch),
                        Side::Response => record.note_response(&hook.id, reason, patch),
                    }
                    *current = *message;
                }
                Ok(())
            }
            Answer::Reject { reason } => {
                let text = format!("hook {} rejected message: {reason}", hook.id);
                let decision = Decision {
                    verdict: HookVerdict::Rejected,
                    patch: None,
                    reason: Some(reason),
                    code: Some("HOOK_REJECTED".to_owned()),
                };
                self.trace(hook, side, &current.method, decision);
                match hook.mode {
                    HookMode::Enforce => Err(HookFailure::new("HOOK_REJECTED", text)),
                    HookMode::Audit => Ok(()),
                }
            }
            Answer::Malformed { message } => {
                let failure = HookFailure::new("HOOK_MALFORMED", format!("hook {}: {message}", hook.id));
                self.fail(hook, side, &current.method, failure)
            }
        }
    }

    fn fail(&self, hook: &HookBinding, side: Side, method: &str, failure: HookFailure) -> Result<(), HookFailure> {
        let (reason, code) = (Some(failure.message.clone()), Some(failure.code.clone()));
        let decision = Decision { verdict: failure.verdict(), patch: None, reason, code };
        self.trace(hook, side, method, decision);
        if hook.fail_open || hook.mode == HookMode::Audit { Ok(()) } else { Err(failure) }
    }

    fn trace(&self, hook: &HookBinding, side: Side, method: &str, decision: Decision) {
        let event = EventKind::Hook {
            hook: hook.id.clone(),
            of: self.span,
            boundary: self.boundary.to_owned(),
            method: method.to_owned(),
            phase: match side {
                Side::Request => HookPhase::Request,
                Side::Response => HookPhase::Response,
            },
            mode: hook.mode,
            verdict: decision.verdict,
            patch: decision.patch,
            reason: decision.reason,
            code: decision.code,
            depth: self.depth,
        };
        self.tracer.emit(self.scope, self.agent, event);
    }
}
