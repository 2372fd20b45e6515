//! What a client of a session was shown: which server is behind a name or address.
//!
//! Invariant: what was shown for one server never comes to mean another one, as long as the session lives and the config is
//! the same. Deliberately no lists in here: a tool that its server no longer has keeps its name.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use greenroom_boundary::ServerName;

use crate::host::HostCore;

/// Owners by name: the server, and its own name for it.
pub(crate) type Owners = BTreeMap<String, (ServerName, String)>;

/// What was shown in one session.
#[derive(Default)]
pub(crate) struct Shown(Mutex<State>);

#[derive(Default)]
struct State {
    /// The config under which it was shown.
    core: Weak<HostCore>,
    /// By list method.
    lists: BTreeMap<String, Owners>,
}

impl Shown {
    fn state(&self, core: &Arc<HostCore>) -> MutexGuard<'_, State> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !std::ptr::eq(state.core.as_ptr(), Arc::as_ptr(core)) {
            *state = State { core: Arc::downgrade(core), lists: BTreeMap::new() };
        }
        state
    }

    /// Who is behind a name of a list.
    pub(crate) fn owner(&self, core: &Arc<HostCore>, list: &str, name: &str) -> Option<(ServerName, String)> {
        self.state(core).lists.get(list)?.get(name).cloned()
    }

    /// All that was shown of a list.
    pub(crate) fn owners(&self, core: &Arc<HostCore>, list: &str) -> Owners {
        self.state(core).lists.get(list).cloned().unwrap_or_default()
    }

    /// Notes what is shown now; what was shown before keeps its owner.
    pub(crate) fn note(
        &self,
        core: &Arc<HostCore>,
        list: &str,
        shown: impl IntoIterator<Item = (String, (ServerName, String))>,
    ) {
        let mut state = self.state(core);
        let known = state.lists.entry(list.to_owned()).or_default();
        for (name, owner) in shown {
            known.entry(name).or_insert(owner);
        }
    }
}
