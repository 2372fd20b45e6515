//! `Create` and `Next`: calling the functions and reading what they return.
//!
//! Invariant: a wrong type is a typed error that names the field; a missing function is "no hook"; a throw is a failure,
//! whatever its text says (Yao swallowed some by their text). Deliberately no engine knowledge.

use std::sync::Arc;

use greenroom_boundary::isolate::{CallRequest, CallValue, IsolateError, Limits, PassCtx, Script};
use greenroom_boundary::llm::ChatMessage;
use greenroom_boundary::trace::{HookPhase, HookVerdict};
use greenroom_boundary::{RawJson, SpanId};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::TurnFailure;
use super::hook_event::TurnHookEvent;
use crate::context::HookContext;
use crate::host::HostCore;
use crate::router::CallContext;

/// Work for another agent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct DelegateRequest {
    /// Who takes it.
    pub agent_id: String,
    /// The conversation for it.
    pub messages: Vec<ChatMessage>,
    /// Options of the call: `connector`, `metadata`.
    #[serde(default)]
    pub options: Option<DelegateOptions>,
}

/// Options of a delegation; other keys are ignored (Yao).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct DelegateOptions {
    /// Connector instead of the target's own.
    #[serde(default)]
    pub connector: Option<String>,
    /// Merged into the request's metadata.
    #[serde(default)]
    pub metadata: Option<Map<String, Value>>,
}

/// A server that `Create` asks for, with its allowed tools.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ServerReference {
    /// The server.
    pub server_id: String,
    /// Only these tools.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
}

/// What `Create` may return; unknown keys are ignored (Yao).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct CreateResponse {
    /// Replaces the conversation part of the prompt; `[]` counts as not given.
    #[serde(default)]
    pub messages: Option<Vec<ChatMessage>>,
    /// Sampling temperature of this turn.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// Upper bound on generated tokens.
    #[serde(default)]
    pub max_tokens: Option<u64>,
    /// The same under Chat Completions' newer name.
    #[serde(default)]
    pub max_completion_tokens: Option<u64>,
    /// Connector of this turn.
    #[serde(default)]
    pub connector: Option<String>,
    /// Servers of this turn, instead of the agent's.
    #[serde(default)]
    pub mcp_servers: Option<Vec<ServerReference>>,
    /// Merged into the request's metadata; the hook wins.
    #[serde(default)]
    pub metadata: Option<Map<String, Value>>,
    /// Route away now: neither this agent's model nor its `Next` runs.
    #[serde(default)]
    pub delegate: Option<DelegateRequest>,
}

/// What `Next` may return; unknown keys are ignored (Yao).
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct NextResponse {
    /// Route away; wins over `data`.
    #[serde(default)]
    pub delegate: Option<DelegateRequest>,
    /// The turn's data.
    #[serde(default)]
    pub data: Option<Value>,
}

/// A hook function of an agent's script, about to be called.
pub(super) struct ScriptHook<'a> {
    pub(super) core: &'a Arc<HostCore>,
    pub(super) cx: &'a CallContext,
    pub(super) script: &'a Arc<Script>,
    pub(super) span: SpanId,
}

