//! This host as the harness sees it: the in-process host under test.
//!
//! Invariant: a scenario's `host:` section means the same as the same words in a `greenroom.yaml`. Deliberately the only
//! place where scenario terms become config.

mod declared;
mod reach;

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use greenroom_boundary::isolate::HandOff;
use greenroom_boundary::mcp::{FrameDuplex, ServerAddress};
use greenroom_boundary::trace::HookMode;
use greenroom_boundary::workspace::WorkspaceSpec;
use greenroom_boundary::{AgentId, CancellationToken, ConnectorName, Drivers, ServerName, ToolName};
use greenroom_harness::cover::DeclaredHook;
use greenroom_harness::host::{HostError, HostFactory, HostUnderTest, Leftovers, TurnReply, TurnRequest};
use greenroom_harness::model::{AssistantSpec, HookKind, HookModeSpec, HookSide, HookSpec, HostSpec};
use serde_json::Value;

use crate::config::{
    AgentConfig, HookDeclaration, HostConfig, ScriptConfig, ServerConfig, ServerKind, Variables, load_file, load_value,
    parse_duration,
};
use crate::front::{Arrival, serve_as};
use crate::hooks::{HookBinding, HookForm, HookTarget, Matcher, Side};
use crate::host::Host;

/// Makes hosts of this crate for scenarios.
#[derive(Clone, Debug)]
pub struct InProcess {
    /// Variables for `${NAME}` in configs; scenarios see no others.
    pub variables: Variables,
    /// How script threads and the runtime take turns.
    pub hand_off: HandOff,
}

impl Default for InProcess {
    fn default() -> Self {
        Self { variables: Variables::default(), hand_off: HandOff::Strict }
    }
}

#[async_trait]
impl HostFactory for InProcess {
    async fn start(&self, spec: &HostSpec, base: &Path, drivers: Drivers) -> Result<Box<dyn HostUnderTest>, HostError> {
        let config = translate(spec, base, &self.variables)?;
        Ok(Box::new(Rehearsed(Host::start(config, drivers, self.hand_off))))
    }

    fn declared_hooks(&self, spec: &HostSpec, base: &Path) -> Result<Vec<DeclaredHook>, HostError> {
        translate(spec, base, &self.variables).map(|config| declared::hooks(&config))
    }
}

struct Rehearsed(Host);

#[async_trait]
impl HostUnderTest for Rehearsed {
    async fn turn(&self, turn: TurnRequest, cancel: &CancellationToken) -> TurnReply {
        self.0.turn(turn, cancel).await
    }

    async fn serve(&self, name: &str, duplex: FrameDuplex) -> Result<(), HostError> {
        serve_as(&self.0, duplex, Arrival { name: Some(name.to_owned()), ..Arrival::default() }).await;
        Ok(())
    }

    async fn shutdown(&self) -> Leftovers {
        self.0.shutdown().await
    }
}

fn invalid(at: &str, message: impl std::fmt::Display) -> HostError {
    HostError { code: "CONFIG_INVALID".to_owned(), message: format!("host.{at}: {message}") }
}

/// The config that a `host:` section means.
pub fn translate(spec: &HostSpec, base: &Path, variables: &Variables) -> Result<HostConfig, HostError> {
    let name = "scenario:host";
    let from_config =
        |error: crate::config::ConfigError| HostError { code: error.code().to_owned(), message: error.to_string() };
    let mut config = match (&spec.config, spec.inline.is_empty()) {
        (Some(_), false) => return Err(invalid("config", "give either `config` or `inline`")),
        (Some(path), true) => load_file(&base.join(path), variables).map_err(from_config)?,
        (None, false) => load_value(name, Value::Object(spec.inline.clone()), base, variables).map_err(from_config)?,
        (None, true) => load_value(name, Value::Object(serde_json::Map::new()), base, variables).map_err(from_config)?,
    };
    if let Some(policy) = &spec.policy {
        config.policy.overlay(policy).map_err(|(at, message)| invalid(&format!("policy.{at}"), message))?;
    }
    for (id, assistant) in &spec.assistants {
        config.agents.insert(AgentId::new(id), agent(id, assistant, base)?);
    }
    let servers: Vec<String> = spec
        .assistants
        .values()
        .flat_map(|assistant| &assistant.mcp)
        .map(|reference| reference.split([':', '/']).next().unwrap_or_default().to_owned())
        .collect();
    for server in servers {
        simulated(&mut config, &server);
    }
    for (index, hook) in spec.hooks.iter().enumerate() {
        add_hook(&mut config, hook, u32::try_from(index).unwrap_or(u32::MAX))?;
    }
    config.check(name).map_err(from_config)?;
    Ok(config)
}

