//! An external server: one connection, opened when first needed and again after it broke.
//!
//! Invariant: a broken connection fails the calls under way and no later one. Late answers are dropped and traced.
//! Deliberately one connection per session tree: who may speak for whom never mixes.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use greenroom_boundary::mcp::{Frame, McpError, McpTarget, ServerAddress};
use greenroom_boundary::trace::{EventKind, Outcome};
use greenroom_boundary::{CancellationToken, Drivers, RawJson, ServerName};
use greenroom_wire::{Peer, PeerOptions, Progress, ProtocolVersion, RequestError, RequestId, RequestOptions, client_handshake};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::health::Health;
use super::raw::Written;
use super::readable::readable;
use super::under_way::UnderWay;
use super::upstream::Upstream;
use super::{CallContext, CallError, Offer, OpenExchange, Output, Server, ServerRequest, ServerState};
use crate::hooks::Message as HookMessage;
use crate::host::HostCore;
use crate::sessions::{self, News};

/// Deadline of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);
/// Deadline of each request that follows a handshake.
const RESTORE_TIMEOUT: Duration = Duration::from_secs(10);
/// How far progress may extend a call, as a multiple of its deadline.
const CAP_FACTOR: u32 = 4;

/// Called by the connection when a request leaves.
type OnSend = Box<dyn FnOnce(&RequestId, &Frame) + Send>;

/// An external server of the config.
pub struct ExternalServer {
    name: ServerName,
    address: ServerAddress,
    version: ProtocolVersion,
    tool_timeout: Duration,
    tool_timeout_cap: Option<Duration>,
    drivers: Drivers,
    connection: Mutex<Option<Connection>>,
    /// How many handshakes ran into their deadline, and what the last one said.
    silent: std::sync::Mutex<(u64, Option<CallError>)>,
    closing: CancellationToken,
    generation: Arc<AtomicU64>,
    open: Arc<AtomicUsize>,
    /// Who answers what the server asks.
    host: Weak<HostCore>,
    under_way: UnderWay,
    health: Arc<Health>,
    /// What the server said about its use when it was last connected.
    instructions: std::sync::Mutex<Option<String>>,
}

#[derive(Clone)]
struct Connection {
    peer: Peer,
    capabilities: Value,
}

impl ExternalServer {
    /// A server that is not connected yet.
    pub fn new(
        name: ServerName,
        address: ServerAddress,
        version: ProtocolVersion,
        tool_timeout: Duration,
        drivers: Drivers,
    ) -> Self {
        Self {
            health: Arc::new(Health::new(name.clone(), drivers.clone())),
            name,
            address,
            version,
            tool_timeout,
            tool_timeout_cap: None,
            drivers,
            connection: Mutex::new(None),
            silent: std::sync::Mutex::default(),
            closing: CancellationToken::new(),
            generation: Arc::default(),
            open: Arc::default(),
            host: Weak::new(),
            under_way: UnderWay::default(),
            instructions: std::sync::Mutex::default(),
        }
    }

    /// The same, with a cap on how far progress extends a call.
    #[must_use]
    pub fn capped(self, tool_timeout_cap: Option<Duration>) -> Self {
        Self { tool_timeout_cap, ..self }
    }

    /// The same, with a host that answers what it asks.
    #[must_use]
    pub fn of(self, host: Weak<HostCore>) -> Self {
        Self { host, ..self }
    }