impl ScriptHook<'_> {
    /// Calls `Create` or `Next`; `None` if there is no such function or it returned nothing.
    pub(super) async fn call<T: DeserializeOwned>(&self, phase: HookPhase, args: [Value; 2]) -> Result<Option<T>, TurnFailure> {
        let function = if phase == HookPhase::Create { "Create" } else { "Next" };
        let returned = self.invoke(function, args).await;
        let (verdict, patch, result) = match returned {
            Ok(CallValue::NoSuchFunction) => return Ok(None),
            Ok(CallValue::Undefined) => (HookVerdict::Unchanged, None, Ok(None)),
            Ok(CallValue::Json(raw)) => read(function, &raw),
            Err(error) => (verdict_of(&error), None, Err(TurnFailure::from(error))),
        };
        let agent = self.cx.agent.as_ref().map_or("", |agent| agent.as_str());
        let failure = result.as_ref().err().map(|failure| (failure.code.clone(), failure.message.clone()));
        let event = TurnHookEvent { hook: format!("{agent}/{function}"), of: self.span, phase, verdict, patch, failure };
        event.emit(self.core, self.cx);
        result
    }

    async fn invoke(&self, function: &str, args: [Value; 2]) -> Result<CallValue, IsolateError> {
        let encode = |value: &Value| {
            serde_json::value::to_raw_value(value).map_err(|error| IsolateError::Engine { message: error.to_string() })
        };
        let limits = self.core.config.policy.script_limits;
        let own = self.cx.agent.as_ref().and_then(|agent| self.core.config.agents.get(agent)).and_then(|agent| agent.isolation);
        let limits = Limits { isolation: own.unwrap_or(limits.isolation), ..limits };
        let request = CallRequest {
            script: self.script.clone(),
            function: function.to_owned(),
            pass_ctx: PassCtx::First,
            args: args.iter().map(encode).collect::<Result<Vec<RawJson>, _>>()?,
            limits,
        };
        let cx = self.cx.within(self.span);
        let cancel = cx.cancel.clone();
        let _drop_guard = cancel.clone().drop_guard();
        let ctx = Arc::new(HookContext::new(self.core.clone(), cx));
        self.core.drivers.isolate.call(request, ctx, self.core.hand_off, &cancel).await
    }
}

fn verdict_of(error: &IsolateError) -> HookVerdict {
    match error {
        IsolateError::WallLimit { .. } | IsolateError::CpuLimit { .. } => HookVerdict::Timeout,
        _ => HookVerdict::Error,
    }
}

/// Checks what a hook returned, as a turn would.
pub(crate) fn check_returned(phase: HookPhase, raw: &RawJson) -> Result<(), TurnFailure> {
    if phase == HookPhase::Create {
        read::<CreateResponse>("Create", raw).2.map(drop)
    } else {
        read::<NextResponse>("Next", raw).2.map(drop)
    }
}

type Read<T> = (HookVerdict, Option<Value>, Result<Option<T>, TurnFailure>);

fn read<T: DeserializeOwned>(function: &str, raw: &RawJson) -> Read<T> {
    let value: Value = match serde_json::from_str(raw.get()) {
        Ok(value) => value,
        Err(error) => {
            let message = format!("{function} returned a value that cannot be read: {error}");
            return (HookVerdict::Error, None, Err(TurnFailure { code: "HOOK_MALFORMED".to_owned(), message }));
        }
    };
    match &value {
        Value::Null => (HookVerdict::Unchanged, None, Ok(None)),
        Value::Object(fields) => {
            let verdict = if fields.is_empty() { HookVerdict::Unchanged } else { HookVerdict::Mutated };
            let patch =
                fields.iter().map(|(key, value)| json!({"op": "add", "path": format!("/{key}"), "value": value})).collect();
            match typed::<T>(function, value.clone()) {
                Ok(response) => (verdict, (!fields.is_empty()).then_some(Value::Array(patch)), Ok(Some(response))),
                Err(failure) => (HookVerdict::Error, None, Err(failure)),
            }
        }
        _ => {
            let message = format!("{function} must return an object or nothing, it returned {value}");
            (HookVerdict::Error, None, Err(TurnFailure { code: "HOOK_MALFORMED".to_owned(), message }))
        }
    }
}

/// Reads field by field, so that the error names the field.
fn typed<T: DeserializeOwned>(function: &str, value: Value) -> Result<T, TurnFailure> {
    let fields = value.as_object().cloned().unwrap_or_default();
    serde_json::from_value(value).map_err(|error| {
        let wrong = fields.iter().find(|(key, value)| {
            let single: Map<String, Value> = [((*key).clone(), (*value).clone())].into_iter().collect();
            serde_json::from_value::<T>(Value::Object(single)).is_err()
        });
        let field = wrong.map(|(key, _)| format!(" field `{key}`:")).unwrap_or_default();
        TurnFailure { code: "HOOK_MALFORMED".to_owned(), message: format!("{function} returned a wrong type:{field} {error}") }
    })
}
