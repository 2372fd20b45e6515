//! `ctx.mcp`, `ctx.agent` and `ctx.llm`: operations that wait.
//!
//! Invariant: all of them go through the router or the turn like anyone's calls, with the same hooks and limits. A failed
//! tool throws; it is never taken for a value (Yao ignored `isError`). Deliberately no batches yet.

use std::sync::Arc;

use async_trait::async_trait;
use greenroom_boundary::isolate::{Callback, CallbackVerdict, JsException, OpError};
use greenroom_boundary::llm::{ChatMessage, LlmRequest};
use greenroom_boundary::trace::DelegateVia;
use greenroom_boundary::{AgentId, ConnectorName, ServerName};
use serde_json::{Map, Value, json};

use crate::agents::{self, TextListener, TurnInput};
use crate::host::HostCore;
use crate::router::{CallContext, CallError};

fn text<'a>(args: &'a [Value], index: usize, what: &str) -> Result<&'a str, OpError> {
    match args.get(index) {
        Some(Value::String(text)) => Ok(text),
        _ => Err(OpError::bad_argument(format!("{what} must be a string"))),
    }
}

fn object(args: &[Value], index: usize, what: &str) -> Result<Map<String, Value>, OpError> {
    match args.get(index) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(map)) => Ok(map.clone()),
        Some(_) => Err(OpError::bad_argument(format!("{what} must be an object"))),
    }
}

fn messages(args: &[Value], index: usize, what: &str) -> Result<Vec<ChatMessage>, OpError> {
    let value = args.get(index).cloned().unwrap_or_default();
    if !value.is_array() {
        return Err(OpError::bad_argument(format!("{what}: messages must be an array")));
    }
    serde_json::from_value(value).map_err(|error| OpError::bad_argument(format!("{what}: messages: {error}")))
}

fn failed(error: &CallError) -> OpError {
    OpError::new(error.code(), error.to_string())
}

pub(super) async fn list_tools(core: &Arc<HostCore>, cx: &CallContext, args: &[Value]) -> Result<Value, OpError> {
    let server = ServerName::new(text(args, 0, "mcp.ListTools: server")?);
    let tools = core.router.list_tools(cx, &server).await.map_err(|error| failed(&error))?;
    Ok(json!({"tools": tools}))
}

pub(super) async fn call_tool(core: &Arc<HostCore>, cx: &CallContext, args: &[Value]) -> Result<Value, OpError> {
    let server = ServerName::new(text(args, 0, "mcp.CallTool: server")?);
    let tool = text(args, 1, "mcp.CallTool: tool")?;
    let arguments = object(args, 2, "mcp.CallTool: arguments")?;
    let output = core.router.call(cx, &server, tool, Value::Object(arguments)).await.map_err(|error| failed(&error))?;
    if output.value.get("isError").and_then(Value::as_bool) == Some(true) {
        let text =
            output.value.pointer("/content/0/text").and_then(Value::as_str).unwrap_or("the tool failed without a message");
        return Err(OpError::new("ERR_TOOL", format!("{server}/{tool}: {text}")));
    }
    Ok(parsed(&output.value))
}

/// A tool's result as a script sees it: structured content, else its content items, unwrapped if there is one (Yao §9.5).
fn parsed(result: &Value) -> Value {
    if let Some(structured) = result.get("structuredContent").filter(|value| !value.is_null()) {
        return structured.clone();
    }
    let items = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut values: Vec<Value> = items.iter().map(parsed_item).collect();
    match values.len() {
        0 => Value::Null,
        1 => values.remove(0),
        _ => Value::Array(values),
    }
}

fn parsed_item(item: &Value) -> Value {
    match item.get("type").and_then(Value::as_str) {
        Some("text") => {
            let text = item.get("text").and_then(Value::as_str).unwrap_or_default();
            serde_json::from_str(text).unwrap_or_else(|_| json!(text))
        }
        Some("resource") => item.get("resource").cloned().unwrap_or_default(),
        _ => item.clone(),
    }
}

pub(super) async fn call_agent(core: &Arc<HostCore>, cx: &CallContext, args: &[Value]) -> Result<Value, OpError> {
    let agent = AgentId::new(text(args, 0, "agent.Call: agentID")?);
    let messages = messages(args, 1, "agent.Call")?;
    let options = object(args, 2, "agent.Call: options")?;
    let mut cx = cx.clone();
    if let Some(Value::Object(metadata)) = options.get("metadata") {
        cx.metadata.extend(metadata.clone());
    }
    let connector = options.get("connector").and_then(Value::as_str).map(ConnectorName::new);
    let input = TurnInput { agent: agent.clone(), messages, connector, via: Some(DelegateVia::Script) };
    match agents::run_turn(core.clone(), cx, input).await {
        Ok(result) => Ok(json!({"agent_id": agent, "content": result.text, "response": result.to_response()})),
        Err(failure) => Ok(json!({"agent_id": agent, "error": failure.message, "code": failure.code})),
    }
}

pub(super) async fn stream_llm(
    core: &Arc<HostCore>,
    cx: &CallContext,
    args: &[Value],
    callback: Option<Arc<dyn Callback>>,
) -> Result<Value, OpError> {
    let connector = text(args, 0, "llm.Stream: connector")?;
    let messages = messages(args, 1, "llm.Stream")?;
    let mut options = object(args, 2, "llm.Stream: options")?;
    let number = |value: Option<Value>, what: &str| match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            value.as_f64().map(Some).ok_or_else(|| OpError::bad_argument(format!("llm.Stream: {what} must be a number")))
        }
    };
    let temperature = number(options.shift_remove("temperature"), "temperature")?;
    let max_tokens = number(options.shift_remove("max_tokens"), "max_tokens")?.map(|max| max as u64);
    let request = LlmRequest {
        connector: ConnectorName::new(connector),
        model: String::new(),
        messages,
        tools: Vec::new(),
        tool_choice: None,
        temperature,
        max_tokens,
        params: options,
        agent: cx.agent.as_ref().map(ToString::to_string),
    };
    let mut listener = OnChunk { callback, stopped: false, thrown: None };
    let answer = agents::stream_completion(core, cx, request, &mut listener).await;
    if let Some(exception) = listener.thrown {
        return Err(OpError::new("ERR_CALLBACK", format!("onChunk threw {exception}")));
    }
    let stopped = listener.stopped;
    Ok(match answer {
        Ok(answer) => {
            json!({"connector": connector, "content": answer.message.plain_text(), "response": answer.to_completion(), "stopped": stopped})
        }
        Err(failure) => json!({"connector": connector, "error": failure.message, "code": failure.code}),
    })
}

/// A script's `onChunk`.
struct OnChunk {
    callback: Option<Arc<dyn Callback>>,
    stopped: bool,
    thrown: Option<JsException>,
}

#[async_trait]
impl TextListener for OnChunk {
    async fn text(&mut self, delta: &str) -> bool {
        let Some(callback) = &self.callback else { return true };
        let message = json!({"type": "text", "props": {"content": delta}, "delta": true});
        let Ok(raw) = serde_json::value::to_raw_value(&message) else { return true };
        match callback.call(vec![raw]).await {
            CallbackVerdict::Continue => true,
            CallbackVerdict::Stop => {
                self.stopped = true;
                false
            }
            CallbackVerdict::Threw(exception) => {
                self.thrown = Some(exception);
                false
            }
        }
    }
}
