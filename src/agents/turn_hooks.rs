//! Agent-level hooks of the config: `config`, `request` and `response` (nanobot §8).
//!
//! Invariant: the rules are those of message hooks: mutators, then validators, each answer the next one's input; a hook
//! that refuses or fails ends the turn. `!mutate:` is honoured here too (nanobot ignored it). Deliberately the neutral
//! request shape, not nanobot's own.

use std::sync::Arc;

use greenroom_boundary::llm::LlmRequest;
use greenroom_boundary::mcp::ServerAddress;
use greenroom_boundary::trace::HookPhase;
use greenroom_boundary::{ServerName, SpanId};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::TurnFailure;
use super::model::Answer;
use crate::config::{AgentConfig, ServerKind};
use crate::hooks::{Exchange, Fields, HookBinding, MutationRecord};
use crate::host::HostCore;
use crate::router::CallContext;

pub(super) struct TurnHooks<'a> {
    pub(super) core: &'a Arc<HostCore>,
    pub(super) cx: &'a CallContext,
    pub(super) span: SpanId,
}

impl TurnHooks<'_> {
    /// The hooks of a phase that are not running already: a hook does not set itself off.
    fn hooks(&self, agent: &AgentConfig, phase: HookPhase) -> Vec<HookBinding> {
        let idle = |hook: &&HookBinding| !self.cx.hooks.contains(&hook.id);
        agent.hooks.of(phase).iter().filter(idle).cloned().collect()
    }

    /// Runs a chain over `shown`; only the fields in `open` can be changed.
    async fn run(
        &self,
        phase: HookPhase,
        hooks: &[HookBinding],
        shown: Value,
        open: &'static [&'static str],
        check: fn(&Value) -> Result<(), String>,
    ) -> Result<Value, TurnFailure> {
        let agent = self.cx.agent.as_ref();
        let boundary = format!("agent.{}", agent.map_or("", |agent| agent.as_str()));
        let runner = self.core.router.hook_runner(self.cx);
        let exchange = Exchange {
            runner: &runner,
            tracer: &self.core.drivers.tracer,
            scope: &self.cx.scope,
            agent,
            span: self.span,
            boundary: &boundary,
            depth: self.cx.hook_depth(),
        };
        let mut record = MutationRecord::default();
        let call_type = match phase {
            HookPhase::Config => "turn/config",
            HookPhase::Response => "turn/response",
            _ => "turn/request",
        };
        let name = agent.map_or("", |agent| agent.as_str());
        let entry = self.core.router.audit().open(self.cx, &boundary, (call_type, name), &shown);
        record.keep_statuses(entry.is_some());
        let turn = Fields { noun: "turn", method: "turn", value: shown, open, check };
        let result = exchange.run_phase(hooks, phase, turn, &mut record).await;
        let result = result.map_err(|failure| TurnFailure { code: failure.code.clone(), message: failure.whole() });
        if let Some(entry) = entry {
            record.note_sent(result.as_ref().map_or(&Value::Null, |turn| &turn.value));
            let failed = |failure: &TurnFailure| (failure.code.clone(), failure.message.clone());
            let answer = |turn: &'_ Fields| if phase == HookPhase::Response { turn.value.clone() } else { Value::Null };
            entry.close(result.as_ref().map(answer).as_ref().map_err(|failure| failed(failure)), &record);
        }
        result.map(|turn| turn.value)
    }

    /// The external servers of the config that the agent's tools come from, by name, with the addresses of those that have one:
    /// for hooks to see. Headers hold secrets, and are not shown.
    fn addresses(&self, agent: &AgentConfig) -> Map<String, Value> {
        let named = agent.tools.iter().filter_map(|reference| reference.split(['/', ':']).next());
        let servers = named.filter_map(|name| Some((name, self.core.config.servers.get(&ServerName::new(name))?)));
        let shown = servers.filter_map(|(name, server)| match &server.kind {
            ServerKind::External(ServerAddress::Http { url, .. }) => Some((name.to_string(), json!({"url": url}))),
            ServerKind::External(_) => Some((name.to_string(), json!({}))),
            _ => None,
        });
        shown.collect()
    }

    /// `config`: may change instructions, model, temperature and token limit of this turn.
    pub(super) async fn config(&self, agent: &AgentConfig) -> Result<AgentConfig, TurnFailure> {
        let hooks = self.hooks(agent, HookPhase::Config);
        if hooks.is_empty() {
            return Ok(agent.clone());
        }
        let mut shown = json!({
            "agent": {"instructions": agent.instructions.join("\n\n"), "model": agent.model, "temperature": agent.temperature,
                "maxTokens": agent.max_tokens},
            "sessionId": self.cx.session.id,
            "mcpServers": self.addresses(agent),
        });
        if let Some(meta) = self.cx.session.meta() {
            shown["_meta"] = meta;
        }
        let check = |value: &Value| read_config(&value["agent"]).map(drop);
        let value = self.run(HookPhase::Config, &hooks, shown.clone(), &["agent"], check).await?;
        let mut changed = agent.clone();
        if value["agent"] != shown["agent"] {
            let new = read_config(&value["agent"]).map_err(unusable)?;
            if let Some(text) = new.instructions {
                changed.instructions = vec![text];
            }
            changed.model = new.model.unwrap_or(changed.model);
            changed.temperature = new.temperature.or(changed.temperature);
            changed.max_tokens = new.max_tokens.or(changed.max_tokens);
        }
        Ok(changed)
    }

    /// `request`: may change the request, or answer in the model's place.
    pub(super) async fn request(
        &self,
        agent: &AgentConfig,
        request: LlmRequest,
    ) -> Result<(LlmRequest, Option<Answer>), TurnFailure> {
        let hooks = self.hooks(agent, HookPhase::Request);
        if hooks.is_empty() {
            return Ok((request, None));
        }
        let check = |value: &Value| {
            decode::<LlmRequest>("request", &value["request"])?;
            value.get("response").map_or(Ok(()), |response| read_answer(response, "").map(drop))
        };
        let shown = json!({"request": request});
        let value = self.run(HookPhase::Request, &hooks, shown, &["request", "response"], check).await?;
        let request: LlmRequest = decode("request", &value["request"]).map_err(unusable)?;
        let answer = value.get("response").map(|response| read_answer(response, &request.model)).transpose();
        Ok((request, answer.map_err(unusable)?))
    }

    /// `response`: may change the answer.
    pub(super) async fn response(
        &self,
        agent: &AgentConfig,
        request: &LlmRequest,
        answer: Answer,
    ) -> Result<Answer, TurnFailure> {
        let hooks = self.hooks(agent, HookPhase::Response);
        if hooks.is_empty() {
            return Ok(answer);
        }
        let response = json!({"message": answer.message, "finish_reason": answer.finish, "usage": answer.usage});
        let shown = json!({"request": request, "response": response});
        let check = |value: &Value| read_answer(&value["response"], "").map(drop);
        let value = self.run(HookPhase::Response, &hooks, shown, &["response"], check).await?;
        if value["response"] == response {
            Ok(answer)
        } else {
            read_answer(&value["response"], &answer.model).map_err(unusable)
        }
    }
}

