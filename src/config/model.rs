//! The file's shape, key by key (nanobot v0.0.77, plus `script`, `connector` and `policy`).
//!
//! Invariant: unknown keys are errors. Deliberately no behaviour: `resolve` gives the keys their meaning.

use std::collections::BTreeMap;

use greenroom_harness::model::{HookModeSpec, IsolationSpec, PolicySpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A string or a list of strings; a string is split at commas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(untagged)]
pub enum StringList {
    /// `"a, b"`.
    #[schemars(with = "String")]
    One(String),
    /// `["a", "b"]`.
    #[schemars(with = "Vec<String>")]
    Many(Vec<String>),
    /// Nothing.
    #[default]
    #[schemars(skip)]
    None,
}

impl StringList {
    /// The entries, trimmed, empty ones left out.
    pub fn entries(&self) -> Vec<String> {
        let trimmed = |text: &str| text.split(',').map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect();
        match self {
            Self::One(text) => trimmed(text),
            Self::Many(list) => list.iter().map(|entry| entry.trim().to_owned()).filter(|entry| !entry.is_empty()).collect(),
            Self::None => Vec::new(),
        }
    }
}

impl<'de> Deserialize<'de> for StringList {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = StringList;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a string or a list of strings")
            }
            fn visit_str<E>(self, text: &str) -> Result<StringList, E> {
                Ok(StringList::One(text.to_owned()))
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<StringList, A::Error> {
                let mut list = Vec::new();
                while let Some(entry) = seq.next_element()? {
                    list.push(entry);
                }
                Ok(StringList::Many(list))
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// A `greenroom.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ConfigFile {
    /// What the host shows to outside clients.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub publish: Option<Publish>,
    /// Variables that `${NAME}` may use: name to description, or to an object.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, EnvVariable>,
    /// Hooks on sessions and messages of outside clients: `session`, `request`, `response`, each with parameters.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "BTreeMap<String, HookList>")]
    pub hooks: Map<String, Value>,
    /// LLM connectors.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub llm_providers: BTreeMap<String, LlmProvider>,
    /// Agents.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub agents: BTreeMap<String, Agent>,
    /// Prompts.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub prompts: BTreeMap<String, Prompt>,
    /// Servers: external ones, script servers, and empty entries for built-in ones.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// Limits and switches (Greenroom).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicySpec>,
    /// Where every exchange and what hooks said about it is written down (Greenroom).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audit: Option<Audit>,
    /// Where `ctx.search` finds things (Greenroom).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<super::search::SearchSettings>,
    /// What scripts may contact with `fetch` (Greenroom).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress: Option<EgressSpec>,
}

/// What scripts may contact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct EgressSpec {
    /// Hosts: `api.example.com`, `*.example.com:443`, `127.0.0.1:8080`, or `*` for every public one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
}

/// The audit stream: exactly one of `file` and `url`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Audit {
    /// A file, one JSON record a line: a path, relative to the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// An address that takes JSON arrays of records by POST.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers for it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Most records that are sent at once (default 1000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<u32>,
    /// Longest wait of a record for others (default `5s`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flush: Option<String>,
    /// Most records that wait; the oldest are dropped, and counted (default 10000).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<u32>,
    /// Whether records hold bodies (default true).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bodies: Option<bool>,
    /// Repeating what could not be delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<AuditRetry>,
}

/// Repeating what could not be delivered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct AuditRetry {
    /// Repetitions after the first try (default 5).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u32>,
    /// Pause before the first, doubled each time up to a minute (default `1s`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<String>,
}

/// Hook targets: a string (split at commas), an object, or a list of strings and objects.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum HookList {
    /// `"policy/check, !mutate:audit/record"`.
    One(String),
    /// One entry per hook.
    Many(Vec<HookEntry>),
    /// One hook with its own options.
    Single(HookObject),
}

/// One hook of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum HookEntry {
    /// `policy/check`.
    Target(String),
    /// A target with its own options.
    Object(HookObject),
}

/// A hook target with its own options, which win over those of the key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct HookObject {
    /// `server/tool` or `!mutate:server/tool`.
    pub target: String,
    /// Lower runs earlier (default 0).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Longest run (default `10s`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<String>,
    /// Let the message pass if the hook fails (default false).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fail_open: Option<bool>,
    /// `enforce` (default) or `audit`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<HookModeSpec>,
    /// How it is asked and answers (default `envelope`).
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<HookTypeSpec>,
}

/// How a hook is asked and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookTypeSpec {
    /// `{accept, mutated, message, reason}` in and out.
    Envelope,
    /// The message in, the new message out.
    Mutate,
    /// The message in, `{valid, reason?}` out.
    Validate,
}

impl HookList {
    /// The entries as objects, in order.
    pub fn objects(self) -> Vec<HookObject> {
        let plain = |target: &str| HookObject {
            target: target.trim().to_owned(),
            priority: None,
            timeout: None,
            fail_open: None,
            mode: None,
            kind: None,
        };
        match self {
            Self::Single(object) => vec![object],
            Self::One(text) => text.split(',').filter(|part| !part.trim().is_empty()).map(plain).collect(),
            Self::Many(entries) => entries
                .into_iter()
                .map(|entry| match entry {
                    HookEntry::Target(text) => plain(&text),
                    HookEntry::Object(object) => object,
                })
                .collect(),
        }
    }
}

/// What the host shows to outside clients.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Publish {
    /// `serverInfo.name`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `serverInfo.version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// `instructions` of the initialize result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Instructions>,
    /// A text for people that begin to talk to the host; in the initialize result's `_meta`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub introduction: Option<Instructions>,
    /// Agents (or servers) that a client talks to.
    pub entrypoint: StringList,
    /// Servers whose tools are published.
    pub mcp_servers: StringList,
    /// Single tools: `server[/tool][:alias]`.
    pub tools: StringList,
    /// Prompts: of this file, or `server[/prompt][:alias]`.
    pub prompts: StringList,
    /// Servers whose resources are published.
    pub resources: StringList,
}

