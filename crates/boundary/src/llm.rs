//! The LLM boundary: stream one completion.
//!
//! Invariant: the neutral shapes are those of Chat Completions (messages, tool calls with JSON text as arguments), because
//! both nanobot's and Yao's hooks speak them; a dialect's driver translates. Deliberately no retries and no history here.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{BoxStream, CancellationToken, ConnectorName};

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions of the application's developer.
    Developer,
    /// System instructions.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// One message of a conversation, in Chat Completions' shape; unknown fields are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who wrote it.
    pub role: Role,
    /// Text, a list of content parts, or absent (`null`) for a message of tool calls only.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub content: Value,
    /// Tool calls of an assistant message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that a `tool` message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// Everything else (`name`, `refusal`, `reasoning_content`, …).
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ChatMessage {
    /// A message of plain text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, content: Value::String(text.into()), tool_calls: Vec::new(), tool_call_id: None, extra: Map::new() }
    }

    /// The text of the message: its string, or its text parts joined.
    pub fn plain_text(&self) -> String {
        match &self.content {
            Value::String(text) => text.clone(),
            Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")?.as_str()).collect(),
            _ => String::new(),
        }
    }
}

/// One tool call that a model asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The provider's id of the call.
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type", default = "function_type")]
    pub kind: String,
    /// What to call.
    pub function: FunctionCall,
}

fn function_type() -> String {
    "function".to_owned()
}

/// Name and arguments of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionCall {
    /// The tool's name as it was shown to the model.
    pub name: String,
    /// The arguments as the model wrote them: JSON text, maybe empty, maybe malformed.
    #[serde(default)]
    pub arguments: String,
}

/// A tool as it is shown to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name that the model uses.
    pub name: String,
    /// What it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// A request for one completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LlmRequest {
    /// The connector asked.
    pub connector: ConnectorName,
    /// The model's name at the provider; empty means the connector's default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// The conversation.
    pub messages: Vec<ChatMessage>,
    /// The tools that the model may call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<ToolSpec>,
    /// `auto`, `none`, `required` or a tool's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<String>,
    /// Sampling temperature.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Upper bound on generated tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Further parameters, sent as they are (`top_p`, `seed`, `response_format`, …).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub params: Map<String, Value>,
    /// The agent on whose behalf the call is made; never sent to a provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// Token counts of one completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    #[serde(rename = "in")]
    pub input_tokens: u64,
    /// Tokens generated.
    #[serde(rename = "out")]
    pub output_tokens: u64,
}

/// One piece of a streamed completion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum LlmEvent {
    /// More text of the answer.
    Text {
        /// The piece.
        delta: String,
    },
    /// More text of the model's reasoning.
    Reasoning {
        /// The piece.
        delta: String,
    },
    /// A piece of a tool call; the first piece of an index carries id and name.
    ToolCall {
        /// Position of the call in the answer.
        index: usize,
        /// The provider's id, in the first piece.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The tool's name, in the first piece.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// More of the arguments' JSON text.
        #[serde(default)]
        arguments: String,
    },
    /// Token counts; the last one counts.
    Usage(Usage),
    /// The end. A stream that ends without it was cut.
    Finish {
        /// `stop`, `length`, `tool_calls`, `content_filter` or the provider's own word.
        reason: String,
    },
}

/// What a connector can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LlmCapabilities {
    /// Accepts tools.
    pub tools: bool,
    /// Streams pieces as they are made.
    pub streaming: bool,
}

/// Why no completion came, or why it broke off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LlmError {
    /// The provider answered with an HTTP error.
    #[error("{connector}: provider answered {status}: {message}")]
    Status {
        /// The connector asked.
        connector: String,
        /// HTTP status code.
        status: u16,
        /// The provider's message, shortened.
        message: String,
        /// `Retry-After`, in milliseconds.
        retry_after_ms: Option<u64>,
    },
    /// The provider could not be reached, or the connection broke.
    #[error("{connector}: {message}")]
    Transport {
        /// The connector asked.
        connector: String,
        /// What happened.
        message: String,
    },
    /// The answer is not what the dialect allows.
    #[error("{connector}: malformed answer: {message}")]
    Malformed {
        /// The connector asked.
        connector: String,
        /// What is wrong with it.
        message: String,
    },
    /// The stream ended before its end mark.
    #[error("{connector}: the answer was cut off")]
    Truncated {
        /// The connector asked.
        connector: String,
    },
    /// The caller cancelled.
    #[error("{connector}: cancelled")]
    Cancelled {
        /// The connector asked.
        connector: String,
    },
    /// No such connector, or it is denied in this scenario, or its script has no turn for this request.
    #[error("{message}")]
    Unavailable {
        /// The connector asked.
        connector: String,
        /// What to do about it.
        message: String,
    },
}

impl LlmError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Status { .. } => "LLM_STATUS",
            Self::Transport { .. } => "LLM_TRANSPORT",
            Self::Malformed { .. } => "LLM_MALFORMED",
            Self::Truncated { .. } => "LLM_TRUNCATED",
            Self::Cancelled { .. } => "LLM_CANCELLED",
            Self::Unavailable { .. } => "LLM_UNAVAILABLE",
        }
    }
}

/// The pieces of one completion, in order; after an error nothing follows.
pub type LlmStream = BoxStream<'static, Result<LlmEvent, LlmError>>;

/// A model behind a connector.
#[async_trait]
pub trait Llm: Send + Sync + fmt::Debug {
    /// What it can do.
    fn capabilities(&self) -> LlmCapabilities;

    /// Starts a completion. Cancelling the token ends the stream with [`LlmError::Cancelled`] and tells the provider.
    async fn stream(&self, request: LlmRequest, cancel: &CancellationToken) -> Result<LlmStream, LlmError>;
}