    async fn connection(&self, cx: &CallContext) -> Result<Connection, CallError> {
        let silent_before = self.silent().0;
        let mut slot = self.connection.lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| !connection.peer.is_closed()) {
            return Ok(connection.clone());
        }
        if self.closing.is_cancelled() {
            return Err(self.shut());
        }
        // Callers that waited for a handshake that nobody answered would else wait out the deadline one after another.
        if let (times, Some(error)) = &*self.silent()
            && *times > silent_before
        {
            return Err(error.clone());
        }
        self.health.may_start()?;
        let target = McpTarget { server: self.name.clone(), address: self.address.clone() };
        let opened = self.drivers.mcp.open(&target, &cx.cancel).await;
        let duplex = opened.map_err(CallError::from).inspect_err(|error| self.health.failed(error))?;
        let handler = Arc::new(Upstream {
            boundary: self.boundary(),
            drivers: self.drivers.clone(),
            generation: self.generation.clone(),
            open: self.open.clone(),
            server: self.name.clone(),
            root: cx.root.clone(),
            host: self.host.clone(),
            under_way: self.under_way.clone(),
            news: News::new(self.name.clone(), cx.root.clone()),
            health: self.health.clone(),
        });
        self.open.fetch_add(1, Ordering::SeqCst);
        self.generation.fetch_add(1, Ordering::SeqCst);
        let options = PeerOptions { clock: self.drivers.clock.clone(), name: self.name.to_string() };
        let peer = Peer::start(duplex, handler, options);
        let mut guard = Unfinished(Some(peer.clone()));
        let begun = self.drivers.clock.now();
        let shaken = tokio::select! {
            biased;
            () = self.closing.cancelled() => Err(self.shut()),
            shaken = self.handshake(cx, &peer) => shaken,
        };
        match shaken {
            Ok(capabilities) => {
                guard.0 = None;
                self.health.up();
                let connection = Connection { peer, capabilities };
                self.restore(cx, &connection).await;
                *slot = Some(connection.clone());
                Ok(connection)
            }
            Err(error) => {
                guard.0 = None;
                peer.close().await;
                self.health.failed(&error);
                if self.drivers.clock.now() >= begun.after(HANDSHAKE_TIMEOUT) {
                    let mut silent = self.silent();
                    *silent = (silent.0 + 1, Some(error.clone()));
                }
                Err(error)
            }
        }
    }

    /// Tells a server that has just been connected what the client of its session has asked for before.
    async fn restore(&self, cx: &CallContext, connection: &Connection) {
        let mut cx = cx.clone();
        cx.timeout = Some(RESTORE_TIMEOUT);
        let level = cx.root.log_level().filter(|_| connection.capabilities.get("logging").is_some());
        let level = level.map(|level| ("logging/setLevel", json!({"level": level})));
        let subscribed = cx.root.subscriptions(&self.name).into_iter().map(|uri| ("resources/subscribe", json!({"uri": uri})));
        for (method, params) in level.into_iter().chain(subscribed) {
            if let Err(error) = self.own_request(&cx, connection, method, &params).await {
                self.warn(&cx, "not_restored", json!({"method": method, "error": error.to_string()}));
            }
        }
    }

    fn silent(&self) -> std::sync::MutexGuard<'_, (u64, Option<CallError>)> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shut(&self) -> CallError {
        let message = "the host is shutting down".to_owned();
        CallError::Unavailable(McpError::Closed { server: self.name.to_string(), message })
    }

    /// The handshake, past the server's hooks on `initialize`. Gives the server's capabilities.
    async fn handshake(&self, cx: &CallContext, peer: &Peer) -> Result<Value, CallError> {
        let info = json!({"name": "greenroom", "version": env!("CARGO_PKG_VERSION")});
        let host = self.host.upgrade();
        let nothing = || json!({"roots": {"listChanged": false}});
        let capabilities = host.as_ref().map_or_else(nothing, |host| sessions::capabilities(host, &cx.root));
        let params = json!({"protocolVersion": self.version.as_str(), "capabilities": capabilities, "clientInfo": info});
        let message = HookMessage::request("initialize", params);
        let shake = async |message: HookMessage| self.shake(cx, peer, &message.params).await.map(Output::from);
        let hello = match host {
            Some(host) => host.router.question(cx, &self.name, message, shake).await?.value,
            None => shake(message).await?.value,
        };
        let instructions = hello.get("instructions").and_then(Value::as_str).map(str::to_owned);
        *self.instructions.lock().unwrap_or_else(PoisonError::into_inner) = instructions;
        Ok(hello.get("capabilities").cloned().unwrap_or_default())
    }

    /// Shakes hands with these parameters of `initialize`. Gives the whole result.
    async fn shake(&self, cx: &CallContext, peer: &Peer, params: &Value) -> Result<Value, CallError> {
        let asked = params["protocolVersion"].as_str().unwrap_or_default();
        let version = asked.parse().map_err(|_| CallError::Inner {
            code: "HOOK_MALFORMED".to_owned(),
            message: format!("a hook asks {} for the protocol revision {asked:?}, which this host does not speak", self.name),
        })?;
        let tracer = self.drivers.tracer.clone();
        let (span, scope, agent) = (tracer.span(), cx.scope.clone(), cx.agent.clone());
        let boundary = self.boundary();
        let request = EventKind::Request {
            span,
            parent: cx.parent,
            boundary: boundary.clone(),
            method: "initialize".to_owned(),
            tool_call: None,
            body: json!({"params": {"protocolVersion": asked}}),
        };
        let mut options = RequestOptions::within(HANDSHAKE_TIMEOUT);
        let left = Arc::new(AtomicBool::new(false));
        let open = OpenExchange {
            tracer: tracer.clone(),
            scope: scope.clone(),
            agent: agent.clone(),
            span,
            boundary,
            method: "initialize".to_owned(),
            left: left.clone(),
        };
        options.on_send = Some(Box::new(move |_, _| {
            left.store(true, Ordering::SeqCst);
            tracer.emit(&scope, agent.as_ref(), request);
        }));
        let result = client_handshake(peer, &params["clientInfo"], &params["capabilities"], version, options).await;
        match &result {
            Ok(server) => open.close(Outcome::Ok, || json!({"result": value_of(&server.raw)}), None),
            Err(error) => {
                let body = || json!({"error": {"code": error.code(), "message": error.to_string()}});
                open.close(Outcome::Error, body, None);
            }
        }
        match result {
            Ok(server) => Ok(value_of(&server.raw)),
            Err(error) => Err(CallError::Unavailable(McpError::Unreachable {
                server: self.name.to_string(),
                message: format!("the handshake failed: {error}"),
            })),
        }
    }

    fn call_error(&self, method: &str, limit: Duration, error: RequestError) -> CallError {
        let server = self.name.to_string();
        match error {
            RequestError::Rpc(error) => CallError::Rpc { server, error },
            RequestError::Timeout => CallError::Timeout {
                server,
                method: method.to_owned(),
                limit_ms: u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
            },
            RequestError::Cancelled => CallError::Cancelled { server },
            RequestError::Closed(error) => CallError::Unavailable(error),
            other => CallError::Inner { code: other.code().to_owned(), message: format!("{server}: {other}") },
        }
    }

    /// A request of the host's own, traced as an exchange.
    async fn own_request(
        &self,
        cx: &CallContext,
        connection: &Connection,
        method: &str,
        params: &Value,
    ) -> Result<Output, CallError> {
        let (tracer, span, left) = (self.drivers.tracer.clone(), self.drivers.tracer.span(), Arc::new(AtomicBool::new(false)));
        let request = EventKind::Request {
            span,
            parent: cx.parent,
            boundary: self.boundary(),
            method: method.to_owned(),
            tool_call: None,
            body: json!({"params": params}),
        };
        let open = OpenExchange {
            tracer: tracer.clone(),
            scope: cx.scope.clone(),
            agent: cx.agent.clone(),
            span,
            boundary: self.boundary(),
            method: method.to_owned(),
            left: left.clone(),
        };
        let (scope, agent) = (cx.scope.clone(), cx.agent.clone());
        let sent: super::Sent = Box::new(move || {
            left.store(true, Ordering::SeqCst);
            tracer.emit(&scope, agent.as_ref(), request);
        });
        let result = self.exchange(cx, connection, method, &Written { value: params, raw: None }, Some(sent)).await;
        match &result {
            Ok(output) => open.close(Outcome::Ok, || json!({"result": output.value}), None),
            Err(error) => open.close(super::call::outcome_of(error), || json!({"error": error.to_rpc()}), None),
        }
        result
    }

    async fn exchange(
        &self,
        cx: &CallContext,
        connection: &Connection,
        method: &str,
        params: &Written<'_>,
        sent: Option<super::Sent>,
    ) -> Result<Output, CallError> {
        let limit = cx.timeout.unwrap_or(self.tool_timeout);
        let cap = self.tool_timeout_cap.unwrap_or_else(|| limit.saturating_mul(CAP_FACTOR));
        let limit = limit.min(cap);
        let params = serde_json::value::to_raw_value(params)
            .map_err(|error| CallError::Inner { code: "CALL_ENCODE".to_owned(), message: error.to_string() })?;
        let progress = cx.progress.clone().map(|sink| -> Box<dyn Fn(Progress) + Send + Sync> {
            Box::new(move |progress: Progress| sink(progress.progress, progress.total, progress.message.as_deref(), None))
        });
        let options = RequestOptions {
            timeout: Some(limit),
            cap: Some(cap),
            attach_progress_token: true,
            progress,
            cancel: cx.cancel.clone(),
            on_send: sent.map(|sent| -> OnSend { Box::new(move |_, _| sent()) }),
        };
        let _begun = self.under_way.begin(cx);
        let raw: RawJson = connection
            .peer
            .request(method, Some(params), options)
            .await
            .map_err(|error| self.call_error(method, limit, error))?;
        // The bytes can be passed on all the same; hooks and models see `null` for what cannot be held.
        let (value, lossy) = readable(&raw).unwrap_or((Value::Null, true));
        if lossy {
            self.warn(cx, "result_unreadable", json!({"method": method, "whole": value.is_null()}));
        }
        Ok(Output { value, raw: Some(raw) })
    }

    fn warn(&self, cx: &CallContext, code: &str, body: Value) {
        let event = EventKind::Warning { boundary: self.boundary(), method: code.to_owned(), body };
        self.drivers.tracer.emit(&cx.scope, cx.agent.as_ref(), event);
    }
}

