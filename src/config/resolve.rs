//! From the file's keys to what the host runs on.
//!
//! Invariant: every reference in a [`HostConfig`] exists; agents and servers share one name space (nanobot). A server with
//! an unset variable is kept, disabled, with its reason. Deliberately no driver is touched.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::isolate::Isolation;
use greenroom_boundary::mcp::ServerAddress;
use greenroom_boundary::workspace::WorkspaceSpec;
use greenroom_boundary::{AgentId, ConnectorName, ServerName};
use serde_json::{Map, Value};

use super::{
    Agent, AgentHooks, AuditConfig, ConfigError, ConfigFile, HostHooks, HostPolicy, Instructions, LlmProvider, McpServer,
    Prompt, Publish, SearchConfig, Template, ToolOverride, Variables, parse_deadline,
};
use crate::agents::Permissions;
use crate::drivers::EgressRule;
use crate::hooks::HookBinding;

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
    /// The texts of the prompts.
    pub templates: BTreeMap<String, Template>,
    /// What outside clients see.
    pub publish: Publish,
    /// The texts that outside clients see.
    pub publish_texts: PublishTexts,
    /// Message hooks of all servers and agents.
    pub hooks: Vec<HookDeclaration>,
    /// Hooks on sessions and messages of outside clients.
    pub host_hooks: HostHooks,
    /// Where the audit stream goes.
    pub audit: Option<AuditConfig>,
    /// Where `ctx.search` finds things.
    pub search: SearchConfig,
    /// What scripts may contact with `fetch`.
    pub egress_allow: Vec<String>,
    /// Limits and switches.
    pub policy: HostPolicy,
    /// The config's folder, below which scripts may import.
    pub root: Option<PathBuf>,
    /// Values that must not be written down, by where they come from.
    pub secrets: BTreeMap<String, String>,
}

/// The texts that outside clients see.
#[derive(Clone, Debug, Default)]
pub struct PublishTexts {
    /// `instructions` of the initialize result.
    pub instructions: Option<InstructionSource>,
    /// For people that begin to talk.
    pub introduction: Option<InstructionSource>,
}

/// Instructions that are made when they are needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstructionSource {
    /// A text with `${…}`.
    Text(Template),
    /// A prompt of a server.
    Prompt {
        /// Where it is configured.
        at: String,
        /// The server.
        server: ServerName,
        /// Its prompt.
        prompt: String,
        /// The arguments.
        args: BTreeMap<String, Template>,
    },
}

/// An agent, resolved.
#[derive(Clone, Debug, Default)]
pub struct AgentConfig {
    /// What it does.
    pub description: Option<String>,
    /// Messages before the conversation.
    pub instructions: Vec<String>,
    /// Where they come from at each turn, if not from the config alone.
    pub instruction_source: Option<InstructionSource>,
    /// What it may call; none allows everything.
    pub permissions: Option<Arc<Permissions>>,
    /// Its connector; none means hook-only.
    pub connector: Option<ConnectorName>,
    /// The model's name at the provider.
    pub model: String,
    /// Hook script.
    pub script: Option<ScriptConfig>,
    /// How far its calls are kept apart, if not as the policy says.
    pub isolation: Option<Isolation>,
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
    /// What is behind `ctx.workspace`.
    pub workspace: Option<WorkspaceSpec>,
    /// Whether it has `ctx.computer`.
    pub computer: bool,
    /// Hooks of the turn.
    pub hooks: AgentHooks,
    /// When it is chosen for a server's sampling.
    pub selection: AgentSelection,
}

/// What speaks for an agent when a server asks for a sample; the numbers lie between 0 and 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSelection {
    /// Names of models that it stands for.
    pub aliases: Vec<String>,
    /// How dear it is; less is better.
    pub cost: Option<f64>,
    /// How fast it is; more is better.
    pub speed: Option<f64>,
    /// How clever it is; more is better.
    pub intelligence: Option<f64>,
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
    /// How far a script's calls are kept apart, if not as the policy says.
    pub isolation: Option<Isolation>,
}

