//! Samples for servers: which agent makes one, and how its turn becomes an answer.
//!
//! Invariant: a sample is a turn like any other, with the agent's hooks, and is kept in no history; what it leads to counts
//! as delegation. Deliberately without `includeContext` of other servers: any value but `none` means the agent's own tools.

use std::sync::Arc;

use greenroom_boundary::AgentId;
use greenroom_boundary::llm::{ChatMessage, FunctionCall, LlmRequest, Role, ToolCall, ToolSpec};
use greenroom_boundary::trace::DelegateVia;
use greenroom_wire::RpcError;
use serde_json::{Value, json};

use super::{TurnInput, TurnResult, run_turn};
use crate::config::HostConfig;
use crate::host::HostCore;
use crate::router::{CallContext, CallError, Output, ServerRequest};

/// The method by which servers ask for a sample.
pub(crate) const SAMPLE: &str = "sampling/createMessage";

/// What a server asks for besides the messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SampleSettings {
    system_prompt: Option<String>,
    max_tokens: Option<u64>,
    temperature: Option<f64>,
    stop: Vec<Value>,
    tools: Vec<ToolSpec>,
    tool_choice: Option<String>,
    /// Whether the agent's own tools are offered, too.
    pub own_tools: bool,
}

impl SampleSettings {
    fn read(params: &Value) -> Self {
        let list = |key: &str| params.get(key).and_then(Value::as_array).cloned().unwrap_or_default();
        Self {
            system_prompt: params.get("systemPrompt").and_then(Value::as_str).map(str::to_owned),
            max_tokens: params.get("maxTokens").and_then(Value::as_u64),
            temperature: params.get("temperature").and_then(Value::as_f64),
            stop: list("stopSequences"),
            tools: list("tools").iter().filter_map(tool).collect(),
            tool_choice: params.pointer("/toolChoice/mode").and_then(Value::as_str).map(str::to_owned),
            own_tools: params.get("includeContext").and_then(Value::as_str).is_some_and(|context| context != "none"),
        }
    }

    /// Lays the settings over those of the agent.
    pub(super) fn apply(&self, request: &mut LlmRequest) {
        if let Some(prompt) = &self.system_prompt {
            request.messages.retain(|message| message.role != Role::System);
            request.messages.insert(0, ChatMessage::text(Role::System, prompt));
        }
        request.max_tokens = self.max_tokens.or(request.max_tokens);
        request.temperature = self.temperature.or(request.temperature);
        request.tool_choice = if self.tools.is_empty() { None } else { self.tool_choice.clone() };
        request.tools.extend(self.tools.iter().cloned());
        if !self.stop.is_empty() {
            request.params.insert("stop".to_owned(), json!(self.stop));
        }
    }

    /// Whether the model calls a tool that only the server can run.
    pub(super) fn is_for_asker(&self, calls: &[ToolCall]) -> bool {
        !self.own_tools || calls.iter().any(|call| self.tools.iter().any(|tool| tool.name == call.function.name))
    }
}

fn tool(tool: &Value) -> Option<ToolSpec> {
    Some(ToolSpec {
        name: tool.get("name")?.as_str()?.to_owned(),
        description: tool.get("description").and_then(Value::as_str).map(str::to_owned),
        parameters: tool.get("inputSchema").cloned().unwrap_or_else(|| json!({"type": "object", "properties": {}})),
    })
}

/// The agent that makes a sample: the first hint that is an agent's name, else the first that is an alias, else the best by
/// cost, speed and intelligence under the server's priorities. A low cost is good.
pub fn choose(config: &HostConfig, params: &Value) -> Option<AgentId> {
    let preferences = params.get("modelPreferences");
    let hints = preferences.and_then(|preferences| preferences.get("hints")).and_then(Value::as_array);
    let names: Vec<&str> = hints.into_iter().flatten().filter_map(|hint| hint.get("name")?.as_str()).collect();
    if let Some(agent) = names.iter().map(|name| AgentId::new(*name)).find(|name| config.agents.contains_key(name)) {
        return Some(agent);
    }
    let stands_for = |name: &str| {
        let mut agents = config.agents.iter();
        agents.find(|(_, agent)| agent.selection.aliases.iter().any(|alias| alias == name)).map(|(id, _)| id.clone())
    };
    if let Some(agent) = names.iter().find_map(|name| stands_for(name)) {
        return Some(agent);
    }
    let priority = |key: &str| preferences.and_then(|preferences| preferences.get(key)).and_then(Value::as_f64).unwrap_or(1.0);
    let (cheap, fast, clever) = (priority("costPriority"), priority("speedPriority"), priority("intelligencePriority"));
    let mut best: Option<(f64, &AgentId)> = None;
    for (id, agent) in &config.agents {
        let own = &agent.selection;
        let score = own.cost.map_or(0.0, |cost| 1.0 - cost) * cheap
            + own.speed.unwrap_or(0.0) * fast
            + own.intelligence.unwrap_or(0.0) * clever;
        if best.is_none_or(|(known, _)| score > known) {
            best = Some((score, id));
        }
    }
    best.map(|(_, id)| id.clone())
}

