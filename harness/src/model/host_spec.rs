//! The `host:` section of a scenario: which host is rehearsed.
//!
//! Invariant: it names a config file, or spells the parts out in the same terms; a host translates it, the harness does
//! not look inside. Deliberately no defaults for boundaries: those are the `drivers:` section's.

use std::collections::BTreeMap;

use greenroom_mocks::duration::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The host of a scenario. `config` and the other keys can be combined: the latter are laid over the former.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostSpec {
    /// A `greenroom.yaml`, relative to the scenario file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<String>,
    /// The content of a `greenroom.yaml`, written in place (nanobot's keys: `agents`, `mcpServers`, `hooks`, `prompts`, …).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub inline: Map<String, Value>,
    /// Agents in short form.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub assistants: BTreeMap<String, AssistantSpec>,
    /// Hooks on messages to servers, with their code in place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<HookSpec>,
    /// Limits and switches of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicySpec>,
}

/// An agent in short form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AssistantSpec {
    /// LLM connector: `llm.NAME` in `drivers`. Without it the agent is hook-only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connector: Option<String>,
    /// Messages put before the conversation: `{ system: text }`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<BTreeMap<String, String>>,
    /// Servers whose tools it may use: `mcp.NAME` in `drivers`, built-in servers, or `server/tool`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<String>,
    /// Agents that it may call as tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
    /// Hook script with `Create` and `Next`, relative to the scenario file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// The same, written in place (TypeScript).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_inline: Option<String>,
    /// Files of `ctx.workspace` at the start, by their paths; in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<BTreeMap<String, String>>,
    /// Whether it has `ctx.computer`, whose commands go to `cli.NAME` in `drivers`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub computer: bool,
    /// Model parameters: `temperature`, `max_tokens`, …
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
}

/// Which messages a hook looks at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookAt {
    /// `mcp.NAME`.
    pub boundary: String,
    /// `tools/call`, …; absent means every method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Tool, prompt or resource by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Side of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookSide {
    /// Before it is sent.
    Request,
    /// After the answer came.
    Response,
}

/// What a hook may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    /// Change the message: the function returns the new one.
    Mutate,
    /// Judge the final message: the function returns `{ valid, reason? }`.
    Validate,
}

/// Whether its word counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookModeSpec {
    /// It counts.
    #[default]
    Enforce,
    /// It is recorded, never applied.
    Audit,
}

/// A hook with its code in place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HookSpec {
    /// Its name in the trace.
    pub id: String,
    /// Which messages it looks at.
    pub at: HookAt,
    /// Side of the exchange.
    pub phase: HookSide,
    /// What it may do.
    pub kind: HookKind,
    /// Whether its word counts.
    #[serde(default)]
    pub mode: HookModeSpec,
    /// Lower runs earlier; ties keep the order of the file.
    #[serde(default)]
    pub priority: i32,
    /// Let the message pass if the hook fails.
    #[serde(default)]
    pub fail_open: bool,
    /// Longest run, `10s` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Duration>")]
    pub timeout: Option<String>,
    /// A module whose default export is the hook (TypeScript).
    pub js: String,
}

