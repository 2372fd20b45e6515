//! From the file's keys to what the host runs on.
//!
//! Invariant: every reference in a [`HostConfig`] exists; agents and servers share one name space (nanobot). A server with
//! an unset variable is kept, disabled, with its reason. Deliberately no driver is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use greenroom_boundary::isolate::Limits;
use greenroom_boundary::mcp::ServerAddress;
use greenroom_boundary::trace::HookMode;
use greenroom_boundary::{AgentId, ConnectorName, ServerName};
use greenroom_harness::model::{CyclesSpec, HookModeSpec, PolicySpec, RetryOnly};
use serde_json::{Map, Value};

use super::{Agent, ConfigError, ConfigFile, LlmProvider, McpServer, Prompt, Publish, ToolOverride, Variables, parse_duration};
use crate::hooks::{HookBinding, HookKey, HookOptions, HookTarget};

/// Built-in servers that a config may name without an entry.
pub(crate) const BUILT_IN: [&str; 3] = ["nanobot.meta", "nanobot.system", "greenroom.prompts"];

/// A whole host, resolved.
#[derive(Clone, Debug, Default)]
pub struct HostConfig {
    /// Agents.
    pub agents: BTreeMap<AgentId, AgentConfig>,
    /// Servers.
    pub servers: BTreeMap<ServerName, ServerConfig>,
    /// LLM providers, expanded.
    pub providers: BTreeMap<ConnectorName, LlmProvider>,
    /// Prompts.
    pub prompts: BTreeMap<String, Prompt>,
    /// What outside clients see.
    pub publish: Publish,
    /// Message hooks of all servers.
    pub hooks: Vec<HookDeclaration>,
    /// Limits and switches.
    pub policy: HostPolicy,
    /// Values that must not be written down, by where they come from.
    pub secrets: BTreeMap<String, String>,
}

/// An agent, resolved.
#[derive(Clone, Debug, Default)]
pub struct AgentConfig {
    /// What it does.
    pub description: Option<String>,
    /// Messages before the conversation.
    pub instructions: Vec<String>,
    /// Its connector; none means hook-only.
    pub connector: Option<ConnectorName>,
    /// The model's name at the provider.
    pub model: String,
    /// Hook script.
    pub script: Option<ScriptConfig>,
    /// Tool references `server[/tool][:alias]`.
    pub tools: Vec<String>,
    /// Agents that it may call as tools.
    pub agents: Vec<AgentId>,
    /// `auto`, `none`, `required` or a tool's name.
    pub tool_choice: Option<String>,
    /// Model parameters.
    pub temperature: Option<f64>,
    /// Upper bound on generated tokens.
    pub max_tokens: Option<u64>,
    /// Further parameters.
    pub params: Map<String, Value>,
    /// Whether turns share a history.
    pub chat: bool,
    /// Hooks of the turn.
    pub hooks: AgentHooks,
}

/// An agent's own hooks, in order.
#[derive(Clone, Debug, Default)]
pub struct AgentHooks {
    /// When its config is made for a turn.
    pub config: Vec<HookTarget>,
    /// Before the model is asked.
    pub request: Vec<HookTarget>,
    /// After the model answered.
    pub response: Vec<HookTarget>,
}

/// Where a script comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptConfig {
    /// A file.
    File(PathBuf),
    /// Text in the config, with the name to show in errors.
    Inline {
        /// Shown in errors.
        name: String,
        /// TypeScript or JavaScript.
        code: String,
    },
}

/// What a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// Behind the boundary to external servers.
    External(ServerAddress),
    /// One of the host's own.
    BuiltIn,
    /// The functions of a script.
    Script(ScriptConfig),
    /// Not to be used, with the reason.
    Disabled(String),
}

/// A server, resolved.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// What it is.
    pub kind: ServerKind,
    /// Its tools shown otherwise; if not empty, only these exist.
    pub tool_overrides: BTreeMap<String, ToolOverride>,
    /// Put before every tool's name.
    pub tool_prefix: String,
    /// Deadline of a call of it, if not the policy's.
    pub timeout: Option<Duration>,
}

impl ServerConfig {
    /// A server without overrides.
    pub fn plain(kind: ServerKind) -> Self {
        Self { kind, tool_overrides: BTreeMap::new(), tool_prefix: String::new(), timeout: None }
    }
}

