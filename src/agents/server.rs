//! An agent as an MCP server: one tool, `chat-with-<agent>`.
//!
//! Invariant: calling the tool is a turn like any other, with the caller's limits and path. Deliberately no resources yet.

use std::sync::Weak;

use async_trait::async_trait;
use greenroom_boundary::AgentId;
use greenroom_boundary::llm::{ChatMessage, Role};
use greenroom_boundary::trace::DelegateVia;
use serde_json::{Value, json};

use super::{TurnInput, run_turn};
use crate::host::HostCore;
use crate::router::{CallContext, CallError, Output, Server, ServerRequest};

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
}

#[async_trait]
impl Server for AgentServer {
    fn boundary(&self) -> String {
        format!("agent.{}", self.agent)
    }

    async fn list(&self, _cx: &CallContext, method: &str) -> Result<Vec<Value>, CallError> {
        if method != "tools/list" {
            return Ok(Vec::new());
        }
        let core = self.core()?;
        let description = core.config.agents.get(&self.agent).and_then(|agent| agent.description.clone());
        let description = description.unwrap_or_else(|| format!("Chat with the agent {}", self.agent));
        Ok(vec![json!({
            "name": tool_name(&self.agent),
            "description": description,
            "inputSchema": {
                "type": "object",
                "properties": {"prompt": {"type": "string", "description": "What to say to the agent"}},
                "required": ["prompt"],
            },
        })])
    }

    async fn request(&self, cx: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        let core = self.core()?;
        let name = request.params["name"].as_str().unwrap_or_default();
        if request.method != "tools/call" || name != tool_name(&self.agent) {
            let hint = format!("; its only tool is {}", tool_name(&self.agent));
            return Err(CallError::UnknownTool { server: self.agent.to_string(), tool: name.to_owned(), hint });
        }
        let prompt = match request.params.pointer("/arguments/prompt") {
            Some(Value::String(prompt)) => prompt.clone(),
            _ => {
                let error = greenroom_wire::RpcError::invalid_params("`prompt` is missing or no string");
                return Err(CallError::Rpc { server: self.agent.to_string(), error });
            }
        };
        (request.sent)();
        let via = (!cx.delegation.is_empty()).then_some(DelegateVia::Tool);
        let input = TurnInput {
            agent: self.agent.clone(),
            messages: vec![ChatMessage::text(Role::User, prompt)],
            connector: None,
            via,
        };
        match run_turn(core, cx.clone(), input).await {
            Ok(result) => {
                let text =
                    if result.text.is_empty() && result.data.is_null() { "[NO CONTENT]".to_owned() } else { result.text };
                let mut value = json!({"content": [{"type": "text", "text": text}], "isError": false});
                if let Value::Object(_) = &result.data {
                    value["structuredContent"] = result.data;
                }
                Ok(value.into())
            }
            Err(failure) => {
                let text = format!("{} ({})", failure.message, failure.code);
                Ok(json!({"content": [{"type": "text", "text": text}], "isError": true, "_meta": {"greenroom/error": failure.code}}).into())
            }
        }
    }
}
