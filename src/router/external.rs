//! An external server: one connection, opened when first needed and again after it broke.
//!
//! Invariant: a broken connection fails the calls under way and no later one. Late answers are dropped and traced.
//! Deliberately one connection per session tree: who may speak for whom never mixes.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared};
use greenroom_boundary::mcp::{Frame, McpError, McpTarget, ServerAddress};
use greenroom_boundary::trace::EventKind;
use greenroom_boundary::{CancellationToken, Drivers, RawJson, ServerName};
use greenroom_wire::{OnAnswer, Peer, PeerOptions, Progress, ProtocolVersion, RequestError, RequestId, RequestOptions};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::health::Health;
use super::raw::Written;
use super::readable::readable;
use super::under_way::UnderWay;
use super::upstream::Upstream;
use super::well_formed::well_formed;
use super::{Answered, CallContext, CallError, ListMethod, Offer, Output, Server, ServerRequest, ServerState};
use crate::host::HostState;
use crate::sessions::{self, News};

/// Deadline of the handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(30);

/// Called by the connection when a request leaves.
type OnSend = Box<dyn FnOnce(&RequestId, &Frame) + Send>;
/// A connection that is being opened, for everyone who waits for it.
type Opening = Shared<BoxFuture<'static, Result<Connection, CallError>>>;

/// An external server of the config.
pub struct ExternalServer {
    link: Arc<Link>,
    connection: Mutex<State>,
}

enum State {
    Down,
    Opening(Opening),
    Open(Connection),
}

/// How a server is reached, and what outlives its connections.
struct Link {
    name: ServerName,
    address: ServerAddress,
    version: ProtocolVersion,
    drivers: Drivers,
    host: Arc<HostState>,
    health: Arc<Health>,
    closing: CancellationToken,
    generation: Arc<AtomicU64>,
    open: Arc<AtomicUsize>,
    under_way: UnderWay,
    /// What the server said about its use when it was last connected.
    instructions: Mutex<Option<String>>,
}

#[derive(Clone)]
struct Connection {
    peer: Peer,
    capabilities: Arc<Value>,
}

impl ExternalServer {
    /// A server that is not connected yet. `host` knows whose hooks see its handshake.
    pub fn new(
        name: ServerName,
        address: ServerAddress,
        version: ProtocolVersion,
        drivers: Drivers,
        host: Arc<HostState>,
    ) -> Self {
        let link = Link {
            health: Arc::new(Health::new(name.clone(), drivers.clone())),
            name,
            address,
            version,
            drivers,
            host,
            closing: CancellationToken::new(),
            generation: Arc::default(),
            open: Arc::default(),
            under_way: UnderWay::default(),
            instructions: Mutex::default(),
        };
        Self { link: Arc::new(link), connection: Mutex::new(State::Down) }
    }

    fn current(&self) -> MutexGuard<'_, State> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection, opened if there is none. Whoever needs it meanwhile waits for the same one; whoever gives up leaves
    /// it to the next.
    async fn connection(&self, cx: &CallContext) -> Result<Connection, CallError> {
        let given_up = || CallError::Cancelled { server: self.link.name.to_string() };
        let opening = match &mut *self.current() {
            State::Open(connection) if !connection.peer.is_closed() => return Ok(connection.clone()),
            _ if cx.cancel.is_cancelled() => return Err(given_up()),
            _ if cx.connecting.contains(&self.link.name) => return Err(self.link.loops()),
            State::Opening(opening) => opening.clone(),
            state => {
                if self.link.closing.is_cancelled() {
                    return Err(self.link.shut());
                }
                self.link.health.may_start()?;
                let opening = self.link.clone().opened(cx).boxed().shared();
                *state = State::Opening(opening.clone());
                opening
            }
        };
        let opened = tokio::select! {
            biased;
            opened = opening.clone() => opened,
            () = cx.cancel.cancelled() => return Err(given_up()),
        };
        let mut state = self.current();
        if matches!(&*state, State::Opening(current) if current.ptr_eq(&opening)) {
            *state = opened.clone().map_or(State::Down, State::Open);
        }
        opened
    }