pub(super) fn value_of(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

#[async_trait]
impl Server for ExternalServer {
    fn boundary(&self) -> String {
        format!("mcp.{}", self.name)
    }

    async fn offer(&self, cx: &CallContext, capability: &str) -> Result<Offer, CallError> {
        let connection = self.connection(cx).await?;
        Ok(match connection.capabilities.get(capability) {
            Some(_) => Offer::Kept(self.generation.load(Ordering::SeqCst)),
            None => Offer::Nothing,
        })
    }

    async fn request(&self, cx: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        let connection = self.connection(cx).await?;
        let params = Written { value: &request.params, raw: request.raw.as_ref() };
        self.exchange(cx, &connection, &request.method, &params, Some(request.sent)).await
    }

    fn instructions(&self) -> Option<String> {
        self.instructions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn open_connections(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    fn offers(&self, capability: &str) -> bool {
        let connection = self.connection.try_lock().ok();
        connection.is_some_and(|slot| slot.as_ref().is_some_and(|open| open.capabilities.get(capability).is_some()))
    }

    fn tell(&self, method: &str, params: Option<&RawValue>) {
        if let Ok(slot) = self.connection.try_lock()
            && let Some(connection) = slot.as_ref()
        {
            connection.peer.post(method, params);
        }
    }

    fn state(&self) -> ServerState {
        self.health.state()
    }

    async fn close(&self) {
        self.health.retire();
        self.closing.cancel();
        if let Some(connection) = self.connection.lock().await.take() {
            connection.peer.close().await;
        }
    }
}

/// A connection whose handshake is under way. If its caller gives up, nobody else knows of it, so it is closed.
struct Unfinished(Option<Peer>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(peer) = self.0.take() {
            tokio::spawn(async move { peer.close().await });
        }
    }
}