/// A message hook, declared for one server.
#[derive(Clone, Debug)]
pub struct HookDeclaration {
    /// The server whose messages it looks at.
    pub server: ServerName,
    /// The hook.
    pub binding: HookBinding,
}

/// Repeating failed tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Repetitions after the first try.
    pub max: u32,
    /// Pause before each.
    pub backoff: Duration,
    /// Only tools that call themselves idempotent or read-only.
    pub idempotent_only: bool,
}

/// Limits of delegation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelegationPolicy {
    /// Longest chain.
    pub max_depth: u32,
    /// Whether a chain may come back to an agent in it.
    pub allow_cycles: bool,
}

/// Limits and switches.
#[derive(Clone, Debug)]
pub struct HostPolicy {
    /// Protocol revision offered to servers.
    pub spec: String,
    /// Tool calls of one answer side by side.
    pub parallel_tools: bool,
    /// Deadline of one tool call.
    pub tool_timeout: Duration,
    /// How far progress may extend that deadline; four times if not set.
    pub tool_timeout_cap: Option<Duration>,
    /// Deadline of a whole list, the connection to its server included.
    pub list_timeout: Duration,
    /// Repeating failed tool calls.
    pub tool_retry: Option<RetryPolicy>,
    /// Delegation.
    pub delegation: DelegationPolicy,
    /// Most model calls in one turn of one agent.
    pub max_model_calls: u32,
    /// Limits of hook scripts.
    pub script_limits: Limits,
}

impl Default for HostPolicy {
    fn default() -> Self {
        Self {
            spec: "2025-11-25".to_owned(),
            parallel_tools: true,
            tool_timeout: Duration::from_secs(60),
            tool_timeout_cap: None,
            list_timeout: Duration::from_secs(10),
            tool_retry: None,
            delegation: DelegationPolicy { max_depth: 8, allow_cycles: false },
            max_model_calls: 16,
            script_limits: Limits::default(),
        }
    }
}

/// Variables that every process has and that are no secrets.
const EVERYDAY: [&str; 10] =
    ["HOME", "USER", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR", "LANG", "HOSTNAME", "XDG_RUNTIME_DIR"];

struct Resolver<'a> {
    name: &'a str,
    base: &'a Path,
    variables: Variables,
    secrets: BTreeMap<String, String>,
}

impl HostConfig {
    /// Gives a file's keys their meaning. `name` is shown in errors; relative paths start at `base`.
    pub fn resolve(name: &str, file: &ConfigFile, base: &Path, variables: &Variables) -> Result<Self, ConfigError> {
        let mut resolver = Resolver { name, base, variables: variables.clone(), secrets: BTreeMap::new() };
        resolver.declare_variables(file)?;
        resolver.guard_undeclared(file);
        let mut config =
            Self { prompts: file.prompts.clone(), publish: file.publish.clone().unwrap_or_default(), ..Self::default() };
        for (provider, entry) in &file.llm_providers {
            config.providers.insert(ConnectorName::new(provider), resolver.provider(provider, entry)?);
        }
        for (server, entry) in &file.mcp_servers {
            config.servers.insert(ServerName::new(server), resolver.server(server, entry)?);
            config.hooks.extend(resolver.message_hooks(server, &entry.hooks)?);
        }
        for built_in in BUILT_IN {
            config.servers.entry(ServerName::new(built_in)).or_insert_with(|| ServerConfig::plain(ServerKind::BuiltIn));
        }
        for (agent, entry) in &file.agents {
            config.agents.insert(AgentId::new(agent), resolver.agent(agent, entry)?);
        }
        if let Some(policy) = &file.policy {
            config.policy.overlay(policy).map_err(|(at, message)| resolver.invalid(&format!("policy.{at}"), message))?;
        }
        if let Some(key) = file.hooks.keys().next() {
            return Err(resolver
                .invalid(&format!("hooks.{key}"), "top-level hooks are not supported yet; put them on a server or an agent"));
        }
        config.secrets = std::mem::take(&mut resolver.secrets);
        config.check(name)?;
        Ok(config)
    }

