//! Running a chain: each hook is asked about the current value; its answer is checked, applied and traced.
//!
//! Invariant: a mutator that fails ends the chain, as there is no final value to judge; what was not asked is traced as
//! skipped. Validators all judge, and every refusal is reported: the first decides, the rest are attached. An audit hook's
//! word is recorded, never applied. Deliberately no retry: a hook that fails has failed.

use std::borrow::Borrow;
use std::sync::Arc;

use async_trait::async_trait;
use greenroom_boundary::trace::{EventKind, HookMode, HookPhase, HookVerdict};
use greenroom_boundary::{AgentId, Scope, SpanId, Tracer};
use serde_json::{Value, json};

use super::binding::{HookBinding, HookForm, Side};
use super::failure::HookFailure;
use super::message::Message;
use super::record::{HookStatus, MutationRecord};
use super::subject::{self, Answer, Subject};

/// Asks one hook.
#[async_trait]
pub trait HookRunner: Send + Sync {
    /// Calls the hook's tool. `Ok(None)`: it returned nothing. A timeout has code `HOOK_TIMEOUT`.
    async fn ask(&self, hook: &HookBinding, question: Arc<Value>) -> Result<Option<Value>, HookFailure>;
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

/// What hooks are asked about the current value, made once for all that look at it. None of them can change it: who wants
/// to takes a copy.
#[derive(Default)]
struct Questions {
    envelope: Option<Arc<Value>>,
    plain: Option<Arc<Value>>,
}

impl Questions {
    /// The question for a hook of this form; the last one of a chain takes it.
    fn take<S: Subject>(&mut self, form: HookForm, current: &S, is_last: bool) -> Arc<Value> {
        let (kept, make): (_, fn(&S) -> Value) = match form {
            HookForm::Envelope { .. } => (&mut self.envelope, S::question),
            HookForm::Mutate | HookForm::Validate => (&mut self.plain, S::to_value),
        };
        let question = kept.take().unwrap_or_else(|| Arc::new(make(current)));
        if !is_last {
            *kept = Some(question.clone());
        }
        question
    }
}

/// What a hook left of the value.
enum Step {
    Same,
    Changed,
}

#[derive(Default)]
struct Decision {
    patch: Option<Value>,
    reason: Option<String>,
    code: Option<String>,
}

impl Exchange<'_> {
    /// Runs one side of a chain and returns the message that goes on.
    pub async fn run(
        &self,
        hooks: &[impl Borrow<HookBinding> + Sync],
        side: Side,
        message: Message,
        record: &mut MutationRecord,
    ) -> Result<Message, HookFailure> {
        self.run_phase(hooks, side.phase(), message, record).await
    }

    /// Runs a chain over anything that hooks look at and returns the value that goes on.
    pub(crate) async fn run_phase<S: Subject>(
        &self,
        hooks: &[impl Borrow<HookBinding> + Sync],
        phase: HookPhase,
        value: S,
        record: &mut MutationRecord,
    ) -> Result<S, HookFailure> {
        let mut current = value;
        let mut failures = Vec::new();
        let mut value_is_lost = false;
        let mut questions = Questions::default();
        for (number, hook) in hooks.iter().enumerate() {
            let hook: &HookBinding = hook.borrow();
            if phase == HookPhase::Response && hook.matcher.call_on_error.is_some_and(|wanted| wanted != current.is_error()) {
                continue;
            }
            if value_is_lost {
                self.decided(hook, phase, current.method(), HookVerdict::Skipped, Decision::default(), record);
                continue;
            }
            let question = questions.take(hook.form, &current, number + 1 == hooks.len());
            match self.step(hook, phase, question, &mut current, record).await {
                Ok(Step::Same) => {}
                Ok(Step::Changed) => questions = Questions::default(),
                Err(failure) => {
                    failures.push(failure);
                    value_is_lost = hook.form.is_mutator();
                }
            }
        }
        HookFailure::first_of(failures).map_or(Ok(current), Err)
    }

