//! The table of message hooks, built when the config is loaded.
//!
//! Invariant: the order of a chain is a function of (priority, declaration) alone: mutators first, then validators.
//! A call without hooks costs one look-up. Deliberately immutable.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_boundary::ServerName;

use super::binding::{HookBinding, Side};
use super::method;
use crate::config::{HookDeclaration, HostConfig};

/// The handshake of a server: only a key that names it looks at it, no pattern.
const HANDSHAKE: &str = "initialize";

/// The message hooks of one server, or of the host, in running order.
#[derive(Clone, Debug, Default)]
pub struct OwnHooks(Arc<[Arc<HookBinding>]>);

impl OwnHooks {
    /// Whether there are none, whatever the message.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The chain of a message to or from this server; hooks named in `running` are left out, as a hook does not set itself
    /// off.
    pub(crate) fn chain(&self, method: &str, name: &str, running: &[String]) -> Chain {
        let mut chain = self.matching(method, name, running);
        if method == HANDSHAKE {
            // A hook that is written for calls would else refuse the whole connection.
            let names_it = |hook: &Arc<HookBinding>| hook.matcher.method.as_deref() == Some(HANDSHAKE);
            chain.request.retain(names_it);
            chain.response.retain(names_it);
        }
        chain
    }

    fn matching(&self, method: &str, name: &str, running: &[String]) -> Chain {
        let mut chain = Chain::default();
        if self.is_empty() || method::is_fixed(method) {
            return chain;
        }
        for hook in self.0.iter().filter(|hook| hook.matcher.fits(method, name) && !running.contains(&hook.id)) {
            let side = match hook.side {
                Side::Request => &mut chain.request,
                Side::Response => &mut chain.response,
            };
            if side.is_empty() {
                side.reserve(self.0.len());
            }
            side.push(hook.clone());
        }
        chain
    }
}

/// All message hooks, by server and for the host, each list in running order.
#[derive(Clone, Debug, Default)]
pub struct HookTable {
    servers: BTreeMap<ServerName, OwnHooks>,
    host: OwnHooks,
}

/// The hooks of one call, captured when it is issued.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// Before it is sent.
    pub request: Vec<Arc<HookBinding>>,
    /// After the answer came.
    pub response: Vec<Arc<HookBinding>>,
}

impl Chain {
    /// Whether nothing would run.
    pub fn is_empty(&self) -> bool {
        self.request.is_empty() && self.response.is_empty()
    }
}

impl HookTable {
    /// Builds the table of servers and agents.
    pub fn new(declarations: &[HookDeclaration]) -> Self {
        let mut by_server: BTreeMap<ServerName, Vec<HookBinding>> = BTreeMap::new();
        for declaration in declarations {
            by_server.entry(declaration.server.clone()).or_default().push(declaration.binding.clone());
        }
        let servers = by_server.into_iter().map(|(server, hooks)| (server, shared(hooks))).collect();
        Self { servers, host: OwnHooks::default() }
    }

    /// The whole table of a config.
    pub fn of(config: &HostConfig) -> Self {
        Self::new(&config.hooks).with_host(&config.host_hooks.messages)
    }

    /// Adds the hooks on messages of outside clients.
    #[must_use]
    pub fn with_host(mut self, hooks: &[HookBinding]) -> Self {
        self.host = shared(hooks.to_vec());
        self
    }

    /// The chain of a message to or from `server`; hooks named in `running` are left out, as a hook does not set itself
    /// off.
    pub fn chain(&self, server: &ServerName, method: &str, name: &str, running: &[String]) -> Chain {
        self.servers.get(server).map(|hooks| hooks.chain(method, name, running)).unwrap_or_default()
    }

    /// The chain of a message of an outside client.
    pub fn host_chain(&self, method: &str, name: &str) -> Chain {
        self.host.matching(method, name, &[])
    }

    /// The hooks of one server, for who looks them up once.
    pub(crate) fn of_server(&self, server: &ServerName) -> OwnHooks {
        self.servers.get(server).cloned().unwrap_or_default()
    }
}

/// Hooks in the order in which they run, ready to be captured by many calls.
fn shared(hooks: Vec<HookBinding>) -> OwnHooks {
    OwnHooks(in_order(hooks).into_iter().map(Arc::new).collect())
}

/// Hooks in the order in which they run.
pub(crate) fn in_order(mut hooks: Vec<HookBinding>) -> Vec<HookBinding> {
    hooks.sort_by_key(|hook| (!hook.form.is_mutator(), hook.priority, hook.declared));
    hooks
}
