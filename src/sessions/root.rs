//! The root of a session tree: one outside client, or the host's own turns.
//!
//! Invariant: every call has exactly one root, and a server that serves a root serves no other. Deliberately no servers in
//! here: the router keeps those, so that a new config can replace them.

use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use greenroom_boundary::{CancellationToken, RawJson};
use greenroom_wire::RpcError;
use serde_json::Value;

/// Names a root within its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootId(pub u64);

/// An outside client, as far as it can be asked and told something.
#[async_trait]
pub trait Client: Send + Sync {
    /// The capabilities of its `initialize`: `sampling`, `elicitation`, `roots`, …
    fn capabilities(&self) -> Value;

    /// Asks it (`sampling/createMessage`, `elicitation/create`, `roots/list`).
    async fn request(&self, method: &str, params: Option<RawJson>, cancel: &CancellationToken) -> Result<RawJson, RpcError>;

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
    client: RwLock<Option<Arc<dyn Client>>>,
}

impl RootSession {
    /// A root without a client.
    pub fn new(id: RootId) -> Arc<Self> {
        Arc::new(Self { id, ..Self::default() })
    }

    /// Who can be asked, once it has introduced itself.
    pub fn client(&self) -> Option<Arc<dyn Client>> {
        self.client.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Says who can be asked from now on.
    pub fn introduce(&self, client: Arc<dyn Client>) {
        *self.client.write().unwrap_or_else(PoisonError::into_inner) = Some(client);
    }
}