fn unusable(message: String) -> TurnFailure {
    TurnFailure { code: "HOOK_MALFORMED".to_owned(), message }
}

fn decode<T: DeserializeOwned>(what: &str, value: &Value) -> Result<T, String> {
    serde_json::from_value(value.clone()).map_err(|error| format!("it made the {what} unusable: {error}"))
}

/// What a `config` hook says.
struct NewConfig {
    instructions: Option<String>,
    model: Option<String>,
    temperature: Option<f64>,
    max_tokens: Option<u64>,
}

fn read_config(agent: &Value) -> Result<NewConfig, String> {
    decode::<Map<String, Value>>("agent", agent)?;
    Ok(NewConfig {
        instructions: decode("agent's instructions", &agent["instructions"])?,
        model: decode("agent's model", &agent["model"])?,
        temperature: decode("agent's temperature", &agent["temperature"])?,
        max_tokens: decode("agent's maxTokens", &agent["maxTokens"])?,
    })
}

fn read_answer(value: &Value, model: &str) -> Result<Answer, String> {
    Ok(Answer {
        message: decode("response's message", &value["message"])?,
        finish: value["finish_reason"].as_str().unwrap_or("stop").to_owned(),
        usage: serde_json::from_value(value["usage"].clone()).ok(),
        model: model.to_owned(),
    })
}
