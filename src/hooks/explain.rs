//! Which hooks would look at a call, in which order, and why the others would not.
//!
//! Invariant: the order is the table's own, so what is explained is what runs. Deliberately nothing is run here; see
//! [`dry_run`].

pub mod dry_run;

use greenroom_boundary::trace::HookMode;
use greenroom_boundary::{AgentId, ServerName};
use greenroom_harness::model::glob;
use serde::Serialize;

use super::{Chain, HookBinding, HookForm, HookKey, HookKeyError, HookTable, Side};
use crate::config::{HostConfig, ServerKind};
use crate::router::{did_you_mean, nearest, upstream_name};

/// Where messages pass hooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Between the host and a server, built-in one or agent.
    Server(ServerName),
    /// Between an outside client and the host.
    Host,
}

/// A call that hooks are explained for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Where it passes.
    pub place: Place,
    /// Its method.
    pub method: String,
    /// The tool, prompt or resource, as the host shows it.
    pub tool: String,
    /// Its name at the server: what hooks see.
    pub upstream: String,
}

/// A call that a config does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    /// Not `server/tool`.
    #[error("{text:?} is no call; write `server/tool`")]
    Call {
        /// The text.
        text: String,
    },
    /// No such server.
    #[error("no server or agent is named {name:?}{hint}")]
    Server {
        /// The name.
        name: String,
        /// `; did you mean …?`, or empty.
        hint: String,
    },
    /// The overrides hide it.
    #[error("`toolOverrides` or `toolPrefix` of {server} hide the tool {tool:?}; use the name that the host shows")]
    Hidden {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
    },
    /// A method that no hook sees.
    #[error(transparent)]
    Method(#[from] HookKeyError),
}

impl ExplainError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Call { .. } => "EXPLAIN_CALL",
            Self::Server { .. } => "CALL_UNKNOWN_SERVER",
            Self::Hidden { .. } => "CALL_UNKNOWN_TOOL",
            Self::Method(error) => error.code(),
        }
    }
}

impl Call {
    /// Reads `server/tool`, a call of a tool; both must be names of the config.
    pub fn parse(config: &HostConfig, text: &str) -> Result<Self, ExplainError> {
        let named = text.split_once('/').filter(|(server, tool)| !server.is_empty() && !tool.is_empty());
        let (name, tool) = named.ok_or_else(|| ExplainError::Call { text: text.to_owned() })?;
        Self::to_server(config, name, METHOD, tool)
    }

    /// A message to or from a server or agent of the config.
    pub fn to_server(config: &HostConfig, name: &str, method: &str, tool: &str) -> Result<Self, ExplainError> {
        HookKey::parse(method)?;
        let server = ServerName::new(name);
        let is_agent = config.agents.keys().any(|agent| agent.as_str() == name);
        let upstream = match config.servers.get(&server) {
            Some(own) if method == METHOD => upstream_name(own, tool)
                .ok_or_else(|| ExplainError::Hidden { server: name.to_owned(), tool: tool.to_owned() })?,
            Some(_) => tool,
            None if is_agent => tool,
            None => {
                let names = config.servers.keys().map(ServerName::as_str).chain(config.agents.keys().map(|id| id.as_str()));
                return Err(ExplainError::Server { name: name.to_owned(), hint: did_you_mean(nearest(name, names)) });
            }
        };
        Ok(Self {
            place: Place::Server(server),
            method: method.to_owned(),
            tool: tool.to_owned(),
            upstream: upstream.to_owned(),
        })
    }

    /// A message of an outside client.
    pub fn to_host(method: &str, name: &str) -> Result<Self, ExplainError> {
        HookKey::parse(method)?;
        Ok(Self { place: Place::Host, method: method.to_owned(), tool: name.to_owned(), upstream: name.to_owned() })
    }

    /// The boundary that it crosses.
    pub fn boundary(&self, config: &HostConfig) -> String {
        let Place::Server(server) = &self.place else { return "host".to_owned() };
        let kind = match config.servers.get(server).map(|server| &server.kind) {
            Some(ServerKind::External(_)) => "mcp",
            Some(_) => "server",
            None => "agent",
        };
        format!("{kind}.{server}")
    }

    /// The hooks that look at it.
    pub(super) fn chain(&self, config: &HostConfig) -> Chain {
        let table = HookTable::of(config);
        match &self.place {
            Place::Server(server) => table.chain(server, &self.method, &self.upstream, &[]),
            Place::Host => table.host_chain(&self.method, &self.upstream),
        }
    }
}

/// A hook that looks at the call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asked {
    /// Its id.
    pub hook: String,
    /// What is called.
    pub target: String,
    /// `mutator` or `validator`.
    pub role: &'static str,
    /// `enforce` or `audit`.
    pub mode: HookMode,
    /// Lower runs earlier.
    pub priority: i32,
    /// Longest run in milliseconds.
    pub timeout_ms: u64,
    /// Whether the message passes if the hook fails.
    pub fail_open: bool,
    /// The condition on the answer, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub only_if: Option<&'static str>,
}

/// A hook that does not look at the call, or not on both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NotAsked {
    /// Its id.
    pub hook: String,
    /// Why.
    pub why: String,
}

/// Which hooks look at a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The boundary that the call crosses.
    pub boundary: String,
    /// Its method.
    pub method: String,
    /// The tool's name as hooks see it; an agent's, for a turn.
    pub name: String,
    /// Hooks of the session, or of the agent's config, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Asked>,
    /// Before the call is sent, in this order.
    pub request: Vec<Asked>,
    /// After the answer came, in this order.
    pub response: Vec<Asked>,
    /// All others.
    pub not_asked: Vec<NotAsked>,
}

