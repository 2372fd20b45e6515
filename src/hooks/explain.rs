//! Which hooks would look at a call, in which order, and why the others would not.
//!
//! Invariant: the order is the table's own, so what is explained is what runs. Deliberately nothing is run here; see
//! [`dry_run`].

pub mod dry_run;

use greenroom_boundary::ServerName;
use greenroom_boundary::trace::HookMode;
use greenroom_harness::model::glob;
use serde::Serialize;

use super::{HookBinding, HookForm, HookTable, Side};
use crate::config::{HostConfig, ServerKind};
use crate::router::{did_you_mean, nearest, upstream_name};

/// A call that hooks are explained for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The server, built-in one or agent.
    pub server: ServerName,
    /// The tool, as the host shows it.
    pub tool: String,
    /// The tool's name at the server: what hooks see.
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
}

impl ExplainError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Call { .. } => "EXPLAIN_CALL",
            Self::Server { .. } => "CALL_UNKNOWN_SERVER",
            Self::Hidden { .. } => "CALL_UNKNOWN_TOOL",
        }
    }
}

impl Call {
    /// Reads `server/tool`; both must be names of the config.
    pub fn parse(config: &HostConfig, text: &str) -> Result<Self, ExplainError> {
        let named = text.split_once('/').filter(|(server, tool)| !server.is_empty() && !tool.is_empty());
        let (name, tool) = named.ok_or_else(|| ExplainError::Call { text: text.to_owned() })?;
        let server = ServerName::new(name);
        let is_agent = config.agents.keys().any(|agent| agent.as_str() == name);
        let upstream = match config.servers.get(&server) {
            Some(own) => upstream_name(own, tool)
                .ok_or_else(|| ExplainError::Hidden { server: name.to_owned(), tool: tool.to_owned() })?,
            None if is_agent => tool.to_owned(),
            None => {
                let names = config.servers.keys().map(ServerName::as_str).chain(config.agents.keys().map(|id| id.as_str()));
                return Err(ExplainError::Server { name: name.to_owned(), hint: did_you_mean(nearest(name, names)) });
            }
        };
        Ok(Self { server, tool: tool.to_owned(), upstream })
    }

    /// The boundary that it crosses.
    pub fn boundary(&self, config: &HostConfig) -> String {
        let kind = match config.servers.get(&self.server).map(|server| &server.kind) {
            Some(ServerKind::External(_)) => "mcp",
            Some(_) => "server",
            None => "agent",
        };
        format!("{kind}.{}", self.server)
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
    /// Always `tools/call`.
    pub method: &'static str,
    /// The tool's name as hooks see it.
    pub name: String,
    /// Before the call is sent, in this order.
    pub request: Vec<Asked>,
    /// After the answer came, in this order.
    pub response: Vec<Asked>,
    /// All others.
    pub not_asked: Vec<NotAsked>,
}

pub(super) const METHOD: &str = "tools/call";

/// Explains a call.
pub fn explain(config: &HostConfig, call: &Call) -> Explanation {
    let chain = HookTable::new(&config.hooks).chain(&call.server, METHOD, &call.upstream, &[]);
    Explanation {
        boundary: call.boundary(config),
        method: METHOD,
        name: call.upstream.clone(),
        request: chain.request.iter().map(asked).collect(),
        response: chain.response.iter().map(asked).collect(),
        not_asked: not_asked(config, call),
    }
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
        match mismatch(declared.server.as_str(), hook, call) {
            Some(why) => say(&hook.id, why),
            None if !both && matches!(hook.form, HookForm::Envelope { .. }) => say(&hook.id, one_side(hook.side)),
            None => {}
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

fn mismatch(server: &str, hook: &HookBinding, call: &Call) -> Option<String> {
    if server != call.server.as_str() {
        return Some(format!("it looks at messages of {server}"));
    }
    if let Some(method) = hook.matcher.method.as_ref().filter(|method| !glob(method, METHOD)) {
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