impl ServerConfig {
    /// A server without overrides.
    pub fn plain(kind: ServerKind) -> Self {
        Self { kind, tool_overrides: BTreeMap::new(), tool_prefix: String::new(), timeout: None, isolation: None }
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

/// Variables that every process has and that are no secrets.
const EVERYDAY: [&str; 10] =
    ["HOME", "USER", "LOGNAME", "PATH", "PWD", "SHELL", "TMPDIR", "LANG", "HOSTNAME", "XDG_RUNTIME_DIR"];

pub(super) struct Resolver<'a> {
    name: &'a str,
    pub(super) base: &'a Path,
    pub(super) variables: Variables,
    pub(super) secrets: BTreeMap<String, String>,
}

impl InstructionSource {
    /// The text, if it is always the same.
    pub fn fixed(&self) -> Option<&str> {
        match self {
            Self::Text(template) => template.fixed(),
            Self::Prompt { .. } => None,
        }
    }

    fn server(&self) -> Option<&ServerName> {
        match self {
            Self::Text(_) => None,
            Self::Prompt { server, .. } => Some(server),
        }
    }
}

impl HostConfig {
    /// Gives a file's keys their meaning. `name` is shown in errors; relative paths start at `base`.
    pub fn resolve(name: &str, file: &ConfigFile, base: &Path, variables: &Variables) -> Result<Self, ConfigError> {
        let mut resolver = Resolver { name, base, variables: variables.clone(), secrets: BTreeMap::new() };
        resolver.declare_variables(file)?;
        resolver.guard_undeclared(file);
        let mut config =
            Self { prompts: file.prompts.clone(), publish: file.publish.clone().unwrap_or_default(), ..Self::default() };
        config.root = Some(base.to_path_buf());
        for (prompt, entry) in &file.prompts {
            let arguments: Vec<String> = entry.input.keys().cloned().collect();
            let template = resolver.template(&format!("prompts.{prompt}.template"), &entry.template, &arguments)?;
            config.templates.insert(prompt.clone(), template);
        }
        if let Some(publish) = &file.publish {
            config.publish_texts = PublishTexts {
                instructions: resolver.instructions("publish.instructions", publish.instructions.as_ref())?,
                introduction: resolver.instructions("publish.introduction", publish.introduction.as_ref())?,
            };
        }
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
            let mut resolved = resolver.agent(agent, entry)?;
            let (own, messages) = resolver.agent_hooks(agent, &entry.hooks)?;
            resolved.hooks = own;
            config.hooks.extend(messages);
            config.agents.insert(AgentId::new(agent), resolved);
        }
        if let Some(policy) = &file.policy {
            config.policy.overlay(policy).map_err(|(at, message)| resolver.invalid(&format!("policy.{at}"), message))?;
        }
        config.host_hooks = resolver.host_hooks(&file.hooks)?;
        config.search = file.search.as_ref().map(|search| resolver.search(search)).transpose()?.unwrap_or_default();
        config.audit = file.audit.as_ref().map(|audit| resolver.audit(audit)).transpose()?;
        for rule in file.egress.iter().flat_map(|egress| &egress.allow) {
            rule.parse::<EgressRule>().map_err(|error| resolver.invalid("egress.allow", error.to_string()))?;
            config.egress_allow.push(rule.clone());
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
            if let Some(server) = agent.instruction_source.as_ref().and_then(InstructionSource::server) {
                self.known(server.as_str()).map_err(|message| invalid(format!("agents.{id}.instructions"), message))?;
            }
            for server in agent.permissions.iter().flat_map(|permissions| permissions.servers()) {
                self.known(server).map_err(|message| invalid(format!("agents.{id}.permissions"), message))?;
            }
            for hook in agent.hooks.all() {
                self.known(hook.target.server.as_str()).map_err(|message| invalid(format!("agents.{id}.hooks"), message))?;
            }
        }
        for hook in &self.hooks {
            let target = &hook.binding.target;
            let section = if self.agents.contains_key(&AgentId::new(hook.server.as_str())) { "agents" } else { "mcpServers" };
            self.known(target.server.as_str())
                .map_err(|message| invalid(format!("{section}.{}.hooks", hook.server), message))?;
        }
        for hook in self.host_hooks.session.iter().chain(&self.host_hooks.messages) {
            self.known(hook.target.server.as_str()).map_err(|message| invalid("hooks".to_owned(), message))?;
        }
        let texts = [("instructions", &self.publish_texts.instructions), ("introduction", &self.publish_texts.introduction)];
        for (key, text) in texts {
            if let Some(server) = text.as_ref().and_then(InstructionSource::server) {
                self.known(server.as_str()).map_err(|message| invalid(format!("publish.{key}"), message))?;
            }
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
    pub(super) fn invalid(&self, at: &str, message: impl Into<String>) -> ConfigError {
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
        super::names::check(name, entry).map_err(|(at, message)| self.invalid(&at, message))?;
        let kind = match self.server_kind(name, entry) {
            Ok(kind) => kind?,
            Err(reason) => ServerKind::Disabled(reason),
        };
        let timeout = match entry.timeout.as_deref().map(parse_deadline).transpose() {
            Ok(timeout) => timeout,
            Err(error) => return Err(self.invalid(&format!("mcpServers.{name}.timeout"), error)),
        };
        Ok(ServerConfig {
            kind,
            tool_overrides: entry.tool_overrides.clone(),
            tool_prefix: entry.tool_prefix.clone().unwrap_or_default(),
            timeout,
            isolation: entry.isolation.map(Into::into),
        })
    }

    /// The outer error disables the server, the inner one refuses the config.
    fn server_kind(&mut self, name: &str, entry: &McpServer) -> Result<Result<ServerKind, ConfigError>, String> {
        let at = format!("mcpServers.{name}");
        let expand = |field: &str, text: &str, variables: &Variables| {
            let text = variables.expand(text).map_err(|error| format!("{at}.{field}: {error}"))?;
            if text.contains('\0') {
                return Err(format!("{at}.{field}: a variable in it has a NUL character, which nothing can be given"));
            }
            Ok(text)
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
        let source = self.instructions(&format!("{at}.instructions"), entry.instructions.as_ref())?;
        let fixed = source.as_ref().and_then(InstructionSource::fixed).map(str::to_owned);
        let permissions = Permissions::parse(AgentId::new(id), &entry.permissions)
            .map_err(|error| self.invalid(&format!("{at}.permissions"), error.to_string()))?;
        Ok(AgentConfig {
            description: entry.description.clone(),
            instruction_source: source.filter(|_| fixed.is_none()),
            instructions: fixed.into_iter().collect(),
            permissions: permissions.map(Arc::new),
            connector: connector.map(ConnectorName::new),
            model,
            script: entry.script.as_ref().map(|path| ScriptConfig::File(self.base.join(path))),
            isolation: entry.isolation.map(Into::into),
            tools,
            agents: entry.agents.entries().into_iter().map(AgentId::new).collect(),
            tool_choice: entry.tool_choice.clone(),
            temperature: entry.temperature,
            max_tokens: entry.max_tokens,
            params,
            chat: entry.chat.unwrap_or(true),
            workspace: entry.workspace.as_ref().map(|folder| WorkspaceSpec::Folder(self.base.join(folder))),
            computer: entry.computer.unwrap_or(false),
            hooks: AgentHooks::default(),
            selection: self.selection(&at, entry)?,
        })
    }

    fn selection(&self, at: &str, entry: &Agent) -> Result<AgentSelection, ConfigError> {
        for (key, value) in [("cost", entry.cost), ("speed", entry.speed), ("intelligence", entry.intelligence)] {
            if value.is_some_and(|value| !(0.0..=1.0).contains(&value)) {
                return Err(self.invalid(&format!("{at}.{key}"), "it lies between 0 and 1"));
            }
        }
        let (cost, speed, intelligence) = (entry.cost, entry.speed, entry.intelligence);
        Ok(AgentSelection { aliases: entry.aliases.entries(), cost, speed, intelligence })
    }

    fn template(&self, at: &str, text: &str, arguments: &[String]) -> Result<Template, ConfigError> {
        Template::parse(self.name, at, text, &self.variables, arguments).map_err(|error| self.invalid(at, error.to_string()))
    }

    fn instructions(&self, at: &str, entry: Option<&Instructions>) -> Result<Option<InstructionSource>, ConfigError> {
        Ok(match entry {
            None => None,
            Some(Instructions::Text(text)) => Some(InstructionSource::Text(self.template(at, text, &[])?)),
            Some(Instructions::Prompt(prompt)) => {
                let mut args = BTreeMap::new();
                for (name, text) in &prompt.args {
                    args.insert(name.clone(), self.template(&format!("{at}.args.{name}"), text, &[])?);
                }
                Some(InstructionSource::Prompt {
                    at: at.to_owned(),
                    server: ServerName::new(&prompt.mcp_server),
                    prompt: prompt.prompt.clone(),
                    args,
                })
            }
        })
    }
}

impl AgentSelection {
    /// Whether the config says anything about when the agent is chosen.
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }
}
