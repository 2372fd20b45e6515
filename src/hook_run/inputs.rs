//! The files that say what a hook gets: messages, payload, `ctx`, and answers of its peers.
//!
//! Invariant: an unknown key is refused where its meaning would be lost, with its line and the nearest key. Deliberately
//! small: what is left out has a default.

use std::collections::BTreeMap;

use greenroom_mocks::cli::CliScript;
use greenroom_mocks::llm::LlmScript;
use greenroom_mocks::mcp::McpScript;
use greenroom_mocks::search::SearchScript;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Which function of the script is the hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookName {
    /// Before the model.
    Create,
    /// After it.
    Next,
}

impl HookName {
    /// The function's name.
    pub fn function(self) -> &'static str {
        match self {
            Self::Create => "Create",
            Self::Next => "Next",
        }
    }
}

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RoleInput {
    /// Instructions of the developer.
    Developer,
    /// Instructions.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
}

/// A message of the conversation, in Chat Completions' shape; further keys are handed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageInput {
    /// Who says it.
    pub role: RoleInput,
    /// Text, or a list of parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// The rest: `name`, `tool_call_id`, `tool_calls`, …
    #[serde(flatten)]
    pub further: Map<String, Value>,
}

impl MessageInput {
    /// What a person says.
    pub fn of_user(text: &str) -> Self {
        Self { role: RoleInput::User, content: Some(json!(text)), further: Map::new() }
    }
}

/// `Next`'s payload; what is left out is as after a model call that gave nothing.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PayloadInput {
    /// The conversation that the model got; `--messages` if it is left out.
    #[serde(default)]
    pub messages: Option<Vec<MessageInput>>,
    /// The model's answer.
    #[serde(default)]
    pub completion: Option<Map<String, Value>>,
    /// The tools that were called.
    #[serde(default)]
    pub tools: Option<Vec<Map<String, Value>>>,
    /// Why the model or a tool failed.
    #[serde(default)]
    pub error: String,
}

/// The plain data of `ctx`, and what its memory holds at the start.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CtxInput {
    /// `ctx.chat_id`.
    #[serde(default)]
    pub chat_id: Option<String>,
    /// `ctx.assistant_id`; the script's folder or file name if it is left out.
    #[serde(default)]
    pub assistant_id: Option<String>,
    /// `ctx.locale`.
    #[serde(default)]
    pub locale: Option<String>,
    /// `ctx.theme`.
    #[serde(default)]
    pub theme: Option<String>,
    /// `ctx.route`.
    #[serde(default)]
    pub route: Option<String>,
    /// `ctx.referer`.
    #[serde(default)]
    pub referer: Option<String>,
    /// `ctx.accept`.
    #[serde(default)]
    pub accept: Option<String>,
    /// The files of `ctx.workspace`; without it there is none.
    #[serde(default)]
    pub workspace: Option<BTreeMap<String, String>>,
    /// `ctx.client`.
    #[serde(default)]
    pub client: Option<Map<String, Value>>,
    /// `ctx.metadata`.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// `ctx.authorized`; `user_id` and `team_id` bring the memories of the person and the team.
    #[serde(default)]
    pub authorized: Option<Map<String, Value>>,
    /// What the memories hold at the start.
    #[serde(default)]
    pub memory: MemoryInput,
}

/// What the memories hold at the start.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MemoryInput {
    /// `ctx.memory.context`.
    #[serde(default)]
    pub context: Map<String, Value>,
    /// `ctx.memory.chat`.
    #[serde(default)]
    pub chat: Map<String, Value>,
    /// `ctx.memory.user`.
    #[serde(default)]
    pub user: Map<String, Value>,
    /// `ctx.memory.team`.
    #[serde(default)]
    pub team: Map<String, Value>,
}

/// Scripted answers of the hook's peers, in the language of scenarios. A peer that is not here answers by default.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MocksInput {
    /// Commands of `ctx.computer`; without it there is none.
    #[serde(default)]
    pub cli: Option<CliScript>,
    /// Models, by connector.
    #[serde(default)]
    pub llm: BTreeMap<String, LlmScript>,
    /// Servers.
    #[serde(default)]
    pub mcp: BTreeMap<String, McpScript>,
    /// Searches.
    #[serde(default)]
    pub search: Option<SearchScript>,
    /// Other agents: what the model of each answers.
    #[serde(default)]
    pub agents: BTreeMap<String, LlmScript>,
}

/// All that a hook gets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inputs {
    /// The conversation.
    pub messages: Vec<MessageInput>,
    /// `Next`'s payload.
    pub payload: PayloadInput,
    /// The third argument.
    pub options: Map<String, Value>,
    /// `ctx`.
    pub ctx: CtxInput,
    /// Its peers.
    pub mocks: MocksInput,
}

impl Inputs {
    /// The arguments after `ctx`.
    pub(super) fn arguments(&self, hook: HookName) -> [Value; 2] {
        let first = match hook {
            HookName::Create => json!(self.messages),
            HookName::Next => json!({
                "messages": self.payload.messages.as_ref().unwrap_or(&self.messages),
                "completion": self.payload.completion,
                "tools": self.payload.tools,
                "error": self.payload.error,
            }),
        };
        let mut options = json!({"connector": null, "metadata": self.ctx.metadata});
        if let Value::Object(options) = &mut options {
            options.extend(self.options.clone());
        }
        [first, options]
    }
}

impl CtxInput {
    /// Writes what is given over the plain data of `ctx`.
    pub(super) fn lay_over(&self, data: &mut Map<String, Value>) {
        let texts = [
            ("chat_id", &self.chat_id),
            ("assistant_id", &self.assistant_id),
            ("locale", &self.locale),
            ("theme", &self.theme),
            ("route", &self.route),
            ("referer", &self.referer),
            ("accept", &self.accept),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                data.insert(key.to_owned(), json!(text));
            }
        }
        if let Some(client) = &self.client {
            data.insert("client".to_owned(), json!(client));
        }
    }
}