/// Answers a sample with a turn of `agent`.
pub(super) async fn answer(
    core: Arc<HostCore>,
    cx: &CallContext,
    agent: &AgentId,
    request: ServerRequest,
) -> Result<Output, CallError> {
    let bad = |message: &str| CallError::Rpc { server: agent.to_string(), error: RpcError::invalid_params(message) };
    let Some(list) = request.params.get("messages").and_then(Value::as_array) else {
        return Err(bad("`messages` is missing or no list"));
    };
    let mut messages = Vec::new();
    for message in list {
        messages.extend(chat_messages(message).ok_or_else(|| bad("a message has no role or no content that is known here"))?);
    }
    let sample = Some(SampleSettings::read(&request.params));
    let input = TurnInput { agent: agent.clone(), messages, connector: None, via: Some(DelegateVia::Sampling), sample };
    (request.sent)();
    match run_turn(core, cx.clone(), input).await {
        Ok(turn) => Ok(result(&turn, agent).into()),
        Err(failure) => Err(CallError::Inner { code: failure.code, message: failure.message }),
    }
}

/// A sampling message as the model's messages: results of tools are messages of their own.
fn chat_messages(message: &Value) -> Option<Vec<ChatMessage>> {
    let role = match message.get("role")?.as_str()? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return None,
    };
    let parts = match message.get("content")? {
        Value::Array(parts) => parts.iter().collect::<Vec<_>>(),
        part @ Value::Object(_) => vec![part],
        _ => return None,
    };
    let (mut own, mut results) = (ChatMessage::text(role, ""), Vec::new());
    let mut content = Vec::new();
    for part in parts {
        match part.get("type")?.as_str()? {
            "tool_use" => own.tool_calls.push(ToolCall {
                id: part.get("id")?.as_str()?.to_owned(),
                kind: "function".to_owned(),
                function: FunctionCall {
                    name: part.get("name")?.as_str()?.to_owned(),
                    arguments: part.get("input").cloned().unwrap_or_else(|| json!({})).to_string(),
                },
            }),
            "tool_result" => {
                let items = part.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
                let texts: Vec<&str> = items.iter().filter_map(|item| item.get("text")?.as_str()).collect();
                let mut result = ChatMessage::text(Role::Tool, texts.join("\n"));
                result.tool_call_id = Some(part.get("toolUseId")?.as_str()?.to_owned());
                results.push(result);
            }
            _ => content.push(content_part(part)?),
        }
    }
    own.content = match content.as_slice() {
        [] => Value::Null,
        [only] if only.get("text").is_some() => only["text"].clone(),
        _ => Value::Array(content),
    };
    if !own.content.is_null() || !own.tool_calls.is_empty() {
        results.push(own);
    }
    Some(results)
}

fn content_part(part: &Value) -> Option<Value> {
    let field = |name: &str| part.get(name).and_then(Value::as_str);
    match field("type")? {
        "text" => Some(json!({"type": "text", "text": field("text")?})),
        "image" => {
            let url = format!("data:{};base64,{}", field("mimeType")?, field("data")?);
            Some(json!({"type": "image_url", "image_url": {"url": url}}))
        }
        "audio" => {
            let format = field("mimeType")?.rsplit('/').next()?;
            Some(json!({"type": "input_audio", "input_audio": {"data": field("data")?, "format": format}}))
        }
        _ => None,
    }
}

/// A turn as a `CreateMessageResult`; an agent whose model has no name gives its own.
fn result(turn: &TurnResult, agent: &AgentId) -> Value {
    let completion = &turn.completion;
    let text = match &turn.data {
        Value::Null => turn.text.clone(),
        Value::String(text) => text.clone(),
        data => data.to_string(),
    };
    let calls = completion.get("tool_calls").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let content = if calls.is_empty() || !turn.data.is_null() {
        json!({"type": "text", "text": text})
    } else {
        let mut parts: Vec<Value> = Vec::new();
        if !text.is_empty() {
            parts.push(json!({"type": "text", "text": text}));
        }
        parts.extend(calls.iter().map(tool_use));
        Value::Array(parts)
    };
    let model = completion.get("model").and_then(Value::as_str).filter(|model| !model.is_empty());
    let model = model.unwrap_or(agent.as_str());
    let finish = completion.get("finish_reason").and_then(Value::as_str).unwrap_or("stop");
    let reason = match finish {
        "stop" | "stopped" => "endTurn",
        "length" => "maxTokens",
        "tool_calls" => "toolUse",
        "stop_sequence" => "stopSequence",
        other => other,
    };
    json!({"role": "assistant", "content": content, "model": model, "stopReason": reason})
}

fn tool_use(call: &Value) -> Value {
    let arguments = call.pointer("/function/arguments").and_then(Value::as_str).unwrap_or_default();
    let input = serde_json::from_str::<Value>(arguments).ok().filter(Value::is_object).unwrap_or_else(|| json!({}));
    json!({"type": "tool_use", "id": call["id"], "name": call.pointer("/function/name"), "input": input})
}