    /// Checks that every reference exists. Call again after adding agents or servers.
    pub fn check(&self, name: &str) -> Result<(), ConfigError> {
        let invalid = |at: String, message: String| ConfigError::Invalid { path: name.to_owned(), at, message };
        for agent in self.agents.keys() {
            if self.servers.contains_key(&ServerName::new(agent.as_str())) {
                return Err(invalid(
                    format!("agents.{agent}"),
                    "an agent and a server may not share a name; rename one".to_owned(),
                ));
            }
        }
        for (id, agent) in &self.agents {
            for reference in &agent.tools {
                let server = reference.split([':', '/']).next().unwrap_or_default();
                self.known(server).map_err(|message| invalid(format!("agents.{id}.tools"), message))?;
                self.one_name_each(reference).map_err(|message| invalid(format!("agents.{id}.tools"), message))?;
            }
            for other in &agent.agents {
                if !self.agents.contains_key(other) {
                    return Err(invalid(format!("agents.{id}.agents"), self.unknown("agent", other.as_str())));
                }
            }
            let hooks = [&agent.hooks.config, &agent.hooks.request, &agent.hooks.response];
            for target in hooks.into_iter().flatten() {
                self.known(target.server.as_str()).map_err(|message| invalid(format!("agents.{id}.hooks"), message))?;
            }
        }
        for hook in &self.hooks {
            let target = &hook.binding.target;
            self.known(target.server.as_str())
                .map_err(|message| invalid(format!("mcpServers.{}.hooks", hook.server), message))?;
        }
        let published = self
            .publish
            .entrypoint
            .entries()
            .into_iter()
            .chain(self.publish.mcp_servers.entries())
            .chain(self.publish.tools.entries());
        for reference in published {
            let server = reference.split([':', '/']).next().unwrap_or_default();
            self.known(server).map_err(|message| invalid("publish".to_owned(), message))?;
            self.one_name_each(&reference).map_err(|message| invalid("publish".to_owned(), message))?;
        }
        for reference in self.publish.prompts.entries() {
            self.one_name_each(&reference).map_err(|message| invalid("publish.prompts".to_owned(), message))?;
        }
        if self.agents.len() > 1 && self.publish.entrypoint.entries().is_empty() && name_is_file(name) {
            return Err(invalid(
                "publish.entrypoint".to_owned(),
                "there are several agents; name those that clients talk to".to_owned(),
            ));
        }
        Ok(())
    }

    /// An alias names one tool. A whole server may have one only if it is sure to have a single tool: an agent, or a server
    /// whose overrides leave one.
    fn one_name_each(&self, reference: &str) -> Result<(), String> {
        let Some((path, alias)) = reference.split_once(':').filter(|(path, _)| !path.contains('/')) else {
            return Ok(());
        };
        let single = self.servers.get(&ServerName::new(path)).is_none_or(|server| server.tool_overrides.len() == 1);
        if single {
            return Ok(());
        }
        Err(format!(
            "{reference:?} would give every tool of {path} the one name {alias:?}; name a tool, as in \"{path}/TOOL:{alias}\", \
             or give the server a `toolPrefix`"
        ))
    }

    fn known(&self, server: &str) -> Result<(), String> {
        let exists = self.servers.contains_key(&ServerName::new(server)) || self.agents.contains_key(&AgentId::new(server));
        if exists { Ok(()) } else { Err(self.unknown("server or agent", server)) }
    }

    fn unknown(&self, kind: &str, name: &str) -> String {
        let names = self.servers.keys().map(ServerName::as_str).chain(self.agents.keys().map(AgentId::as_str));
        match greenroom_harness::load::nearest(name, names) {
            Some(nearest) => format!("no {kind} is named {name:?}; did you mean {nearest:?}?"),
            None => format!("no {kind} is named {name:?}; add it to mcpServers or agents"),
        }
    }

    /// All scripts: of agents and of script servers.
    pub fn scripts(&self) -> impl Iterator<Item = &ScriptConfig> {
        let servers = self.servers.values().filter_map(|server| match &server.kind {
            ServerKind::Script(script) => Some(script),
            _ => None,
        });
        self.agents.values().filter_map(|agent| agent.script.as_ref()).chain(servers)
    }

    /// Agents that outside clients talk to: the entrypoint, or the only agent.
    pub fn entry_agents(&self) -> Vec<AgentId> {
        let named = self.publish.entrypoint.entries();
        if named.is_empty() && self.agents.len() == 1 {
            return self.agents.keys().cloned().collect();
        }
        named.into_iter().map(AgentId::new).filter(|id| self.agents.contains_key(id)).collect()
    }
}

