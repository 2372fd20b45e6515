//! The client at the other end of a connection, as someone to ask and to tell.
//!
//! Invariant: a question ends with its token or with the connection. Deliberately no waiting for a stream: a client that has
//! none open fails the question at once.

use async_trait::async_trait;
use greenroom_boundary::{CancellationToken, RawJson};
use greenroom_wire::{Peer, RequestOptions, RpcError};
use serde_json::Value;

use crate::sessions::Client;

/// An outside client that has introduced itself.
pub(super) struct PeerClient {
    pub(super) peer: Peer,
    pub(super) boundary: String,
    pub(super) capabilities: Value,
}

#[async_trait]
impl Client for PeerClient {
    fn boundary(&self) -> String {
        self.boundary.clone()
    }

    fn capabilities(&self) -> Value {
        self.capabilities.clone()
    }

    async fn request(&self, method: &str, params: Option<RawJson>, cancel: &CancellationToken) -> Result<RawJson, RpcError> {
        let options = RequestOptions { cancel: cancel.clone(), ..RequestOptions::default() };
        self.peer.request(method, params, options).await.map_err(|error| error.to_rpc())
    }

    fn notify(&self, method: &str, params: Option<RawJson>) {
        self.peer.post(method, params.as_deref());
    }
}
