//! The root of a session tree: one outside client, or the host's own turns.
//!
//! Invariant: every call has exactly one root, and a server that serves a root serves no other. Deliberately no servers in
//! here: the router keeps those, so that a new config can replace them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use async_trait::async_trait;
use greenroom_boundary::{CancellationToken, RawJson, Scope, ServerName};
use greenroom_wire::RpcError;
use serde_json::Value;

use super::LogLevel;
use super::shown::Shown;

/// Names a root within its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootId(pub u64);

/// An outside client, as far as it can be asked and told something.
#[async_trait]
pub trait Client: Send + Sync {
    /// Its boundary in the trace: `client.NAME`.
    fn boundary(&self) -> String;

    /// The capabilities of its `initialize`: `sampling`, `elicitation`, `roots`, …
    fn capabilities(&self) -> Value;

    /// Waits until it may be asked something; a client of a replay has its turns.
    async fn ready(&self, method: &str, params: &Value) {
        let _ = (method, params);
    }

    /// Asks it (`sampling/createMessage`, `elicitation/create`, `roots/list`). `scope` is that of the call which the question
    /// comes from: its root names the client's own request, if it is one.
    async fn request(
        &self,
        method: &str,
        params: Option<RawJson>,
        scope: &Scope,
        cancel: &CancellationToken,
    ) -> Result<RawJson, RpcError>;

    /// Tells it something.
    fn notify(&self, method: &str, params: Option<RawJson>);
}

/// The root of a session tree.
#[derive(Default)]
pub struct RootSession {
    /// Names it within the host.
    pub id: RootId,
    /// Cancelled when it ends.
    pub ended: CancellationToken,
    /// How many hosts stand between this session and the first of a chain of hosts.
    depth: AtomicU64,
    /// What its client was shown.
    pub(crate) shown: Shown,
    /// Where its client found the host: an address, or nothing on stdio.
    address: OnceLock<String>,
    client: RwLock<Option<Arc<dyn Client>>>,
    wishes: Mutex<Wishes>,
    /// Counts the roots of a host that are still in memory.
    _living: Arc<()>,
}

/// What the client wants to hear of.
#[derive(Default)]
struct Wishes {
    log_level: Option<LogLevel>,
    resources: BTreeSet<(ServerName, String)>,
    /// Lists whose change it will be told of in a moment.
    changes: BTreeSet<&'static str>,
}

impl RootSession {
    /// A root without a client.
    pub fn new(id: RootId) -> Arc<Self> {
        Arc::new(Self { id, ..Self::default() })
    }

    /// The same, counted by the references to `living`.
    pub(crate) fn counted(id: RootId, living: &Arc<()>) -> Arc<Self> {
        Arc::new(Self { id, _living: living.clone(), ..Self::default() })
    }

    /// Ends it: nobody can be asked any more. The client's connection holds the root, so it must not stay here.
    pub(crate) fn end(&self) {
        self.ended.cancel();
        drop(self.client.write().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Who can be asked, once it has introduced itself.
    pub fn client(&self) -> Option<Arc<dyn Client>> {
        self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says who can be asked from now on, unless it has ended.
    pub fn introduce(&self, client: Arc<dyn Client>) {
        let mut current = self.client.write().unwrap_or_else(PoisonError::into_inner);
        if !self.ended.is_cancelled() {
            *current = Some(client);
        }
    }

    /// Where its client found the host; empty on stdio.
    pub fn address(&self) -> &str {
        self.address.get().map_or("", String::as_str)
    }

    /// Notes where its client found the host.
    pub(crate) fn set_address(&self, address: String) {
        // It comes by one way alone.
        let _ = self.address.set(address);
    }

    /// How deep the session is in a chain of hosts that call each other, or themselves; own turns have depth 0.
    pub fn depth(&self) -> u64 {
        self.depth.load(Ordering::SeqCst)
    }

    /// Notes what the client said of its depth.
    pub fn set_depth(&self, depth: u64) {
        self.depth.store(depth, Ordering::SeqCst);
    }

    fn wishes(&self) -> MutexGuard<'_, Wishes> {
        self.wishes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From which level on the client wants log messages; `None`: it has not said.
    pub fn log_level(&self) -> Option<LogLevel> {
        self.wishes().log_level
    }

    /// Sets the least level of log messages.
    pub fn set_log_level(&self, level: LogLevel) {
        self.wishes().log_level = Some(level);
    }

    /// Notes that the client wants to hear of changes of a server's resource.
    pub fn subscribe(&self, server: ServerName, uri: String) {
        self.wishes().resources.insert((server, uri));
    }

    /// Notes that it no longer does.
    pub fn unsubscribe(&self, server: &ServerName, uri: &str) {
        self.wishes().resources.remove(&(server.clone(), uri.to_owned()));
    }

    /// Whether the client wants to hear of changes of a server's resource.
    pub fn is_subscribed(&self, server: &ServerName, uri: &str) -> bool {
        self.wishes().resources.contains(&(server.clone(), uri.to_owned()))
    }

    /// The resources of a server that the client wants to hear of.
    pub fn subscriptions(&self, server: &ServerName) -> Vec<String> {
        self.wishes().resources.iter().filter(|(of, _)| of == server).map(|(_, uri)| uri.clone()).collect()
    }

    /// Notes that a list has changed; true if nobody is about to tell the client of it.
    pub(super) fn note_change(&self, method: &'static str) -> bool {
        self.wishes().changes.insert(method)
    }

    /// The client is told now.
    pub(super) fn change_told(&self, method: &'static str) {
        self.wishes().changes.remove(method);
    }
}
