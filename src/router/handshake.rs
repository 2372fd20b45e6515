//! The handshake with an external server, as exchanges that its hooks see.
//!
//! Invariant: a server whose handshake a hook refuses is not connected. Deliberately the hooks of whoever calls do not count
//! as running: a connection serves everyone, so every hook on its handshake is asked.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use greenroom_boundary::mcp::McpError;
use greenroom_boundary::trace::EventKind;
use greenroom_boundary::{RawJson, ServerName};
use greenroom_wire::{HandshakeError, Peer, RequestOptions, ServerHello};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::external::{call_error, on_answer};
use super::slots::{Instance, Slot};
use super::{CallContext, CallError, Output, Router, Server, ServerRequest};
use crate::hooks::Message;

/// The method of the handshake.
pub(super) const HANDSHAKE: &str = "initialize";
/// Deadline of each request that follows a handshake.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(10);

/// What a server said of itself, after the hooks.
pub(super) struct Introduced {
    pub(super) capabilities: Value,
    pub(super) instructions: Option<String>,
}

/// A server that has not introduced itself yet.
struct Newcomer {
    boundary: String,
    name: ServerName,
    peer: Peer,
}

#[async_trait]
impl Server for Newcomer {
    fn boundary(&self) -> String {
        self.boundary.clone()
    }

    async fn request(&self, _: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        let params = to_raw_value(&*request.params).map_err(|error| encoding(&error))?;
        let limit = request.limits.timeout;
        let mut options = RequestOptions::within(limit);
        let sent = request.sent;
        options.on_send = Some(Box::new(move |_, _| sent()));
        options.on_answer = request.answered.map(|answered| on_answer(&self.name, &request.method, limit, answered));
        let raw = self.peer.request(&request.method, Some(params), options).await;
        let raw: RawJson = raw.map_err(|error| call_error(&self.name, &request.method, limit, error))?;
        Ok(Output { value: serde_json::from_str(raw.get()).unwrap_or_default(), raw: Some(raw) })
    }
}

impl Router {
    /// Shakes hands with the server called `name` over a connection that has just been opened.
    pub(super) async fn introduce(
        &self,
        cx: &CallContext,
        name: &ServerName,
        peer: &Peer,
        params: Value,
    ) -> Result<Introduced, CallError> {
        let slot = self.slot(name)?;
        let newcomer = Newcomer { boundary: format!("mcp.{name}"), name: name.clone(), peer: peer.clone() };
        let newcomer = Instance::of(Arc::new(newcomer));
        let message = Message::request(HANDSHAKE, params);
        let output = self.pass(cx, name, (slot, &newcomer), message, None).await.map_err(|error| failed(name, error))?;
        let raw = match output.raw {
            Some(raw) => raw,
            None => to_raw_value(&output.value).map_err(|error| encoding(&error))?,
        };
        let hello = ServerHello::parse(raw).map_err(|error| unusable(name, &error))?;
        let capabilities: Value = serde_json::from_str(hello.capabilities.get()).unwrap_or_default();
        peer.notify("notifications/initialized", None).await.map_err(|error| unusable(name, &HandshakeError::Lost(error)))?;
        self.restore(cx, name, (slot, &newcomer), &capabilities).await;
        Ok(Introduced { capabilities, instructions: hello.instructions })
    }

    /// Tells a server that has just been connected what the client of its session has asked for before.
    async fn restore(&self, cx: &CallContext, name: &ServerName, to: (&Slot, &Instance), capabilities: &Value) {
        let mut cx = cx.clone();
        cx.timeout = Some(RESTORE_TIMEOUT);
        let level = cx.root.log_level().filter(|_| capabilities.get("logging").is_some());
        let level = level.map(|level| ("logging/setLevel", json!({"level": level})));
        let subscribed = cx.root.subscriptions(name).into_iter().map(|uri| ("resources/subscribe", json!({"uri": uri})));
        for (method, params) in level.into_iter().chain(subscribed) {
            if let Err(error) = self.pass(&cx, name, to, Message::request(method, params), None).await {
                let body = json!({"method": method, "error": error.to_string()});
                let event = EventKind::Warning { boundary: to.1.boundary.clone(), method: "not_restored".to_owned(), body };
                self.drivers().tracer.emit(&cx.scope, cx.agent.as_ref(), event);
            }
        }
    }
}

/// What the trace has of the parameters: the version of this program would make every trace differ.
pub(super) fn told_params(method: &str, params: &Value) -> Value {
    match method {
        HANDSHAKE => json!({"protocolVersion": params.get("protocolVersion")}),
        _ => params.clone(),
    }
}

/// A refusal by a hook keeps its code; everything else means that the server cannot be reached.
fn failed(name: &ServerName, error: CallError) -> CallError {
    match error {
        CallError::Hook(_) | CallError::HookDepth { .. } | CallError::Cancelled { .. } => error,
        CallError::Rpc { error, .. } => unreachable(name, &error.to_string()),
        error => unreachable(name, &error.to_string()),
    }
}

fn unusable(name: &ServerName, error: &HandshakeError) -> CallError {
    unreachable(name, &error.to_string())
}

fn unreachable(name: &ServerName, why: &str) -> CallError {
    let message = format!("the handshake failed: {why}");
    CallError::Unavailable(McpError::Unreachable { server: name.to_string(), message })
}

fn encoding(error: &serde_json::Error) -> CallError {
    CallError::Inner { code: "CALL_ENCODE".to_owned(), message: error.to_string() }
}
