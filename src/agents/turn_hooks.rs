//! Agent-level hooks of the config: `config`, `request` and `response` (nanobot §8).
//!
//! Invariant: each answer becomes the next hook's input; a failing hook fails the turn. `!mutate:` is honoured here too
//! (nanobot ignored it). Deliberately the neutral request shape, not nanobot's own.

use std::sync::Arc;

use greenroom_boundary::SpanId;
use greenroom_boundary::llm::LlmRequest;
use greenroom_boundary::trace::{HookPhase, HookVerdict};
use serde_json::{Value, json};

use super::TurnFailure;
use super::hook_event::TurnHookEvent;
use super::model::Answer;
use crate::config::AgentConfig;
use crate::hooks::{HookFailure, HookTarget, Side, type_of};
use crate::host::HostCore;
use crate::router::{self, CallContext};

pub(super) struct TurnHooks<'a> {
    pub(super) core: &'a Arc<HostCore>,
    pub(super) cx: &'a CallContext,
    pub(super) span: SpanId,
}

impl TurnHooks<'_> {
    /// Runs a chain over `value`; only keys in `keys` can be changed.
    async fn run(
        &self,
        phase: HookPhase,
        targets: &[HookTarget],
        mut value: Value,
        keys: &[&str],
    ) -> Result<Value, TurnFailure> {
        let side = if phase == HookPhase::Response { Side::Response } else { Side::Request };
        for target in targets {
            let answer = self.core.router.ask_hook(self.cx, &router::agent_hook(target, side), value.clone()).await;
            let answer = match answer {
                Ok(answer) => answer,
                Err(failure) => {
                    self.trace(phase, target, failure.verdict(), None, Some(&failure));
                    return Err(TurnFailure { code: failure.code, message: failure.message });
                }
            };
            let mut next = value.clone();
            let fields = match answer {
                Some(Value::Object(fields)) => fields,
                None => serde_json::Map::new(),
                Some(other) => {
                    let message = format!("hook {target}: a hook must return an object, it returned {}", type_of(&other));
                    let failure = HookFailure::new("HOOK_MALFORMED", message);
                    self.trace(phase, target, HookVerdict::Error, None, Some(&failure));
                    return Err(TurnFailure { code: failure.code, message: failure.message });
                }
            };
            if fields.get("accept").and_then(Value::as_bool) == Some(false) {
                let reason = fields.get("reason").and_then(Value::as_str).unwrap_or_default();
                let message = format!("hook {target} rejected the turn: {reason}");
                let failure = HookFailure::new("HOOK_REJECTED", message);
                self.trace(phase, target, HookVerdict::Rejected, None, Some(&failure));
                return Err(TurnFailure { code: failure.code, message: failure.message });
            }
            for key in keys {
                if let Some(field) = fields.get(*key).filter(|field| !field.is_null()) {
                    next[*key] = field.clone();
                }
            }
            if next == value {
                self.trace(phase, target, HookVerdict::Unchanged, None, None);
                continue;
            }
            if !target.may_mutate {
                let message = format!("hook {target} changed a value, but `!mutate:` forbids it");
                let failure = HookFailure::new("HOOK_REJECTED", message);
                self.trace(phase, target, HookVerdict::Rejected, None, Some(&failure));
                return Err(TurnFailure { code: failure.code, message: failure.message });
            }
            let patch = json!(json_patch::diff(&value, &next));
            self.trace(phase, target, HookVerdict::Mutated, Some(patch), None);
            value = next;
        }
        Ok(value)
    }

    fn trace(
        &self,
        phase: HookPhase,
        target: &HookTarget,
        verdict: HookVerdict,
        patch: Option<Value>,
        failure: Option<&HookFailure>,
    ) {
        let failure = failure.map(|failure| (failure.code.clone(), failure.message.clone()));
        let event = TurnHookEvent { hook: target.to_string(), of: self.span, phase, verdict, patch, failure };
        event.emit(self.core, self.cx);
    }

    /// `config`: may change instructions, model, temperature and token limit of this turn.
    pub(super) async fn config(&self, agent: &AgentConfig) -> Result<AgentConfig, TurnFailure> {
        if agent.hooks.config.is_empty() {
            return Ok(agent.clone());
        }
        let shown = json!({
            "agent": {"instructions": agent.instructions.join("\n\n"), "model": agent.model, "temperature": agent.temperature,
                "maxTokens": agent.max_tokens},
            "sessionId": self.cx.session.id,
        });
        let value = self.run(HookPhase::Config, &agent.hooks.config, shown.clone(), &["agent"]).await?;
        let mut changed = agent.clone();
        if value["agent"] != shown["agent"] {
            let fields = &value["agent"];
            decode::<serde_json::Map<String, Value>>("agent", fields)?;
            if let Some(text) = decode::<Option<String>>("agent's instructions", &fields["instructions"])? {
                changed.instructions = vec![text];
            }
            changed.model = decode::<Option<_>>("agent's model", &fields["model"])?.unwrap_or(changed.model);
            changed.temperature = decode::<Option<_>>("agent's temperature", &fields["temperature"])?.or(changed.temperature);
            changed.max_tokens = decode::<Option<_>>("agent's maxTokens", &fields["maxTokens"])?.or(changed.max_tokens);
        }
        Ok(changed)
    }

    /// `request`: may change the request, or answer in the model's place.
    pub(super) async fn request(
        &self,
        agent: &AgentConfig,
        request: LlmRequest,
    ) -> Result<(LlmRequest, Option<Answer>), TurnFailure> {
        if agent.hooks.request.is_empty() {
            return Ok((request, None));
        }
        let shown = json!({"request": request});
        let value = self.run(HookPhase::Request, &agent.hooks.request, shown, &["request", "response"]).await?;
        let request: LlmRequest = decode("request", &value["request"])?;
        let answer = match value.get("response") {
            Some(response) => Some(read_answer(response, &request.model)?),
            None => None,
        };
        Ok((request, answer))
    }

    /// `response`: may change the answer.
    pub(super) async fn response(
        &self,
        agent: &AgentConfig,
        request: &LlmRequest,
        answer: Answer,
    ) -> Result<Answer, TurnFailure> {
        if agent.hooks.response.is_empty() {
            return Ok(answer);
        }
        let response = json!({"message": answer.message, "finish_reason": answer.finish, "usage": answer.usage});
        let shown = json!({"request": request, "response": response});
        let value = self.run(HookPhase::Response, &agent.hooks.response, shown, &["response"]).await?;
        if value["response"] == response { Ok(answer) } else { read_answer(&value["response"], &answer.model) }
    }
}

fn decode<T: serde::de::DeserializeOwned>(what: &str, value: &Value) -> Result<T, TurnFailure> {
    serde_json::from_value(value.clone()).map_err(|error| TurnFailure {
        code: "HOOK_MALFORMED".to_owned(),
        message: format!("a hook made the {what} unusable: {error}"),
    })
}

fn read_answer(value: &Value, model: &str) -> Result<Answer, TurnFailure> {
    Ok(Answer {
        message: decode("response's message", &value["message"])?,
        finish: value["finish_reason"].as_str().unwrap_or("stop").to_owned(),
        usage: serde_json::from_value(value["usage"].clone()).ok(),
        model: model.to_owned(),
    })
}