    async fn exchange(&self, cx: &CallContext, connection: &Connection, request: ServerRequest) -> Result<Output, CallError> {
        let ServerRequest { method, params, raw, limits, sent, answered } = request;
        let written = Written { value: &params, raw: raw.as_ref() };
        let written = serde_json::value::to_raw_value(&written)
            .map_err(|error| CallError::Inner { code: "CALL_ENCODE".to_owned(), message: error.to_string() })?;
        let progress = cx
            .progress
            .clone()
            .map(|sink| -> Box<dyn Fn(Progress) + Send + Sync> { Box::new(move |progress: Progress| sink(&progress.into())) });
        let on_send: OnSend = Box::new(move |_, _| sent());
        let options = RequestOptions {
            timeout: Some(limits.timeout),
            cap: Some(limits.cap),
            attach_progress_token: true,
            progress,
            cancel: cx.cancel.clone(),
            on_send: Some(on_send),
            on_answer: answered.map(|answered| on_answer(&self.link.name, &method, limits.timeout, answered)),
        };
        let _begun = self.link.under_way.begin(cx);
        let raw = connection.peer.request(&method, Some(written), options).await;
        let raw: RawJson = raw.map_err(|error| call_error(&self.link.name, &method, limits.timeout, error))?;
        // The bytes can be passed on all the same; hooks and models see `null` for what cannot be held.
        let (value, lossy) = readable(&raw).unwrap_or((Value::Null, true));
        if lossy {
            let body = json!({"method": method, "whole": value.is_null()});
            let event = EventKind::Warning { boundary: self.boundary(), method: "result_unreadable".to_owned(), body };
            self.link.drivers.tracer.emit(&cx.scope, cx.agent.as_ref(), event);
        }
        if !(lossy && value.is_null()) {
            well_formed(&self.boundary(), &method, &value)?;
        }
        Ok(Output { value, raw: Some(raw) })
    }
}

impl Link {
    /// Opens a connection on behalf of everyone who will use it, whatever becomes of the first caller.
    fn opened(self: Arc<Self>, cx: &CallContext) -> impl Future<Output = Result<Connection, CallError>> + Send + 'static {
        let mut cx = cx.clone();
        cx.cancel = self.closing.child_token();
        cx.hooks = Arc::default();
        cx.timeout = None;
        cx.progress = None;
        cx.tool_call = None;
        cx.connecting.push(self.name.clone());
        async move {
            let opened = self.open(&cx).await;
            if let Err(error) = &opened {
                self.health.failed(error);
            }
            opened
        }
    }

    async fn open(&self, cx: &CallContext) -> Result<Connection, CallError> {
        let host = self.host.current().ok_or_else(|| self.shut())?;
        let target = McpTarget { server: self.name.clone(), address: self.address.clone() };
        let duplex = tokio::select! {
            biased;
            () = self.closing.cancelled() => return Err(self.shut()),
            duplex = self.drivers.mcp.open(&target, &cx.cancel) => duplex?,
        };
        self.open.fetch_add(1, Ordering::SeqCst);
        let number = self.generation.fetch_add(1, Ordering::SeqCst) + 1;
        let handler = Arc::new(Upstream {
            boundary: format!("mcp.{}", self.name),
            drivers: self.drivers.clone(),
            generation: self.generation.clone(),
            open: self.open.clone(),
            health: self.health.clone(),
            number,
            server: self.name.clone(),
            root: cx.root.clone(),
            host: self.host.clone(),
            under_way: self.under_way.clone(),
            news: News::new(self.name.clone(), cx.root.clone()),
            asked: Mutex::default(),
        });
        let options = PeerOptions { clock: self.drivers.clock.clone(), name: self.name.to_string() };
        let peer = Peer::start(duplex, handler, options);
        let mut guard = Unfinished(Some(peer.clone()));
        let params = json!({
            "protocolVersion": self.version.as_str(),
            "capabilities": sessions::capabilities(&host, &cx.root),
            "clientInfo": {"name": "greenroom", "version": env!("CARGO_PKG_VERSION")},
            "_meta": {sessions::DEPTH_KEY: cx.root.depth().saturating_add(1)},
        });
        let mut cx = cx.clone();
        cx.timeout = Some(HANDSHAKE_TIMEOUT);
        let introduced = tokio::select! {
            biased;
            () = self.closing.cancelled() => Err(self.shut()),
            introduced = host.router.introduce(&cx, &self.name, &peer, params) => introduced,
        };
        guard.0 = None;
        match introduced {
            Ok(introduced) => {
                self.health.up(number);
                *self.instructions.lock().unwrap_or_else(PoisonError::into_inner) = introduced.instructions;
                Ok(Connection { peer, capabilities: Arc::new(introduced.capabilities) })
            }
            Err(error) => {
                peer.close().await;
                Err(error)
            }
        }
    }

    fn shut(&self) -> CallError {
        let message = "the host is shutting down".to_owned();
        CallError::Unavailable(McpError::Closed { server: self.name.to_string(), message })
    }

    fn loops(&self) -> CallError {
        let message =
            format!("server {} is needed to connect it: a hook on its handshake calls it; remove that call", self.name);
        CallError::Inner { code: "MCP_CONNECTING".to_owned(), message }
    }
}

