//! The script of an MCP server: what a scenario file holds under `mcp.NAME: { script: … }`.
//!
//! Invariant: lists and results are kept as they were written and sent as they are. An unknown key is an error.
//! Deliberately no defaults that a reader of the file would not expect.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::duration::Duration;
use crate::pattern::Pattern;

/// A server: what it lists, and how it answers calls.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpScript {
    /// Tools as the server lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Map<String, Value>>,
    /// Prompts as the server lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<Map<String, Value>>,
    /// Resources as the server lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Map<String, Value>>,
    /// Resource templates as the server lists them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resource_templates: Vec<Map<String, Value>>,
    /// Most entries of a list in one answer; the rest follows page by page. Without it a list comes whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_size: Option<usize>,
    /// `serverInfo` of the handshake; without it the server's name in the config, version `1.0.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_info: Option<Map<String, Value>>,
    /// `instructions` of the handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Capabilities; without them what the lists show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Map<String, Value>>,
    /// How the handshake goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialize: Option<McpInitialize>,
    /// Answers to calls. A call takes the first one that matches and is not used up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<McpCall>,
    /// The answer to every other call; without it an error that says what would have matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<McpAnswer>,
    /// What the server sends by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notifications: Vec<McpNotification>,
    /// What the server asks the host by itself, one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<McpAsk>,
    /// What `notifications/cancelled` does.
    #[serde(default, skip_serializing_if = "OnCancel::is_default")]
    pub on_cancel: OnCancel,
}

/// What a cancelled call does on the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnCancel {
    /// The server answers nevertheless, at its time: the host must bear the late answer.
    #[default]
    Answer,
    /// The server stops and never answers that call.
    Stop,
}

impl OnCancel {
    // serde's `skip_serializing_if` passes a reference.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde fixes the signature")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How the handshake goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpInitialize {
    /// When the answer comes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Duration>,
    /// The revision the server insists on; without it the one that the client asked for, if it exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Refuses the handshake.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RpcError>,
}

/// A JSON-RPC error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RpcError {
    /// Its code.
    pub code: i64,
    /// Its message.
    pub message: String,
    /// Its data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Value>,
}

/// One foreseen call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "CallText", into = "CallText")]
pub struct McpCall {
    /// Which calls it answers.
    pub when: McpWhen,
    /// How many calls it answers; the script is not consumed before that many came.
    pub repeat: u32,
    /// When the answer comes, counted from the call's arrival.
    pub after: Duration,
    /// Progress notifications before the answer, if the call asked for them.
    pub progress: Vec<McpProgress>,
    /// What the server sends meanwhile, before it asks anything.
    pub notifications: Vec<McpNotification>,
    /// What the server asks the host before it answers, one after the other.
    pub asks: Vec<McpAsk>,
    /// The answer.
    pub answer: McpAnswer,
}

/// Which requests a scripted call answers. Everything that is given must match.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpWhen {
    /// `tools/call` of a tool of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Pattern>,
    /// `prompts/get` of a prompt of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Pattern>,
    /// `resources/read` of this address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Pattern>,
    /// Any other method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<Pattern>,
    /// The call's arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Pattern>,
    /// The request's whole params.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Pattern>,
}

/// What a server does with a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum McpAnswer {
    /// Answers with this result; a tool result without `content` gets an empty one.
    Result(Map<String, Value>),
    /// Answers with this error.
    Error(RpcError),
    /// Never answers.
    Hang(True),
    /// Ends the connection without an answer.
    Crash(True),
}

/// The word `true`: there to be said, never false.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "bool", into = "bool")]
#[schemars(with = "bool")]
pub struct True;

impl TryFrom<bool> for True {
    type Error = &'static str;

    fn try_from(value: bool) -> Result<Self, Self::Error> {
        if value { Ok(Self) } else { Err("only `true` makes sense here; leave the key out instead") }
    }
}

impl From<True> for bool {
    fn from(_: True) -> Self {
        true
    }
}

/// A progress notification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpProgress {
    /// When it comes, counted from the call's arrival.
    #[serde(default)]
    pub after: Duration,
    /// How far the work is.
    pub progress: f64,
    /// Of how much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A question of the server to the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpAsk {
    /// When it comes: after the call's arrival, or after the answer to the question before.
    #[serde(default)]
    pub after: Duration,
    /// Its method: `sampling/createMessage`, `elicitation/create`, `roots/list`.
    pub method: String,
    /// Its params.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
    /// When the server takes it back, counted from the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_after: Option<Duration>,
    /// Goes on without waiting for the answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_wait: bool,
}

/// A notification that the server sends by itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct McpNotification {
    /// When it comes, counted from the client's `notifications/initialized`.
    #[serde(default)]
    pub after: Duration,
    /// Its method.
    pub method: String,
    /// Its params.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
}

/// A call as it is written: the answer's key stands among the others.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallText {
    /// Which calls this answers.
    when: McpWhen,
    /// How many calls it answers; 1 if not said.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1))]
    repeat: u32,
    /// When the answer comes, counted from the call's arrival.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    after: Option<Duration>,
    /// Progress notifications before the answer, if the call asked for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    progress: Vec<McpProgress>,
    /// What the server sends meanwhile, before it asks anything; `after` counts from the call's arrival.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    notifications: Vec<McpNotification>,
    /// What the server asks the host before it answers, one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    asks: Vec<McpAsk>,
    /// Answers with this result; a tool result without `content` gets an empty one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Map<String, Value>>,
    /// Answers with this error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<RpcError>,
    /// Never answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hang: Option<True>,
    /// Ends the connection without an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crash: Option<True>,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde fixes the signature")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

impl TryFrom<CallText> for McpCall {
    type Error = &'static str;

    fn try_from(text: CallText) -> Result<Self, Self::Error> {
        let mut answers = [
            text.result.map(McpAnswer::Result),
            text.error.map(McpAnswer::Error),
            text.hang.map(McpAnswer::Hang),
            text.crash.map(McpAnswer::Crash),
        ]
        .into_iter()
        .flatten();
        let (Some(answer), None) = (answers.next(), answers.next()) else {
            return Err("a call needs exactly one of `result`, `error`, `hang`, `crash`");
        };
        if text.repeat == 0 {
            return Err("`repeat` counts from 1");
        }
        if text.when == McpWhen::default() {
            return Err("`when` is empty: say at least `tool`, `prompt`, `resource` or `method`");
        }
        let after = text.after.unwrap_or_default();
        let CallText { when, repeat, progress, notifications, asks, .. } = text;
        Ok(Self { when, repeat, after, progress, notifications, asks, answer })
    }
}

impl From<McpCall> for CallText {
    fn from(call: McpCall) -> Self {
        let mut text = Self {
            when: call.when,
            repeat: call.repeat,
            after: (call.after != Duration::default()).then_some(call.after),
            progress: call.progress,
            notifications: call.notifications,
            asks: call.asks,
            result: None,
            error: None,
            hang: None,
            crash: None,
        };
        match call.answer {
            McpAnswer::Result(result) => text.result = Some(result),
            McpAnswer::Error(error) => text.error = Some(error),
            McpAnswer::Hang(word) => text.hang = Some(word),
            McpAnswer::Crash(word) => text.crash = Some(word),
        }
        text
    }
}