/// A server that only a driver of the scenario answers for.
fn simulated(config: &mut HostConfig, server: &str) {
    if !config.agents.contains_key(&AgentId::new(server)) {
        let kind = ServerKind::External(ServerAddress::Simulated);
        config.servers.entry(ServerName::new(server)).or_insert_with(|| ServerConfig::plain(kind));
    }
}

fn agent(id: &str, spec: &AssistantSpec, base: &Path) -> Result<AgentConfig, HostError> {
    let script = match (&spec.script, &spec.script_inline) {
        (Some(_), Some(_)) => return Err(invalid(&format!("assistants.{id}"), "give either `script` or `script_inline`")),
        (Some(path), None) => Some(ScriptConfig::File(base.join(path))),
        (None, Some(code)) => Some(ScriptConfig::Inline { name: format!("{id}.ts"), code: code.clone() }),
        (None, None) => None,
    };
    let mut instructions = Vec::new();
    for prompt in &spec.prompts {
        match prompt.iter().next() {
            Some((role, text)) if role == "system" && prompt.len() == 1 => instructions.push(text.clone()),
            _ => return Err(invalid(&format!("assistants.{id}.prompts"), "each prompt must be `{ system: text }`")),
        }
    }
    let mut params = spec.options.clone();
    let temperature = params.shift_remove("temperature").and_then(|value| value.as_f64());
    let max_tokens = params.shift_remove("max_tokens").and_then(|value| value.as_u64());
    Ok(AgentConfig {
        instructions,
        connector: spec.connector.as_ref().map(ConnectorName::new),
        script,
        tools: spec.mcp.clone(),
        agents: spec.agents.iter().map(AgentId::new).collect(),
        temperature,
        max_tokens,
        params,
        chat: true,
        workspace: spec.workspace.clone().map(WorkspaceSpec::Files),
        computer: spec.computer,
        ..AgentConfig::default()
    })
}

fn add_hook(config: &mut HostConfig, hook: &HookSpec, index: u32) -> Result<(), HostError> {
    let at = format!("hooks.{}", hook.id);
    let server = hook
        .at
        .boundary
        .split_once('.')
        .filter(|(kind, _)| ["mcp", "server", "agent"].contains(kind))
        .map(|(_, server)| server)
        .ok_or_else(|| {
            invalid(
                &at,
                format!("{:?} has no messages to hook; use `mcp.NAME`, `server.NAME` or `agent.NAME`", hook.at.boundary),
            )
        })?;
    let timeout = match &hook.timeout {
        Some(text) => parse_duration(text).map_err(|error| invalid(&at, error))?,
        None => Duration::from_secs(10),
    };
    if hook.at.boundary.starts_with("mcp.") {
        simulated(config, server);
    }
    let script_server = ServerName::new(format!("hook.{}", hook.id));
    let script = ScriptConfig::Inline { name: format!("{}.ts", hook.id), code: hook.js.clone() };
    config.servers.insert(script_server.clone(), ServerConfig::plain(ServerKind::Script(script)));
    let binding = HookBinding {
        id: hook.id.clone(),
        target: HookTarget { server: script_server, tool: ToolName::new("default"), may_mutate: hook.kind == HookKind::Mutate },
        matcher: Matcher { method: hook.at.method.clone(), name: hook.at.name.clone(), call_on_error: None },
        side: match hook.phase {
            HookSide::Request => Side::Request,
            HookSide::Response => Side::Response,
        },
        form: match hook.kind {
            HookKind::Mutate => HookForm::Mutate,
            HookKind::Validate => HookForm::Validate,
        },
        mode: match hook.mode {
            HookModeSpec::Enforce => HookMode::Enforce,
            HookModeSpec::Audit => HookMode::Audit,
        },
        priority: hook.priority,
        declared: index,
        timeout,
        fail_open: hook.fail_open,
    };
    config.hooks.push(HookDeclaration { server: ServerName::new(server), binding });
    Ok(())
}
