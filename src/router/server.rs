//! What a server is to the router, whatever stands behind it.
//!
//! Invariant: `sent` is called exactly once, when the request really leaves, and never if it does not. Deliberately no
//! hooks and no overrides here: the router applies them to every server alike.

use std::borrow::Cow;
use std::time::Duration;

use async_trait::async_trait;
use greenroom_boundary::RawJson;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{CallContext, CallError, ListMethod, Offer, Params, RawParams, ServerState};

/// A result: its value, and the text that came if nothing changed it.
#[derive(Clone, Debug)]
pub struct Output {
    /// The result.
    pub value: Value,
    /// Its bytes as they came from the wire, but for what hooks changed.
    pub raw: Option<RawJson>,
}

impl From<Value> for Output {
    fn from(value: Value) -> Self {
        Self { value, raw: None }
    }
}

/// Called when the request leaves.
pub type Sent = Box<dyn FnOnce() + Send>;

/// Called when the answer arrives, before anything else that the server says is looked at.
pub type Answered = Box<dyn FnOnce(Result<&Value, &CallError>) + Send>;

/// A request to a server.
pub struct ServerRequest {
    /// `tools/call`, `prompts/get`, `resources/read`, …
    pub method: Cow<'static, str>,
    /// Its parameters.
    pub params: Params,
    /// The caller's own bytes of them, for what was not changed.
    pub raw: Option<RawParams>,
    /// How long it may take, for servers that are waited for.
    pub limits: CallLimits,
    /// Call it when the request leaves.
    pub sent: Sent,
    /// For servers whose answers wait for the caller to wake: call it when the answer arrives. `None` if nobody listens.
    pub answered: Option<Answered>,
}

/// How long a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLimits {
    /// Longest wait for the answer, or for the next step of progress.
    pub timeout: Duration,
    /// Longest wait in all.
    pub cap: Duration,
}

/// A server: external, built in, a script or an agent.
#[async_trait]
pub trait Server: Send + Sync {
    /// Its boundary in the trace: `mcp.NAME`, `server.NAME` or `agent.NAME`.
    fn boundary(&self) -> String;

    /// What it says before a list is asked for; it is connected by then.
    async fn offer(&self, cx: &CallContext, list: ListMethod) -> Result<Offer, CallError> {
        let _ = (cx, list);
        Ok(Offer::Fresh)
    }

    /// Answers one request. A list method ([`ListMethod`]) is answered with one page.
    async fn request(&self, cx: &CallContext, request: ServerRequest) -> Result<Output, CallError>;

    /// How it is doing.
    fn state(&self) -> ServerState {
        ServerState::Ready
    }

    /// Hears whether a list of it came in time.
    fn listed(&self, outcome: Result<(), &CallError>) {
        let _ = outcome;
    }

    /// What it said about its use when it was last connected.
    fn instructions(&self) -> Option<String> {
        None
    }

    /// Connections that are open now.
    fn open_connections(&self) -> usize {
        0
    }

    /// Whether it is connected and has said that it has a capability.
    fn offers(&self, capability: &str) -> bool {
        let _ = capability;
        false
    }

    /// Tells it something, if it is connected.
    fn tell(&self, method: &str, params: Option<&RawValue>) {
        let _ = (method, params);
    }

    /// Frees what it holds.
    async fn close(&self) {}
}