    async fn step<S: Subject>(
        &self,
        hook: &HookBinding,
        phase: HookPhase,
        question: Arc<Value>,
        current: &mut S,
        record: &mut MutationRecord,
    ) -> Result<Step, HookFailure> {
        let side = if phase == HookPhase::Response { Side::Response } else { Side::Request };
        let answer = match self.runner.ask(hook, question).await {
            Ok(value) => subject::read(hook.form, side, current, value),
            Err(failure) => return self.fail(hook, phase, current.method(), failure, record),
        };
        match answer {
            Answer::Pass => {
                self.decided(hook, phase, current.method(), HookVerdict::Unchanged, Decision::default(), record);
                Ok(Step::Same)
            }
            Answer::Mutate { value, reason } => {
                let patch = json!(json_patch::diff(&current.to_value(), &value.to_value()));
                let mut step = Step::Same;
                if hook.mode == HookMode::Enforce {
                    match side {
                        Side::Request => record.note_request(&hook.id, reason.clone(), patch.clone()),
                        Side::Response => record.note_response(&hook.id, reason.clone(), patch.clone()),
                    }
                    *current = *value;
                    step = Step::Changed;
                }
                let decision = Decision { patch: Some(patch), reason, code: None };
                self.decided(hook, phase, current.method(), HookVerdict::Mutated, decision, record);
                Ok(step)
            }
            Answer::Reject { reason } => {
                let text = format!("hook {} rejected {}: {reason}", hook.id, told(current));
                let code = Some("HOOK_REJECTED".to_owned());
                let decision = Decision { patch: None, reason: Some(reason), code };
                self.decided(hook, phase, current.method(), HookVerdict::Rejected, decision, record);
                match hook.mode {
                    HookMode::Enforce => Err(HookFailure::new("HOOK_REJECTED", text)),
                    HookMode::Audit => Ok(Step::Same),
                }
            }
            Answer::Malformed { message } => {
                let failure = HookFailure::new("HOOK_MALFORMED", format!("hook {}: {message}", hook.id));
                self.fail(hook, phase, current.method(), failure, record)
            }
        }
    }

    fn fail(
        &self,
        hook: &HookBinding,
        phase: HookPhase,
        method: &str,
        failure: HookFailure,
        record: &mut MutationRecord,
    ) -> Result<Step, HookFailure> {
        let (reason, code) = (Some(failure.message.clone()), Some(failure.code.clone()));
        self.decided(hook, phase, method, failure.verdict(), Decision { patch: None, reason, code }, record);
        if hook.fail_open || hook.mode == HookMode::Audit { Ok(Step::Same) } else { Err(failure) }
    }

    fn decided(
        &self,
        hook: &HookBinding,
        phase: HookPhase,
        method: &str,
        verdict: HookVerdict,
        decision: Decision,
        record: &mut MutationRecord,
    ) {
        record.note_status(|| HookStatus {
            phase,
            method: method.to_owned(),
            hook: hook.id.clone(),
            target: hook.target.to_string(),
            mode: hook.mode,
            verdict,
            patch: decision.patch.clone(),
            reason: decision.reason.clone(),
        });
        if !self.tracer.enabled() {
            return;
        }
        let event = EventKind::Hook {
            hook: hook.id.clone(),
            of: self.span,
            boundary: self.boundary.to_owned(),
            method: method.to_owned(),
            phase,
            mode: hook.mode,
            verdict,
            patch: decision.patch,
            reason: decision.reason,
            code: decision.code,
            depth: self.depth,
        };
        self.tracer.emit(self.scope, self.agent, event);
    }
}

/// `message` (nanobot's word), `the turn`.
fn told(subject: &impl Subject) -> String {
    match subject.noun() {
        "message" => "message".to_owned(),
        noun => format!("the {noun}"),
    }
}
