//! The script of a model, as a scenario writes it under `llm.NAME.script`.
//!
//! Invariant: what is written is what is meant: unknown keys are refused, a reply is sent as it stands. Deliberately no
//! computed replies.

use std::borrow::Cow;
use std::num::NonZeroU32;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Duration;
use crate::pattern::Pattern;

/// A model's turns. A request takes the first unused turn that matches it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct LlmScript(pub Vec<LlmTurn>);

/// One request that is foreseen, and the answer to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlmTurn {
    /// Its name in messages.
    pub id: String,
    /// What the request must look like; everything that is left out matches.
    #[serde(default)]
    pub when: LlmWhen,
    /// The answer.
    pub reply: LlmReply,
    /// How many requests it answers (default 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<NonZeroU32>,
}

/// What a request must look like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlmWhen {
    /// The conversation: a list of messages in Chat Completions' shape.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Pattern>,
    /// The tools shown to the model: a list of `{ name, description, parameters }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Pattern>,
    /// The tool messages at the end of the conversation: all of them, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_results: Option<Vec<ToolResultWhen>>,
    /// The agent on whose behalf the model is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assistant: Option<Pattern>,
    /// The connector asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connector: Option<Pattern>,
}

/// What one tool message must look like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolResultWhen {
    /// The `as` of the scripted call that it answers.
    pub of: String,
    /// Its content read as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Pattern>,
    /// Its content as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Pattern>,
    /// Whether the host marked it as failed (`is_error` of the message).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
}

/// An answer. Its parts are sent in this order: reasoning, text, tool calls, usage; then it finishes, fails or is cut.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LlmReply {
    /// How it is spread over time; absent means whole and at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream: Option<StreamShape>,
    /// Text of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The model's reasoning, before the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Tool calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ScriptedCall>,
    /// Token counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<ScriptedUsage>,
    /// Fail like a provider: before anything is sent, or after the parts above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ScriptedError>,
    /// Break off after the parts above, without an end mark.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
    /// Why it ends (default `tool_calls` if there are any, else `stop`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
}

/// How an answer is spread over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StreamShape {
    /// Time to the first token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttft: Option<Duration>,
    /// Speed after that; a token is four characters. Absent means at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_s: Option<TokenRate>,
    /// Where text and arguments are cut.
    #[serde(default)]
    pub chunking: Chunking,
}

/// Where text and arguments are cut into pieces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Chunking {
    /// Nowhere.
    #[default]
    Whole,
    /// After each word.
    Words,
    /// Where the seed says; the same seed gives the same borders.
    Seeded,
}

/// Tokens per second; more than zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct TokenRate(f64);

impl TokenRate {
    /// The rate, if it is a positive finite number.
    pub fn new(tokens_per_s: f64) -> Option<Self> {
        (tokens_per_s.is_finite() && tokens_per_s > 0.0).then_some(Self(tokens_per_s))
    }

    /// Tokens per second.
    pub fn per_s(self) -> f64 {
        self.0
    }
}

impl<'de> Deserialize<'de> for TokenRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(f64::deserialize(deserializer)?).ok_or_else(|| D::Error::custom("`tokens_per_s` must be more than 0"))
    }
}

impl JsonSchema for TokenRate {
    fn schema_name() -> Cow<'static, str> {
        "TokenRate".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "exclusiveMinimum": 0 })
    }
}

/// A tool call of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// Its name within the script (default: the tool's name); the call's id is `call_NAME`.
    #[serde(rename = "as", default, skip_serializing_if = "Option::is_none")]
    pub alias: Option<String>,
    /// The tool, as it is shown to the model: `server__tool`.
    pub name: String,
    /// The arguments; a string is sent as it is, well-formed or not. Default `{}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
}

impl ScriptedCall {
    /// Its name within the script.
    pub fn alias(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }

    /// The arguments as the model writes them.
    pub fn arguments_text(&self) -> String {
        match &self.arguments {
            None => "{}".to_owned(),
            Some(Value::String(raw)) => raw.clone(),
            Some(value) => value.to_string(),
        }
    }
}

/// Token counts of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedUsage {
    /// Tokens of the prompt.
    #[serde(rename = "in")]
    pub input: u64,
    /// Tokens generated.
    #[serde(rename = "out")]
    pub output: u64,
}

/// A provider's HTTP error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedError {
    /// HTTP status code.
    pub status: u16,
    /// The provider's message.
    #[serde(default)]
    pub message: String,
    /// What it says in `Retry-After`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Duration>,
}
