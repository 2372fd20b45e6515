//! An agent as an MCP server: one tool, `chat-with-<agent>`.
//!
//! Invariant: calling the tool is a turn like any other, with the caller's limits and path. Deliberately no resources yet.

use std::sync::Weak;

use async_trait::async_trait;

use greenroom_boundary::llm::{ChatMessage, Role};
use greenroom_boundary::trace::DelegateVia;
use greenroom_boundary::{AgentId, ConnectorName};
use greenroom_wire::RpcError;
use serde_json::{Value, json};

use super::call::{FAILURE_KEY, TURN_KEY, VIA_KEY};
use super::sampling::{self, SAMPLE};
use super::{TurnFailure, TurnInput, TurnResult, run_turn};
use crate::host::HostCore;
use crate::router::{CallContext, CallError, ListMethod, Output, Server, ServerRequest};

/// The name of an agent's tool.
pub fn tool_name(agent: &AgentId) -> String {
    format!("chat-with-{agent}")
}

/// An agent behind the router.
pub struct AgentServer {
    core: Weak<HostCore>,
    agent: AgentId,
}

impl AgentServer {
    /// The server of `agent`.
    pub fn new(core: Weak<HostCore>, agent: AgentId) -> Self {
        Self { core, agent }
    }

    fn core(&self) -> Result<std::sync::Arc<HostCore>, CallError> {
        self.core
            .upgrade()
            .ok_or_else(|| CallError::Inner { code: "HOST_CLOSED".to_owned(), message: "the host is shutting down".to_owned() })
    }

    fn tool(&self, core: &HostCore) -> Value {
        let description = core.config.agents.get(&self.agent).and_then(|agent| agent.description.clone());
        let description = description.unwrap_or_else(|| format!("Chat with the agent {}", self.agent));
        json!({
            "name": tool_name(&self.agent),
            "description": description,
            "inputSchema": {
                "type": "object",
                "properties": {"prompt": {"type": "string", "description": "What to say to the agent"}},
                "required": ["prompt"],
            },
        })
    }
}

#[async_trait]
impl Server for AgentServer {
    fn boundary(&self) -> String {
        format!("agent.{}", self.agent)
    }

    async fn request(&self, cx: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        let core = self.core()?;
        if request.method == SAMPLE {
            return sampling::answer(core, cx, &self.agent, request).await;
        }
        if let Some(list) = ListMethod::parse(&request.method) {
            (request.sent)();
            return Ok(list.page(if list == ListMethod::Tools { vec![self.tool(&core)] } else { Vec::new() }));
        }
        let name = request.params["name"].as_str().unwrap_or_default();
        if request.method != "tools/call" || name != tool_name(&self.agent) {
            let hint = format!("; its only tool is {}", tool_name(&self.agent));
            return Err(CallError::UnknownTool { server: self.agent.to_string(), tool: name.to_owned(), hint });
        }
        let asked = self.asked(cx, &request.params)?;
        (request.sent)();
        let tells_all = asked.tells_all;
        Ok(result_of(run_turn(core, cx.clone(), asked.input).await, tells_all).into())
    }
}

/// A call of the agent's tool, read.
struct Asked {
    input: TurnInput,
    /// The caller is the host itself and wants the whole outcome.
    tells_all: bool,
}

impl AgentServer {
    fn bad_arguments(&self, message: &str) -> CallError {
        CallError::Rpc { server: self.agent.to_string(), error: RpcError::invalid_params(message) }
    }

    /// `messages` and `connector` count only beside the way of delegation, which this host's own code gives in `_meta`: a
    /// model writes arguments alone, and the front takes the mark out of what clients send.
    fn asked(&self, cx: &CallContext, params: &Value) -> Result<Asked, CallError> {
        let via = params.get("_meta").and_then(|meta| meta.get(VIA_KEY));
        let named: Option<DelegateVia> = via.and_then(|via| serde_json::from_value(via.clone()).ok());
        let arguments = &params["arguments"];
        let from_hook = |key: &str| arguments.get(key).filter(|_| named.is_some());
        let messages = match (arguments.get("prompt"), from_hook("messages")) {
            (Some(Value::String(prompt)), _) => vec![ChatMessage::text(Role::User, prompt)],
            (None, Some(messages)) => {
                serde_json::from_value(messages.clone()).map_err(|error| self.bad_arguments(&format!("`messages`: {error}")))?
            }
            _ => return Err(self.bad_arguments("`prompt` is missing or no string")),
        };
        let connector = from_hook("connector").and_then(Value::as_str).map(ConnectorName::new);
        let via = named.or((!cx.delegation.is_empty()).then_some(DelegateVia::Tool));
        let input = TurnInput { agent: self.agent.clone(), messages, connector, via, sample: None };
        Ok(Asked { input, tells_all: named.is_some() })
    }
}

/// A turn as anybody's tool result.
pub(super) fn plain_result(text: &str, data: &Value) -> Value {
    let text = match (text.is_empty(), data) {
        (false, _) => text.to_owned(),
        (true, Value::Null) => "[NO CONTENT]".to_owned(),
        (true, data) => data.to_string(),
    };
    let mut value = json!({"content": [{"type": "text", "text": text}], "isError": false});
    if data.is_object() {
        value["structuredContent"] = data.clone();
    }
    value
}

fn result_of(turn: Result<TurnResult, TurnFailure>, tells_all: bool) -> Value {
    match turn {
        Ok(turn) => {
            let mut value = plain_result(&turn.text, &turn.data);
            if tells_all {
                let whole = json!({"text": turn.text, "data": turn.data, "completion": turn.completion, "tools": turn.tools});
                value["_meta"] = json!({TURN_KEY: whole});
            }
            value
        }
        Err(failure) => {
            let text = format!("{} ({})", failure.message, failure.code);
            let meta = json!({FAILURE_KEY: {"code": failure.code, "message": failure.message}});
            json!({"content": [{"type": "text", "text": text}], "isError": true, "_meta": meta})
        }
    }
}