/// What `server/tool` calls.
pub(super) const METHOD: &str = "tools/call";

/// Explains a call.
pub fn explain(config: &HostConfig, call: &Call) -> Explanation {
    let chain = call.chain(config);
    let session = if call.place == Place::Host && call.method == "initialize" { &config.host_hooks.session[..] } else { &[] };
    Explanation {
        boundary: call.boundary(config),
        method: call.method.clone(),
        name: call.upstream.clone(),
        before: session.iter().map(asked).collect(),
        request: chain.request.iter().map(|hook| asked(hook)).collect(),
        response: chain.response.iter().map(|hook| asked(hook)).collect(),
        not_asked: not_asked(config, call),
    }
}

/// Explains the turns of an agent.
pub fn explain_turns(config: &HostConfig, id: &str) -> Result<Explanation, ExplainError> {
    let names = || config.agents.keys().map(AgentId::as_str);
    let agent = config
        .agents
        .get(&AgentId::new(id))
        .ok_or_else(|| ExplainError::Server { name: id.to_owned(), hint: did_you_mean(nearest(id, names())) })?;
    let mut not_asked: Vec<NotAsked> = Vec::new();
    let mut say = |hook: &HookBinding, why: String| not_asked.push(NotAsked { hook: hook.id.clone(), why });
    for (other, agent) in config.agents.iter().filter(|(other, _)| other.as_str() != id) {
        agent.hooks.all().for_each(|hook| say(hook, format!("it is a hook of the agent {other}")));
    }
    for declared in &config.hooks {
        say(&declared.binding, format!("it looks at messages of {}, not at turns", declared.server));
    }
    for hook in config.host_hooks.session.iter().chain(&config.host_hooks.messages) {
        say(hook, "it is a hook of the host: it looks at outside clients".to_owned());
    }
    not_asked.dedup();
    Ok(Explanation {
        boundary: format!("agent.{id}"),
        method: "turn".to_owned(),
        name: id.to_owned(),
        before: agent.hooks.config.iter().map(asked).collect(),
        request: agent.hooks.request.iter().map(asked).collect(),
        response: agent.hooks.response.iter().map(asked).collect(),
        not_asked,
    })
}

fn asked(hook: &HookBinding) -> Asked {
    let only_if = match hook.matcher.call_on_error {
        Some(true) if hook.side == Side::Response => Some("the answer is an error"),
        Some(false) if hook.side == Side::Response => Some("the answer is no error"),
        _ => None,
    };
    Asked {
        hook: hook.id.clone(),
        target: hook.target.to_string(),
        role: if hook.form.is_mutator() { "mutator" } else { "validator" },
        mode: hook.mode,
        priority: hook.priority,
        timeout_ms: u64::try_from(hook.timeout.as_millis()).unwrap_or(u64::MAX),
        fail_open: hook.fail_open,
        only_if,
    }
}

fn not_asked(config: &HostConfig, call: &Call) -> Vec<NotAsked> {
    let mut all: Vec<NotAsked> = Vec::new();
    let mut say = |hook: &str, why: String| {
        let new = NotAsked { hook: hook.to_owned(), why };
        if !all.contains(&new) {
            all.push(new);
        }
    };
    for declared in &config.hooks {
        let hook = &declared.binding;
        let other_side = |other: &HookBinding| HookBinding { side: hook.side, ..other.clone() } == *hook;
        let both = config
            .hooks
            .iter()
            .any(|other| other.server == declared.server && other.binding.side != hook.side && other_side(&other.binding));
        let elsewhere = match &call.place {
            Place::Server(server) if *server == declared.server => None,
            _ => Some(format!("it looks at messages of {}", declared.server)),
        };
        match elsewhere.or_else(|| mismatch(hook, call)) {
            Some(why) => say(&hook.id, why),
            None if !both && matches!(hook.form, HookForm::Envelope { .. }) => say(&hook.id, one_side(hook.side)),
            None => {}
        }
    }
    let at_host = call.place == Place::Host;
    for hook in &config.host_hooks.messages {
        let elsewhere = (!at_host).then(|| "it is a hook of the host: it looks at messages of outside clients".to_owned());
        if let Some(why) = elsewhere.or_else(|| mismatch(hook, call)) {
            say(&hook.id, why);
        }
    }
    if !at_host || call.method != "initialize" {
        for hook in &config.host_hooks.session {
            say(&hook.id, "it is a `session` hook: it looks at `initialize` of outside clients".to_owned());
        }
    }
    for (id, agent) in &config.agents {
        for (when, hooks) in
            [("config", &agent.hooks.config), ("request", &agent.hooks.request), ("response", &agent.hooks.response)]
        {
            for hook in hooks {
                say(&hook.id, format!("it is the `{when}` hook of the agent {id}: it sees turns, not messages"));
            }
        }
    }
    all
}

fn mismatch(hook: &HookBinding, call: &Call) -> Option<String> {
    if let Some(method) = hook.matcher.method.as_ref().filter(|method| !glob(method, &call.method)) {
        return Some(format!("it looks at {method}"));
    }
    let name = hook.matcher.name.as_ref().filter(|name| !glob(name, &call.upstream))?;
    let renamed = if glob(name, &call.tool) { "; hooks see the name at the server, before `toolOverrides`" } else { "" };
    Some(format!("it looks at the name {name:?}{renamed}"))
}

fn one_side(side: Side) -> String {
    match side {
        Side::Request => "on the answer: its key says direction=request".to_owned(),
        Side::Response => "on the request: its key says direction=response".to_owned(),
    }
}
