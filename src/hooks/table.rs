//! The table of message hooks, built when the config is loaded.
//!
//! Invariant: the order of a chain is a function of (priority, declaration) alone: mutators first, then validators.
//! A call without hooks costs one look-up. Deliberately immutable.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_boundary::ServerName;

use super::key::{HookBinding, Side};
use crate::config::HookDeclaration;

/// All message hooks, by server, each list in running order.
#[derive(Clone, Debug, Default)]
pub struct HookTable(BTreeMap<ServerName, Arc<[HookBinding]>>);

/// The hooks of one call, captured when it is issued.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    /// Before it is sent.
    pub request: Vec<HookBinding>,
    /// After the answer came.
    pub response: Vec<HookBinding>,
}

impl Chain {
    /// Whether nothing would run.
    pub fn is_empty(&self) -> bool {
        self.request.is_empty() && self.response.is_empty()
    }
}

impl HookTable {
    /// Builds the table.
    pub fn new(declarations: &[HookDeclaration]) -> Self {
        let mut by_server: BTreeMap<ServerName, Vec<HookBinding>> = BTreeMap::new();
        for declaration in declarations {
            by_server.entry(declaration.server.clone()).or_default().push(declaration.binding.clone());
        }
        let ordered = by_server.into_iter().map(|(server, mut hooks)| {
            hooks.sort_by_key(|hook| (!hook.form.is_mutator(), hook.priority, hook.declared));
            (server, hooks.into())
        });
        Self(ordered.collect())
    }

    /// The chain of a message to `server`; hooks named in `running` are left out, as a hook does not set itself off.
    pub fn chain(&self, server: &ServerName, method: &str, name: &str, running: &[String]) -> Chain {
        let Some(hooks) = self.0.get(server) else {
            return Chain::default();
        };
        let matching = |side: Side| {
            let wanted =
                |hook: &&HookBinding| hook.side == side && hook.matcher.matches(method, name) && !running.contains(&hook.id);
            hooks.iter().filter(wanted).cloned().collect()
        };
        Chain { request: matching(Side::Request), response: matching(Side::Response) }
    }
}