/// A variable that the config uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "EnvVariableShape")]
pub struct EnvVariable {
    /// What it is for.
    pub description: String,
    /// Value if the environment has none; only for optional ones.
    pub default: Option<String>,
    /// Whether it may be missing.
    pub optional: bool,
    /// Whether its value is a secret.
    pub sensitive: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum EnvVariableShape {
    Description(String),
    Object(EnvVariableObject),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct EnvVariableObject {
    #[serde(default)]
    description: String,
    #[serde(default)]
    default: Option<String>,
    #[serde(default)]
    optional: bool,
    #[serde(default = "yes")]
    sensitive: bool,
    #[serde(default)]
    #[expect(dead_code, reason = "nanobot's key: accepted, shown by clients only")]
    options: StringList,
}

fn yes() -> bool {
    true
}

impl From<EnvVariableShape> for EnvVariable {
    fn from(shape: EnvVariableShape) -> Self {
        match shape {
            EnvVariableShape::Description(description) => Self { description, default: None, optional: false, sensitive: true },
            EnvVariableShape::Object(o) => {
                Self { description: o.description, default: o.default, optional: o.optional, sensitive: o.sensitive }
            }
        }
    }
}

/// An LLM connector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct LlmProvider {
    /// `OpenAIChatCompletions`.
    pub dialect: String,
    /// Key; a `${NAME}` in most cases.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api_key: Option<String>,
    /// Address up to and including `/v1`.
    #[serde(rename = "baseURL", skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// Further headers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// An agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Agent {
    /// Name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// System prompt: a text with `${…}`, or a prompt of a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Instructions>,
    /// What it may call: pattern to `allow` or `deny`; the last that matches decides.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "BTreeMap<String, Permission>")]
    pub permissions: Map<String, Value>,
    /// `provider/model`. Without it (and without `connector`) the agent is hook-only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// LLM connector, if it is not the first part of `model` (Yao).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connector: Option<String>,
    /// Hook script with `Create` and `Next`: a path, relative to the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// How far the script's calls are kept apart, if not as `policy.isolation` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationSpec>,
    /// The folder behind `ctx.workspace`: a path, relative to the config. Nothing outside it can be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Whether its script gets `ctx.computer`, which runs commands in the sandbox (default false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computer: Option<bool>,
    /// Servers whose tools it may use.
    pub mcp_servers: StringList,
    /// Single tools: `server[/tool][:alias]`.
    pub tools: StringList,
    /// Agents that it may call as tools.
    pub agents: StringList,
    /// `auto`, `none`, `required` or a tool's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<String>,
    /// Sampling temperature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Upper bound on generated tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// Whether turns of one chat share a history (default true).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat: Option<bool>,
    /// Names of models that it stands for when a server asks for a sample.
    pub aliases: StringList,
    /// How dear it is, 0 to 1, for servers that ask for a sample; less is better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// How fast it is, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// How clever it is, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intelligence: Option<f64>,
    /// Hooks `config`, `request` and `response` of its turns, and on messages to it: `method[?param=value]` to targets.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "BTreeMap<String, HookList>")]
    pub hooks: Map<String, Value>,
}

/// Instructions: a text, or a prompt of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Instructions {
    /// A text with `${…}`.
    Text(String),
    /// A prompt, rendered when it is needed.
    Prompt(PromptInstructions),
}

/// Instructions that are a prompt of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct PromptInstructions {
    /// The server.
    pub mcp_server: String,
    /// Its prompt; it must render to exactly one text message.
    pub prompt: String,
    /// Arguments, texts with `${…}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub args: BTreeMap<String, String>,
}

/// Whether an agent may call something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Permission {
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct McpServer {
    /// Name for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Program of a stdio server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Its working folder, relative to the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Address of a Streamable HTTP server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers for it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// A script whose functions are the server's tools (Greenroom): a path, relative to the config.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// How far the script's calls are kept apart, if not as `policy.isolation` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationSpec>,
    /// Hooks on messages to and from this server: `method[?param=value]` to targets.
    #[serde(skip_serializing_if = "Map::is_empty")]
    #[schemars(with = "BTreeMap<String, HookList>")]
    pub hooks: Map<String, Value>,
    /// Upstream tools by name, renamed or described anew; if not empty, only these exist.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tool_overrides: BTreeMap<String, ToolOverride>,
    /// Put before every tool's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_prefix: Option<String>,
    /// Deadline of one call of this server (Greenroom); otherwise `policy.tool_timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<greenroom_harness::model::Duration>")]
    pub timeout: Option<String>,
}

/// How an upstream tool is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct ToolOverride {
    /// New name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// New description.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// New input schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
}

/// A prompt of this host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct Prompt {
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Text with `${argument}` placeholders.
    pub template: String,
    /// Arguments: name to description, or to `{ description, required }`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub input: BTreeMap<String, PromptArgument>,
}

/// An argument of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "PromptArgumentShape")]
pub struct PromptArgument {
    /// What it is.
    pub description: String,
    /// Whether it must be given.
    pub required: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum PromptArgumentShape {
    Description(String),
    Object(PromptArgumentObject),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PromptArgumentObject {
    #[serde(default)]
    description: String,
    #[serde(default = "yes")]
    required: bool,
}

impl From<PromptArgumentShape> for PromptArgument {
    fn from(shape: PromptArgumentShape) -> Self {
        match shape {
            PromptArgumentShape::Description(description) => Self { description, required: true },
            PromptArgumentShape::Object(o) => Self { description: o.description, required: o.required },
        }
    }
}
