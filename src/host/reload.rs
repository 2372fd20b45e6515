//! A new config for a running host.
//!
//! Invariant: work that has begun ends on the config that it began with; what the new config replaces is closed when the
//! last such work has ended, generation by generation. Deliberately no reading of files: whoever reloads has checked the
//! new config.

use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use greenroom_boundary::{CancellationToken, Drivers, ServerName};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::{Host, HostCore};
use crate::config::HostConfig;
use crate::sessions::RootSession;

/// Keeps a config's servers open while it lives.
pub struct InUse(#[expect(dead_code, reason = "it counts until it is dropped")] TaskTrackerToken);

/// What a new config changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reloaded {
    /// Servers that are new.
    pub added: Vec<ServerName>,
    /// Servers that are gone.
    pub removed: Vec<ServerName>,
    /// Servers that are another program or address now.
    pub replaced: Vec<ServerName>,
}

/// The config that counts, and those whose work has not ended.
pub(super) struct Generations {
    current: RwLock<Arc<HostCore>>,
    retiring: Mutex<Vec<Weak<HostCore>>>,
    /// Cancelled when the generation before the current one has been closed.
    retired: Mutex<CancellationToken>,
}

impl Generations {
    pub(super) fn new(core: Arc<HostCore>) -> Self {
        let retired = CancellationToken::new();
        retired.cancel();
        Self { current: RwLock::new(core), retiring: Mutex::default(), retired: Mutex::new(retired) }
    }

    pub(super) fn current(&self) -> Arc<HostCore> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn living(&self) -> Vec<Arc<HostCore>> {
        let mut retiring = self.retiring.lock().unwrap_or_else(PoisonError::into_inner);
        retiring.retain(|core| core.strong_count() > 0);
        retiring.iter().filter_map(Weak::upgrade).chain([self.current()]).collect()
    }

    /// Closes every generation, and says how many connections are open after that.
    pub(super) async fn close(&self) -> usize {
        let mut connections = 0;
        for core in self.living() {
            core.router.close().await;
            connections += core.router.open_connections();
        }
        connections
    }

    /// Closes what `old` does not share with `new`, after all work on `old` and on what came before it has ended.
    fn retire(&self, old: Arc<HostCore>, new: Arc<HostCore>) {
        self.retiring.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&old));
        let done = CancellationToken::new();
        let before = std::mem::replace(&mut *self.retired.lock().unwrap_or_else(PoisonError::into_inner), done.clone());
        tokio::spawn(async move {
            before.cancelled().await;
            old.uses.close();
            old.uses.wait().await;
            old.router.close_replaced(&new.router).await;
            done.cancel();
        });
    }
}

impl Host {
    /// The host of the config that counts now, kept open until the second value is dropped.
    pub fn enter(&self) -> (Arc<HostCore>, InUse) {
        // Taken under the lock, so that a generation cannot retire between the two.
        let current = self.0.current.read().unwrap_or_else(PoisonError::into_inner);
        (current.clone(), InUse(current.uses.token()))
    }

    /// Replaces the config, for everything that begins from now on. External servers whose program or address stay the
    /// same keep their connections; the others are closed once nothing uses them. Scripts are read anew. Clients are told
    /// that lists may have changed.
    pub fn reload(&self, config: HostConfig, drivers: Drivers) -> Reloaded {
        let (old, new) = {
            let mut current = self.0.current.write().unwrap_or_else(PoisonError::into_inner);
            let new = HostCore::new(config, drivers, current.hand_off, current.state.clone(), Some(&current));
            (std::mem::replace(&mut *current, new.clone()), new)
        };
        let reloaded = compare(&old.config, &new.config);
        for root in new.roots() {
            if let Some(client) = root.client() {
                for list in ["tools", "prompts", "resources"] {
                    client.notify(&format!("notifications/{list}/list_changed"), None);
                }
            }
        }
        self.0.retire(old, new);
        reloaded
    }

    /// Ends a session tree: its calls, its servers, its conversation `id`.
    pub async fn end_session(&self, root: &RootSession, id: &str) {
        for core in self.0.living() {
            core.end_session(root, id).await;
        }
    }
}

impl HostCore {
    fn roots(&self) -> Vec<Arc<RootSession>> {
        self.state.roots.lock().unwrap_or_else(PoisonError::into_inner).values().filter_map(Weak::upgrade).collect()
    }
}

fn compare(old: &HostConfig, new: &HostConfig) -> Reloaded {
    let mut reloaded = Reloaded::default();
    for (name, server) in &new.servers {
        match old.servers.get(name) {
            None => reloaded.added.push(name.clone()),
            Some(before) if before.kind != server.kind => reloaded.replaced.push(name.clone()),
            Some(_) => {}
        }
    }
    reloaded.removed.extend(old.servers.keys().filter(|name| !new.servers.contains_key(*name)).cloned());
    reloaded
}
