//! What a config that loads will still stumble over when it runs.
//!
//! Invariant: nothing is started; files are only read. Deliberately no errors: a host with such a config serves what works.

use std::path::Path;

use greenroom_boundary::mcp::ServerAddress;

use super::{HostConfig, ScriptConfig, ServerKind};
use crate::scripts::ScriptLibrary;

/// Dialects that this version speaks.
const DIALECTS: [&str; 1] = ["OpenAIChatCompletions"];

/// Something that will fail when it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Weakness {
    /// The key, `agents.travel.script`.
    pub at: String,
    /// What will fail, and what to do.
    pub message: String,
}

/// All weaknesses, in order of agents, servers and providers.
pub fn weaknesses(config: &HostConfig) -> Vec<Weakness> {
    let mut found = Vec::new();
    let mut add = |at: String, message: String| found.push(Weakness { at, message });
    let scripts = ScriptLibrary::of(config);
    for (id, agent) in &config.agents {
        if let Some(message) = agent.script.as_ref().and_then(|script| script_problem(&scripts, script)) {
            add(format!("agents.{id}.script"), message);
        }
        if let Some(connector) = agent.connector.as_ref().filter(|connector| !config.providers.contains_key(connector)) {
            add(format!("agents.{id}.model"), format!("no provider is named {connector:?}; add it to llmProviders"));
        }
        if agent.connector.is_none() && agent.script.is_none() {
            add(format!("agents.{id}"), "it has neither a model nor a script, so it answers nothing".to_owned());
        }
    }
    for (name, server) in &config.servers {
        let at = format!("mcpServers.{name}");
        match &server.kind {
            ServerKind::Disabled(reason) => add(at, format!("the server is disabled: {reason}")),
            ServerKind::Script(script) => {
                if let Some(message) = script_problem(&scripts, script) {
                    add(format!("{at}.script"), message);
                }
            }
            ServerKind::External(ServerAddress::Http { url, .. }) => {
                if !reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https")) {
                    add(format!("{at}.url"), "it is no http or https address".to_owned());
                }
            }
            ServerKind::External(_) | ServerKind::BuiltIn => {}
        }
    }
    for (name, provider) in &config.providers {
        if !DIALECTS.contains(&provider.dialect.as_str()) {
            let message = format!("the dialect {:?} is not spoken yet; use {}", provider.dialect, DIALECTS.join(" or "));
            add(format!("llmProviders.{name}.dialect"), message);
        }
    }
    found
}

fn script_problem(scripts: &ScriptLibrary, script: &ScriptConfig) -> Option<String> {
    if let ScriptConfig::File(path) = script
        && !Path::new(path).is_file()
    {
        return Some(format!("{} is no file", path.display()));
    }
    scripts.load(script).err().map(|error| error.report())
}
