//! Calling an agent from inside the host: delegation, `ctx.agent`.
//!
//! Invariant: it is a call of the agent's tool through the router, like anyone's, so hooks on the agent apply. What the
//! tool's plain result cannot carry travels in `_meta`. Deliberately not offered to outside clients.

use std::sync::Arc;

use greenroom_boundary::llm::ChatMessage;
use greenroom_boundary::trace::DelegateVia;
use greenroom_boundary::{AgentId, ConnectorName, ServerName};
use serde_json::{Map, Value, json};

use super::delegation::DelegationError;
use super::server::{plain_result, tool_name};
use super::{TurnFailure, TurnResult};
use crate::hooks::{MUTATIONS_KEY, without_notes};
use crate::host::HostCore;
use crate::router::{CallContext, did_you_mean, nearest};

/// Key in a request's `_meta`: how work comes from one agent to another.
pub(crate) const VIA_KEY: &str = "greenroom/via";
/// Key in a result's `_meta`: the whole outcome of the turn.
pub(super) const TURN_KEY: &str = "greenroom/turn";
/// Key in a result's `_meta`: why the turn failed.
pub(super) const FAILURE_KEY: &str = "greenroom/error";

/// Work for an agent.
#[derive(Clone, Debug)]
pub struct AgentCall {
    /// Who takes it.
    pub agent: AgentId,
    /// The conversation for it.
    pub messages: Vec<ChatMessage>,
    /// Connector instead of the agent's own.
    pub connector: Option<ConnectorName>,
    /// Merged into the request's metadata.
    pub metadata: Map<String, Value>,
    /// How it comes there.
    pub via: DelegateVia,
}

/// Calls an agent and waits for its turn.
pub async fn call_agent(core: &Arc<HostCore>, cx: &CallContext, call: AgentCall) -> Result<TurnResult, TurnFailure> {
    if !core.config.agents.contains_key(&call.agent) {
        let hint = nearest(call.agent.as_str(), core.config.agents.keys().map(AgentId::as_str));
        return Err(DelegationError::Unknown { name: call.agent.to_string(), hint: did_you_mean(hint) }.into());
    }
    let mut cx = cx.clone();
    cx.metadata.extend(call.metadata);
    cx.tool_call = None;
    cx.timeout = None;
    let arguments = json!({"messages": call.messages, "connector": call.connector});
    let params = json!({"arguments": arguments, "_meta": {VIA_KEY: call.via}});
    let server = ServerName::new(call.agent.as_str());
    match core.router.forward(&cx, &server, &tool_name(&call.agent), params, None).await {
        Ok(output) => outcome(&output.value),
        Err(error) => Err(TurnFailure { code: error.code().to_owned(), message: error.to_string() }),
    }
}

fn outcome(result: &Value) -> Result<TurnResult, TurnFailure> {
    let meta = |key: &str| result.get("_meta").and_then(|meta| meta.get(key));
    let text = || result.pointer("/content/0/text").and_then(Value::as_str).unwrap_or_default().to_owned();
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        let failure = meta(FAILURE_KEY);
        let field = |name: &str| failure.and_then(|failure| failure.get(name)).and_then(Value::as_str).map(str::to_owned);
        return Err(TurnFailure {
            code: field("code").unwrap_or_else(|| "AGENT_FAILED".to_owned()),
            message: field("message").unwrap_or_else(text),
        });
    }
    let Some(turn) = meta(TURN_KEY) else {
        return Ok(TurnResult { text: text(), ..TurnResult::default() });
    };
    if changed_by_hooks(result, turn) {
        return Ok(plain(result));
    }
    let part = |name: &str| turn.get(name).cloned().unwrap_or_default();
    Ok(TurnResult {
        text: part("text").as_str().unwrap_or_default().to_owned(),
        data: part("data"),
        completion: part("completion"),
        tools: part("tools").as_array().cloned().unwrap_or_default(),
    })
}

/// Whether hooks on the agent changed its answer: then the outcome beside it, which they may not know of, is no longer its.
/// The record says so where the policy has one; the plain answer shows it in any case.
fn changed_by_hooks(result: &Value, turn: &Value) -> bool {
    let recorded =
        result.get("_meta").and_then(|meta| meta.get(MUTATIONS_KEY)).is_some_and(|record| record.get("response").is_some());
    let told = plain_result(turn["text"].as_str().unwrap_or_default(), &turn["data"]);
    let content = told["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let data = |result: &Value| result.get("structuredContent").filter(|data| !data.is_null()).cloned();
    recorded || without_notes(result) != content || data(result) != data(&told)
}

/// The turn as the plain result tells it, the notes on mutations included.
fn plain(result: &Value) -> TurnResult {
    let items = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = items.iter().filter_map(|item| item.get("text")?.as_str()).collect();
    let data = result.get("structuredContent").cloned().unwrap_or_default();
    TurnResult { text: texts.join("\n"), data, ..TurnResult::default() }
}
