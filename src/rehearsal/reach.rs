//! How deep hooks can run: a walk over who calls whom.
//!
//! Invariant: a hook is found at a depth only if a chain of that many other hooks leads there, as the router's guard
//! against recursion asks. Deliberately bounded: depths beyond [`DEEPEST`] are the same class as it.

use std::collections::{BTreeMap, BTreeSet};

use greenroom_boundary::{AgentId, ServerName};
use greenroom_harness::cover::HookDepth;
use greenroom_harness::model::glob;

use super::declared::{CALL, classes, code, samples};
use crate::config::HostConfig;
use crate::hooks::{HookBinding, HookTable};
use crate::scripts::ScriptLibrary;

/// Where the walk ends: everything from 2 on is one class.
const DEEPEST: usize = 2;

/// A call under way: who is called, inside which hooks, in turns of which agents.
type Visit = (String, Vec<String>, Vec<AgentId>);

/// Where each hook can run.
pub(super) struct Reach {
    messages: Vec<(ServerName, HookBinding, BTreeSet<usize>)>,
    agents: BTreeMap<AgentId, BTreeSet<usize>>,
}

struct Walk<'a> {
    config: &'a HostConfig,
    table: HookTable,
    scripts: BTreeMap<&'a AgentId, String>,
    seen: BTreeSet<Visit>,
    found: Reach,
}

impl Reach {
    /// Walks a config, from a turn of every agent.
    pub(super) fn of(config: &HostConfig) -> Self {
        let messages = config.hooks.iter().map(|hook| (hook.server.clone(), hook.binding.clone(), BTreeSet::new())).collect();
        let library = ScriptLibrary::of(config);
        let scripts =
            config.agents.iter().filter_map(|(id, agent)| Some((id, code(&library, agent.script.as_ref()?)))).collect();
        let found = Self { messages, agents: BTreeMap::new() };
        let mut walk = Walk { config, table: HookTable::of(config), scripts, seen: BTreeSet::new(), found };
        for agent in config.agents.keys() {
            walk.turn(agent, &[], &[]);
        }
        walk.found
    }

    /// The depths of a message hook, and why there are no others.
    pub(super) fn message(&self, server: &ServerName, binding: &HookBinding) -> (BTreeSet<HookDepth>, String) {
        let known = self.messages.iter().find(|(known, hook, _)| known == server && hook == binding);
        let depths = known.map(|(.., depths)| classes(depths)).unwrap_or_default();
        let reason = match &binding.matcher.method {
            Some(method) if !glob(method, CALL) => format!("agents, scripts and hooks make no `{method}`"),
            _ => "no hook, script or agent calls its server there".to_owned(),
        };
        (depths, reason)
    }

    /// The depths of an agent's own hooks, and why there are no others.
    pub(super) fn agent(&self, id: &AgentId) -> (BTreeSet<HookDepth>, String) {
        let depths = self.agents.get(id).map(classes).unwrap_or_default();
        (depths, "no hook's target is, or calls, its agent".to_owned())
    }
}

impl Walk<'_> {
    /// A turn of an agent, inside the hooks `running`.
    fn turn(&mut self, id: &AgentId, running: &[String], turns: &[AgentId]) {
        let Some(agent) = self.config.agents.get(id) else { return };
        if turns.contains(id) && !self.config.policy.delegation.allow_cycles {
            return;
        }
        if !self.seen.insert((format!("turn {id}"), running.to_vec(), turns.to_vec())) || turns.len() > DEEPEST + 1 {
            return;
        }
        self.found.agents.entry(id.clone()).or_default().insert(running.len());
        let inside = [turns, std::slice::from_ref(id)].concat();
        for hook in agent.hooks.all().filter(|hook| !running.contains(&hook.id)) {
            self.ask(&hook.target.server, &hook.id, running, &inside);
        }
        let mut called: BTreeSet<String> =
            agent.tools.iter().filter_map(|reference| reference.split([':', '/']).next().map(str::to_owned)).collect();
        called.extend(agent.agents.iter().map(ToString::to_string));
        let script = self.scripts.get(id).cloned().unwrap_or_default();
        let servers = self.config.servers.keys().map(ServerName::as_str);
        called.extend(servers.filter(|name| names(&script, name)).map(str::to_owned));
        for server in called {
            self.call(&ServerName::new(server), running, &inside);
        }
        let others: Vec<AgentId> = self.config.agents.keys().filter(|other| names(&script, other.as_str())).cloned().collect();
        for other in others {
            self.turn(&other, running, &inside);
        }
    }

    /// A call of a hook's target.
    fn ask(&mut self, server: &ServerName, hook: &str, running: &[String], turns: &[AgentId]) {
        if running.len() < DEEPEST {
            self.call(server, &[running, &[hook.to_owned()]].concat(), turns);
        }
    }

    /// A tool call to a server, inside the hooks `running`.
    fn call(&mut self, server: &ServerName, running: &[String], turns: &[AgentId]) {
        if !self.seen.insert((format!("call {server}"), running.to_vec(), turns.to_vec())) {
            return;
        }
        for (method, name) in samples(self.config, server).into_iter().filter(|(method, _)| method == CALL) {
            let chain = self.table.chain(server, &method, &name, running);
            for hook in chain.request.iter().chain(&chain.response) {
                let known =
                    self.found.messages.iter_mut().find(|(known, binding, _)| known == server && binding == hook.as_ref());
                if let Some((.., depths)) = known {
                    depths.insert(running.len());
                }
                self.ask(&hook.target.server, &hook.id, running, turns);
            }
        }
        self.turn(&AgentId::new(server.as_str()), running, turns);
    }
}

/// Whether a script names something in quotes.
fn names(code: &str, name: &str) -> bool {
    ['"', '\'', '`'].into_iter().any(|quote| code.contains(&format!("{quote}{name}{quote}")))
}
