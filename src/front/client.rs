//! The client at the other end of a connection, as someone to ask and to tell.
//!
//! Invariant: a question ends with its token or with the connection. Deliberately no waiting for a stream: a client that has
//! none open fails the question at once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use greenroom_boundary::{CancellationToken, RawJson, Scope};
use greenroom_wire::http::server::Streams;
use greenroom_wire::{Peer, RequestId, RequestOptions, RpcError};
use serde_json::Value;

use crate::sessions::Client;

/// The requests of a client that are under way, by the name that the trace has for them.
pub(super) type UnderWay = Arc<Mutex<BTreeMap<String, RequestId>>>;

/// A request of a client that is under way until this is dropped.
pub(super) struct Begun {
    under_way: UnderWay,
    name: String,
}

impl Begun {
    pub(super) fn new(under_way: &UnderWay, name: &str, id: RequestId) -> Self {
        under_way.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), id);
        Self { under_way: under_way.clone(), name: name.to_owned() }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

/// An outside client that has introduced itself.
pub(super) struct PeerClient {
    pub(super) peer: Peer,
    pub(super) boundary: String,
    pub(super) capabilities: Value,
    pub(super) under_way: UnderWay,
    pub(super) streams: Streams,
}

impl PeerClient {
    /// The client's own request that a question comes from.
    fn cause(&self, scope: &Scope) -> Option<RequestId> {
        let under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let below = |name: &str| scope.as_str().strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        under_way.iter().find(|(name, _)| below(name)).map(|(_, id)| id.clone())
    }
}

#[async_trait]
impl Client for PeerClient {
    fn boundary(&self) -> String {
        self.boundary.clone()
    }

    fn capabilities(&self) -> Value {
        self.capabilities.clone()
    }

    async fn request(
        &self,
        method: &str,
        params: Option<RawJson>,
        scope: &Scope,
        cancel: &CancellationToken,
    ) -> Result<RawJson, RpcError> {
        let mut options = RequestOptions { cancel: cancel.clone(), ..RequestOptions::default() };
        if let Some(cause) = self.cause(scope) {
            let streams = self.streams.clone();
            options.on_send = Some(Box::new(move |question, _| streams.comes_from(question, &cause)));
        }
        self.peer.request(method, params, options).await.map_err(|error| error.to_rpc())
    }

    fn notify(&self, method: &str, params: Option<RawJson>) {
        self.peer.post(method, params.as_deref());
    }
}