/// Scenarios (`scenario:…`) address agents directly, so they need no entrypoint.
fn name_is_file(name: &str) -> bool {
    !name.starts_with("scenario:")
}

impl Resolver<'_> {
    fn invalid(&self, at: &str, message: impl Into<String>) -> ConfigError {
        ConfigError::Invalid { path: self.name.to_owned(), at: at.to_owned(), message: message.into() }
    }

    /// What `env` does not declare counts as a secret where a command line or an address uses it.
    fn guard_undeclared(&mut self, file: &ConfigFile) {
        for server in file.mcp_servers.values() {
            for text in server.command.iter().chain(&server.args).chain(&server.url) {
                let undeclared =
                    Variables::names(text).filter(|name| !file.env.contains_key(*name) && !EVERYDAY.contains(name));
                for name in undeclared {
                    if let Some(value) = self.variables.get(name) {
                        self.secrets.insert(format!("env/{name}"), value.to_owned());
                    }
                }
            }
        }
    }

    fn declare_variables(&mut self, file: &ConfigFile) -> Result<(), ConfigError> {
        let mut missing = BTreeSet::new();
        for (name, variable) in &file.env {
            match (self.variables.get(name).map(str::to_owned), &variable.default) {
                (Some(value), _) => {
                    if variable.sensitive {
                        self.secrets.insert(format!("env/{name}"), value);
                    }
                }
                (None, Some(default)) if variable.optional => self.variables.set(name.clone(), default.clone()),
                (None, None) if variable.optional => self.variables.set(name.clone(), ""),
                (None, _) => {
                    missing.insert(format!("{name} ({})", variable.description));
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let list: Vec<_> = missing.into_iter().collect();
        Err(self.invalid(
            "env",
            format!("missing required environment variables: {}; set them, or mark them optional", list.join(", ")),
        ))
    }

    fn provider(&mut self, name: &str, entry: &LlmProvider) -> Result<LlmProvider, ConfigError> {
        let at = format!("llmProviders.{name}");
        let mut expanded = entry.clone();
        for (key, field) in [("apiKey", &mut expanded.api_key), ("baseURL", &mut expanded.base_url)] {
            if let Some(text) = field {
                *text = self.variables.expand(text).map_err(|e| self.invalid(&format!("{at}.{key}"), e.to_string()))?;
            }
        }
        for (key, text) in &mut expanded.headers {
            *text = self.variables.expand(text).map_err(|e| self.invalid(&format!("{at}.headers.{key}"), e.to_string()))?;
            self.secrets.insert(format!("llm.{name}/{key}"), text.clone());
        }
        if let Some(key) = &expanded.api_key {
            self.secrets.insert(format!("llm.{name}/apiKey"), key.clone());
        }
        Ok(expanded)
    }

    fn server(&mut self, name: &str, entry: &McpServer) -> Result<ServerConfig, ConfigError> {
        let kind = match self.server_kind(name, entry) {
            Ok(kind) => kind?,
            Err(reason) => ServerKind::Disabled(reason),
        };
        let timeout = match entry.timeout.as_deref().map(parse_duration).transpose() {
            Ok(timeout) => timeout,
            Err(error) => return Err(self.invalid(&format!("mcpServers.{name}.timeout"), error.to_string())),
        };
        Ok(ServerConfig {
            kind,
            tool_overrides: entry.tool_overrides.clone(),
            tool_prefix: entry.tool_prefix.clone().unwrap_or_default(),
            timeout,
        })
    }

    /// The outer error disables the server, the inner one refuses the config.
    fn server_kind(&mut self, name: &str, entry: &McpServer) -> Result<Result<ServerKind, ConfigError>, String> {
        let at = format!("mcpServers.{name}");
        let expand = |field: &str, text: &str, variables: &Variables| {
            variables.expand(text).map_err(|error| format!("{at}.{field}: {error}"))
        };
        match (&entry.command, &entry.url, &entry.script) {
            (Some(command), None, None) => {
                let command = expand("command", command, &self.variables)?;
                let args = entry.args.iter().map(|arg| expand("args", arg, &self.variables)).collect::<Result<_, _>>()?;
                let mut env = BTreeMap::new();
                for (key, value) in &entry.env {
                    let expanded = expand("env", value, &self.variables)?;
                    if value.contains("${") {
                        self.secrets.insert(format!("mcp.{name}/{key}"), expanded.clone());
                    }
                    env.insert(key.clone(), expanded);
                }
                let workdir = match &entry.workdir {
                    Some(dir) => Some(self.base.join(expand("workdir", dir, &self.variables)?)),
                    None => Some(self.base.to_path_buf()).filter(|base| !base.as_os_str().is_empty()),
                };
                let workdir = workdir.map(|dir| dir.display().to_string());
                Ok(Ok(ServerKind::External(ServerAddress::Process { command, args, env, workdir })))
            }
            (None, Some(url), None) => {
                let url = expand("url", url, &self.variables)?;
                let mut headers = BTreeMap::new();
                for (key, value) in &entry.headers {
                    let expanded = expand("headers", value, &self.variables)?;
                    if expanded.contains(['\n', '\r']) {
                        return Err(format!("{at}.headers.{key}: the value contains a line break"));
                    }
                    self.secrets.insert(format!("mcp.{name}/{key}"), expanded.clone());
                    headers.insert(key.clone(), expanded);
                }
                Ok(Ok(ServerKind::External(ServerAddress::Http { url, headers })))
            }
            (None, None, Some(script)) => Ok(Ok(ServerKind::Script(ScriptConfig::File(self.base.join(script))))),
            (None, None, None) if self.name.starts_with("scenario:") && !BUILT_IN.contains(&name) => {
                Ok(Ok(ServerKind::External(ServerAddress::Simulated)))
            }
            (None, None, None) if BUILT_IN.contains(&name) => Ok(Ok(ServerKind::BuiltIn)),
            (None, None, None) => {
                Ok(Err(self
                    .invalid(&at, format!("give it `command`, `url` or `script`; built in are only {}", BUILT_IN.join(", ")))))
            }
            _ => Ok(Err(self.invalid(&at, "give it exactly one of `command`, `url` and `script`"))),
        }
    }

    fn message_hooks(&self, server: &str, hooks: &Map<String, Value>) -> Result<Vec<HookDeclaration>, ConfigError> {
        let mut declared = Vec::new();
        for (key, value) in hooks {
            let at = format!("mcpServers.{server}.hooks.{key}");
            let parsed = HookKey::parse(key).map_err(|error| self.invalid(&at, error.to_string()))?;
            let list: super::HookList =
                serde_json::from_value(value.clone()).map_err(|error| self.invalid(&at, error.to_string()))?;
            for object in list.objects() {
                let target = HookTarget::parse(&object.target).map_err(|error| self.invalid(&at, error.to_string()))?;
                let options = self.hook_options(&at, &object)?;
                let bindings = parsed.bindings(&target, options, u32::try_from(declared.len()).unwrap_or(u32::MAX));
                declared
                    .extend(bindings.into_iter().map(|binding| HookDeclaration { server: ServerName::new(server), binding }));
            }
        }
        Ok(declared)
    }

    fn hook_options(&self, at: &str, object: &super::HookObject) -> Result<HookOptions, ConfigError> {
        let timeout = match &object.timeout {
            Some(text) => {
                Some(parse_duration(text).map_err(|error| self.invalid(&format!("{at}.timeout"), error.to_string()))?)
            }
            None => None,
        };
        let mode = object.mode.map(|mode| match mode {
            HookModeSpec::Enforce => HookMode::Enforce,
            HookModeSpec::Audit => HookMode::Audit,
        });
        Ok(HookOptions { priority: object.priority, timeout, fail_open: object.fail_open, mode })
    }

    fn targets(&self, at: &str, value: &Value) -> Result<Vec<HookTarget>, ConfigError> {
        let list: super::StringList =
            serde_json::from_value(value.clone()).map_err(|error| self.invalid(at, error.to_string()))?;
        list.entries().iter().map(|text| HookTarget::parse(text).map_err(|error| self.invalid(at, error.to_string()))).collect()
    }

    fn agent(&self, id: &str, entry: &Agent) -> Result<AgentConfig, ConfigError> {
        let at = format!("agents.{id}");
        let (connector, model) = match (&entry.connector, entry.model.as_deref()) {
            (Some(connector), model) => (Some(connector.clone()), model.unwrap_or_default().to_owned()),
            (None, None) => (None, String::new()),
            (None, Some(model)) => match model.split_once('/') {
                Some((provider, model)) => (Some(provider.to_owned()), model.to_owned()),
                None if model.starts_with("claude") => (Some("anthropic".to_owned()), model.to_owned()),
                None => (Some("openai".to_owned()), model.to_owned()),
            },
        };
        let mut params = Map::new();
        if let Some(top_p) = entry.top_p {
            params.insert("top_p".to_owned(), top_p.into());
        }
        let mut tools = entry.tools.entries();
        tools.extend(entry.mcp_servers.entries());
        let instructions = match &entry.instructions {
            Some(text) => {
                vec![self.variables.expand(text).map_err(|e| self.invalid(&format!("{at}.instructions"), e.to_string()))?]
            }
            None => Vec::new(),
        };
        Ok(AgentConfig {
            description: entry.description.clone(),
            instructions,
            connector: connector.map(ConnectorName::new),
            model,
            script: entry.script.as_ref().map(|path| ScriptConfig::File(self.base.join(path))),
            tools,
            agents: entry.agents.entries().into_iter().map(AgentId::new).collect(),
            tool_choice: entry.tool_choice.clone(),
            temperature: entry.temperature,
            max_tokens: entry.max_tokens,
            params,
            chat: entry.chat.unwrap_or(true),
            hooks: self.agent_hooks(&at, &entry.hooks)?,
        })
    }

    fn agent_hooks(&self, at: &str, hooks: &Map<String, Value>) -> Result<AgentHooks, ConfigError> {
        let mut resolved = AgentHooks::default();
        for (key, value) in hooks {
            let at = format!("{at}.hooks.{key}");
            let targets = self.targets(&at, value)?;
            match key.as_str() {
                "config" => resolved.config = targets,
                "request" => resolved.request = targets,
                "response" => resolved.response = targets,
                _ => return Err(self.invalid(&at, "an agent has the hooks `config`, `request` and `response`")),
            }
        }
        Ok(resolved)
    }
}

impl HostPolicy {
    /// Lays a policy section over this one; the error is (key, message).
    pub fn overlay(&mut self, spec: &PolicySpec) -> Result<(), (&'static str, String)> {
        let duration = |key: &'static str, text: &str| parse_duration(text).map_err(|error| (key, error.to_string()));
        if let Some(revision) = &spec.spec {
            if revision.parse::<greenroom_wire::ProtocolVersion>().is_err() {
                return Err((
                    "spec",
                    format!("{revision:?} is not a supported protocol revision; use 2025-11-25, 2025-06-18 or 2025-03-26"),
                ));
            }
            self.spec.clone_from(revision);
        }
        self.parallel_tools = spec.parallel_tools.unwrap_or(self.parallel_tools);
        if let Some(text) = &spec.tool_timeout {
            self.tool_timeout = duration("tool_timeout", text)?;
        }
        if let Some(text) = &spec.tool_timeout_cap {
            self.tool_timeout_cap = Some(duration("tool_timeout_cap", text)?);
        }
        if let Some(text) = &spec.list_timeout {
            self.list_timeout = duration("list_timeout", text)?;
        }
        if let Some(retry) = &spec.tool_retry {
            let backoff = duration("tool_retry.backoff", &retry.backoff)?;
            self.tool_retry =
                Some(RetryPolicy { max: retry.max, backoff, idempotent_only: retry.only == RetryOnly::Idempotent });
        }
        if let Some(delegation) = &spec.delegation {
            self.delegation.max_depth = delegation.max_depth.unwrap_or(self.delegation.max_depth);
            self.delegation.allow_cycles = delegation.cycles == Some(CyclesSpec::Allow);
        }
        self.max_model_calls = spec.max_model_calls.unwrap_or(self.max_model_calls);
        if let Some(limits) = &spec.script_limits {
            if let Some(text) = &limits.wall {
                self.script_limits.wall = duration("script_limits.wall", text)?;
            }
            if let Some(text) = &limits.cpu {
                self.script_limits.cpu = duration("script_limits.cpu", text)?;
            }
            if let Some(mib) = limits.heap_mib {
                self.script_limits.heap_bytes = (mib as usize) << 20;
            }
        }
        Ok(())
    }
}
