//! A server of the config, and what stands for it in each session tree.
//!
//! Invariant: a tree that has ended gets no new instance, so nothing outlives it. Deliberately no calls here.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use super::{CallError, Server, ServerState};
use crate::config::{ServerConfig, ServerKind};
use crate::hooks::OwnHooks;
use crate::sessions::{RootId, RootSession};

/// Makes a built-in server, script server or agent when it is first needed.
pub(crate) type Factory = Box<dyn Fn() -> Result<Arc<dyn Server>, CallError> + Send + Sync>;

/// A list that was read whole, and the server's state of lists at that time.
pub(super) type KeptLists = Mutex<BTreeMap<String, (u64, Vec<Value>)>>;

/// What stands for a server in one session tree.
pub(super) struct Instance {
    pub(super) server: Arc<dyn Server>,
    /// The server's boundary: it has one name as long as it lives.
    pub(super) boundary: String,
    pub(super) lists: KeptLists,
}

impl Instance {
    pub(super) fn of(server: Arc<dyn Server>) -> Self {
        Self { boundary: server.boundary(), server, lists: KeptLists::default() }
    }
}

/// A server of the config.
pub(super) struct Slot {
    pub(super) config: ServerConfig,
    pub(super) hooks: OwnHooks,
    factory: Factory,
    instances: Arc<Instances>,
}

/// The instances of a server, by the session tree that they serve.
type Instances = Mutex<BTreeMap<RootId, Arc<Instance>>>;

impl Slot {
    /// A slot. If the server was the same under the config before, its connections go on; its lists are read anew, as
    /// other hooks may look at them.
    pub(super) fn new(config: ServerConfig, hooks: OwnHooks, factory: Factory, was: Option<&Self>) -> Self {
        let same = was.filter(|was| was.is_external() && was.config.kind == config.kind);
        let instances = same.map(|was| was.instances.clone()).unwrap_or_default();
        let slot = Self { config, hooks, factory, instances };
        for instance in slot.instances() {
            instance.lists.lock().unwrap_or_else(PoisonError::into_inner).clear();
        }
        slot
    }

    /// Whether both give out the same instances.
    pub(super) fn shares_with(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.instances, &other.instances)
    }

    /// Whether it is behind the boundary to external servers.
    pub(super) fn is_external(&self) -> bool {
        matches!(self.config.kind, ServerKind::External(_))
    }

    /// The instance of a root, made if it has none yet. Servers without state are one for all roots.
    pub(super) fn instance(&self, root: &RootSession) -> Result<Arc<Instance>, CallError> {
        let external = self.is_external();
        let id = if external { root.id } else { RootId::default() };
        let mut instances = self.lock();
        if let Some(instance) = instances.get(&id) {
            return Ok(instance.clone());
        }
        // Whoever ends a root marks it first and takes its instances out afterwards, under this lock.
        if external && root.ended.is_cancelled() {
            let message = "the session has ended; nothing is called for it any more".to_owned();
            return Err(CallError::Inner { code: "SESSION_ENDED".to_owned(), message });
        }
        let made = Arc::new(Instance::of((self.factory)()?));
        instances.insert(id, made.clone());
        Ok(made)
    }

    /// The instance of a root, if it has one.
    pub(super) fn existing(&self, root: RootId) -> Option<Arc<Instance>> {
        let id = if self.is_external() { root } else { RootId::default() };
        self.lock().get(&id).cloned()
    }

    /// Takes the instance of a root out. What all roots share stays.
    pub(super) fn remove(&self, root: RootId) -> Option<Arc<Instance>> {
        if self.is_external() { self.lock().remove(&root) } else { None }
    }

    /// How it is doing for a root.
    pub(super) fn health(&self, root: RootId) -> ServerState {
        match (&self.config.kind, self.existing(root)) {
            (ServerKind::Disabled(_), _) => ServerState::Disabled,
            (_, Some(instance)) => instance.server.state(),
            (ServerKind::External(_), None) => ServerState::Idle,
            (_, None) => ServerState::Ready,
        }
    }

    pub(super) fn instances(&self) -> Vec<Arc<Instance>> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<RootId, Arc<Instance>>> {
        self.instances.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