/// Limits and switches of the host.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicySpec {
    /// Protocol revision offered to servers: `2025-11-25` (default), `2025-06-18`, `2025-03-26`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
    /// Run the tool calls of one answer side by side (default true).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel_tools: Option<bool>,
    /// Deadline of one tool call (default `60s`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Duration>")]
    pub tool_timeout: Option<String>,
    /// How far progress may extend that deadline (default four times `tool_timeout`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Duration>")]
    pub tool_timeout_cap: Option<String>,
    /// Deadline of a whole list of a server, the connection to it included (default `10s`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Duration>")]
    pub list_timeout: Option<String>,
    /// Repeating failed tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_retry: Option<RetrySpec>,
    /// Delegation between agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation: Option<DelegationSpec>,
    /// Most model calls in one turn of one agent (default 16).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_model_calls: Option<u32>,
    /// Limits of hook scripts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_limits: Option<ScriptLimitsSpec>,
    /// Who answers a server's `sampling/createMessage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingSpec>,
    /// Who answers a server's `elicitation/create` (default `client`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elicitation: Option<ElicitationSpec>,
    /// Roots that servers are told besides the client's: `file://` addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// How long an answer to a server's question may take (default `5m`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Duration>")]
    pub question_timeout: Option<String>,
    /// How long a client of the HTTP front may stay away before its session is ended (default `30m`); `off`: for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_idle: Option<String>,
    /// Most sessions at once on the HTTP front (default 1024).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_sessions: Option<u32>,
    /// How far the calls of a script are kept apart (default `context`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<IsolationSpec>,
    /// How the TypeScript of scripts is read (default `erase`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typescript: Option<TypeScriptSpec>,
    /// How much a result tells of what hooks changed (default `content`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<NoteSpec>,
}

/// Who answers a server's `sampling/createMessage`. Without it the client if it can, else an agent if any has `aliases`,
/// `cost`, `speed` or `intelligence`, else nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SamplingSpec {
    /// The outside client, if it has the capability.
    Client,
    /// An agent of the host.
    Agent,
    /// Nobody.
    Deny,
}

/// Who answers a server's `elicitation/create`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ElicitationSpec {
    /// The outside client, if it has the capability.
    #[default]
    Client,
    /// The host, with `decline`.
    Decline,
    /// The host, with `cancel`.
    Cancel,
}

/// How much a result tells of what hooks changed. In YAML, `off` wants quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoteSpec {
    /// `_meta`, and a text in the content.
    Content,
    /// `_meta` only.
    Meta,
    /// Nothing: only trace and audit tell.
    Off,
}

/// How the TypeScript of scripts is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TypeScriptSpec {
    /// Types are blanked in place; syntax that needs generated code is refused.
    Erase,
    /// Enums, namespaces, parameter properties and (experimental) decorators work too.
    Full,
}

/// How far the calls of a script are kept apart. None sees what another one left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IsolationSpec {
    /// One frozen context per script, its top level run anew for each call: fastest.
    Frozen,
    /// A fresh context for each call.
    Context,
    /// A fresh engine instance for each call.
    Isolate,
    /// The same in a process of its own, which alone dies of what ends an engine.
    Process,
}

impl From<IsolationSpec> for greenroom_boundary::isolate::Isolation {
    fn from(spec: IsolationSpec) -> Self {
        match spec {
            IsolationSpec::Frozen => Self::Frozen,
            IsolationSpec::Context => Self::Context,
            IsolationSpec::Isolate => Self::Isolate,
            IsolationSpec::Process => Self::Process,
        }
    }
}

/// Repeating failed tool calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetrySpec {
    /// Repetitions after the first try.
    pub max: u32,
    /// Pause before each.
    #[schemars(with = "Duration")]
    pub backoff: String,
    /// `idempotent`: only tools that say so in their annotations; `all`: every tool.
    pub only: RetryOnly,
}

/// Which tools may be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RetryOnly {
    /// Tools with `idempotentHint` or `readOnlyHint`.
    Idempotent,
    /// Every tool.
    All,
}

/// Delegation between agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelegationSpec {
    /// Longest chain (default 8).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// What to do when a chain comes back to an agent that is in it (default `reject`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles: Option<CyclesSpec>,
}

/// What to do about cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CyclesSpec {
    /// Fail with the path in the message.
    Reject,
    /// Let it, up to `max_depth`.
    Allow,
}

/// Limits of hook scripts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptLimitsSpec {
    /// Longest hook, host calls included (default `30s`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Duration>")]
    pub wall: Option<String>,
    /// Longest computing (default `500ms`); real time also in a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Duration>")]
    pub cpu: Option<String>,
    /// Largest heap in MiB (default 64).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heap_mib: Option<u32>,
}