/// Why a request to a server failed, for whoever called.
pub(super) fn call_error(server: &ServerName, method: &str, limit: Duration, error: RequestError) -> CallError {
    let server = server.to_string();
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

/// Tells of an answer when it arrives.
pub(super) fn on_answer(server: &ServerName, method: &str, limit: Duration, answered: Answered) -> OnAnswer {
    let (server, method) = (server.clone(), method.to_owned());
    Box::new(move |result| match result {
        Ok(raw) => answered(Ok(&readable(raw).map_or(Value::Null, |(value, _)| value))),
        Err(error) => answered(Err(&call_error(&server, &method, limit, error.clone()))),
    })
}

pub(super) fn value_of(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

#[async_trait]
impl Server for ExternalServer {
    fn boundary(&self) -> String {
        format!("mcp.{}", self.link.name)
    }

    async fn offer(&self, cx: &CallContext, list: ListMethod) -> Result<Offer, CallError> {
        let connection = self.connection(cx).await?;
        Ok(match connection.capabilities.get(list.capability()) {
            Some(_) => Offer::Kept(self.link.generation.load(Ordering::SeqCst)),
            None => Offer::Nothing,
        })
    }

    async fn request(&self, cx: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        let connection = self.connection(cx).await?;
        self.exchange(cx, &connection, request).await
    }

    fn instructions(&self) -> Option<String> {
        self.link.instructions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn offers(&self, capability: &str) -> bool {
        matches!(&*self.current(), State::Open(connection) if connection.capabilities.get(capability).is_some())
    }

    fn tell(&self, method: &str, params: Option<&RawValue>) {
        if let State::Open(connection) = &*self.current() {
            connection.peer.post(method, params);
        }
    }

    fn state(&self) -> ServerState {
        self.link.health.state()
    }

    fn listed(&self, outcome: Result<(), &CallError>) {
        match outcome {
            Ok(()) => self.link.health.well(),
            Err(error) => self.link.health.trouble(error.code(), &error.to_string()),
        }
    }

    fn open_connections(&self) -> usize {
        self.link.open.load(Ordering::SeqCst)
    }

    async fn close(&self) {
        self.link.health.retire();
        self.link.closing.cancel();
        let state = std::mem::replace(&mut *self.current(), State::Down);
        match state {
            State::Open(connection) => connection.peer.close().await,
            State::Opening(opening) => {
                if let Ok(connection) = opening.await {
                    connection.peer.close().await;
                }
            }
            State::Down => {}
        }
    }
}

/// A connection whose handshake is under way. If that is given up, nobody else knows of it, so it is closed.
struct Unfinished(Option<Peer>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(peer) = self.0.take() {
            tokio::spawn(async move { peer.close().await });
        }
    }
}
