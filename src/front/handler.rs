//! One connection of an outside client.
//!
//! Invariant: every request gets one answer; progress of a call grows. Deliberately no state beyond the session.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use greenroom_boundary::mcp::{Frame, FrameDuplex};
use greenroom_boundary::trace::{Direction, EventKind, Outcome};
use greenroom_boundary::{CancellationToken, RawJson, Scope, ServerName, Tracer};
use greenroom_wire::http::server::Streams;
use greenroom_wire::{
    ClientHello, IncomingRequest, Message, Peer, PeerHandler, PeerOptions, RpcError, negotiate, server_hello,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value, json};

use super::Catalogue;
use super::catalogue::{Owner, PROMPTS, TOOLS, Unowned, external_servers, resource_servers};
use super::client::{Begun, PeerClient, UnderWay};
use super::introduction::{Introducing, Introduction};
use crate::agents::{TurnTree, VIA_KEY};
use crate::config::InstructionSource;
use crate::context::{self, OutputStream};
use crate::host::{Host, HostCore};
use crate::router::{CallContext, CallError, ProgressSink, RawParams};
use crate::sessions::{RootSession, enter_depth};

/// Serves one outside client until its connection ends. Traces call it `s1`, `s2`, …: its session id is a secret.
pub async fn serve(host: &Host, duplex: FrameDuplex) {
    serve_as(host, duplex, Arrival::default()).await;
}

/// How a client comes to the host.
#[derive(Clone, Debug, Default)]
pub struct Arrival {
    /// What traces call its session, if not `s1`, `s2`, …
    pub name: Option<String>,
    /// Its streams, if its transport has several.
    pub streams: Streams,
    /// Where it found the host, if that has an address.
    pub address: Option<String>,
}

/// Like [`serve`], for a client of which more is known.
pub async fn serve_as(host: &Host, duplex: FrameDuplex, arrival: Arrival) {
    let core = host.core();
    let root = core.begin_session();
    arrival.address.into_iter().for_each(|address| root.set_address(address));
    let session_id = arrival.name.unwrap_or_else(|| format!("s{}", root.id.0));
    let options = PeerOptions { clock: core.drivers.clock.clone(), name: format!("client {session_id}") };
    let handler = Arc::new(Connection {
        host: host.clone(),
        root: root.clone(),
        session_id: session_id.clone(),
        streams: arrival.streams,
        under_way: UnderWay::default(),
        introduction: Introduction::default(),
    });
    let peer = Peer::serve(duplex, handler, options);
    peer.closed().await;
    host.end_session(&root, &session_id).await;
}

/// How progress is told.
pub(crate) const PROGRESS: &str = "notifications/progress";
/// Key in the initialize result's `_meta`: `publish.introduction`.
const INTRODUCTION_KEY: &str = "greenroom/introduction";

/// A request of an outside client, without its transport.
pub struct OutsideCall {
    /// Names it in the trace: `session/request id`.
    pub id: String,
    /// The client's session tree.
    pub root: Arc<RootSession>,
    /// The name of the client's session.
    pub session: String,
    /// `tools/call`, …
    pub method: String,
    /// Its parameters.
    pub params: Value,
    /// The client's own bytes of them.
    pub raw: Option<RawParams>,
    /// Ends it.
    pub cancel: CancellationToken,
    /// Where the client wants progress to go, and the token by which it will know it; that is already out of `params`.
    pub progress: Option<(Value, ProgressSink)>,
}

/// Answers a request of an outside client; the trace has it as a stimulus.
pub async fn answer(host: &Host, call: OutsideCall) -> Result<RawJson, RpcError> {
    let (core, _in_use) = host.enter();
    let (tracer, scope) = (core.drivers.tracer.clone(), Scope::new(call.id.clone()));
    let mut body = json!({"session": call.session, "params": call.params});
    if let Some((token, _)) = &call.progress {
        body["progressToken"] = token.clone();
    }
    tracer.emit(&scope, None, EventKind::Stimulus { id: call.id.clone(), method: call.method.clone(), body });
    let id = call.id.clone();
    let entered = match call.method.as_str() {
        "initialize" => enter_depth(&call.root, &call.params),
        _ => Ok(()),
    };
    let result = match entered {
        Ok(()) => super::hooked::answer(Front { core, call }).await,
        Err(error) => Err(error),
    };
    if tracer.enabled() {
        let (outcome, body) = match &result {
            Ok(raw) => (Outcome::Ok, json!({"result": serde_json::from_str::<Value>(raw.get()).unwrap_or_default()})),
            Err(error) if error.code == RpcError::CANCELLED => (Outcome::Cancelled, json!({"error": error})),
            Err(error) => (Outcome::Error, json!({"error": error})),
        };
        tracer.emit(&scope, None, EventKind::StimulusEnd { id, outcome, body });
    }
    result
}

struct Connection {
    host: Host,
    root: Arc<RootSession>,
    session_id: String,
    streams: Streams,
    under_way: UnderWay,
    introduction: Introduction,
}

pub(super) struct Front {
    pub(super) core: Arc<HostCore>,
    pub(super) call: OutsideCall,
}

pub(super) fn encode(value: &impl serde::Serialize) -> Result<RawJson, RpcError> {
    to_raw_value(value).map_err(|error| RpcError::internal(error.to_string()))
}

impl Front {
    pub(super) fn context(&self) -> CallContext {
        let tree = TurnTree::new(OutputStream::new(self.core.drivers.tracer.clone(), None));
        let scope = Scope::new(self.call.id.clone());
        let session = self.core.session(&self.call.session);
        let mut cx = CallContext::new(scope, self.call.root.clone(), session, tree, self.call.cancel.clone());
        cx.progress = self.call.progress.as_ref().map(|(_, sink)| sink.clone());
        cx
    }

    pub(super) async fn dispatch(&self) -> Result<RawJson, RpcError> {
        match self.call.method.as_str() {
            "initialize" => self.initialize().await,
            "tools/list" => self.list_tools().await,
            "tools/call" => self.call_tool().await,
            "prompts/list" => self.list_prompts().await,
            "prompts/get" => self.get_prompt().await,
            "resources/list" => self.list_resources("resources").await,
            "resources/templates/list" => self.list_resources("resourceTemplates").await,
            "resources/read" => self.read_resource().await,
            "resources/subscribe" => self.subscribe(true).await,
            "resources/unsubscribe" => self.subscribe(false).await,
            "completion/complete" => self.complete().await,
            "logging/setLevel" => self.set_log_level().await,
            method => Err(RpcError::method_not_found(method)),
        }
    }

    /// An error as the client gets it: codes go out, internals to the log; what a server said may hold a secret of the config.
    pub(super) fn rpc(&self, error: &CallError) -> RpcError {
        let mut rpc = error.to_rpc();
        if matches!(error, CallError::Unavailable(_) | CallError::Inner { .. }) {
            let told = self.core.drivers.credentials.mask(&rpc.message);
            tracing::warn!(call = self.call.id, code = error.code(), "{told}");
            rpc.message = format!("the call failed inside the host ({}); its log says why", error.code());
        }
        rpc.message = self.core.drivers.credentials.mask(&rpc.message);
        rpc
    }

    async fn initialize(&self) -> Result<RawJson, RpcError> {
        let params = encode(&self.call.params)?;
        let hello = ClientHello::parse(Some(&params)).map_err(|error| RpcError::invalid_params(error.to_string()))?;
        let publish = &self.core.config.publish;
        let info = json!({
            "name": publish.name.as_deref().unwrap_or("greenroom"),
            "version": publish.version.as_deref().unwrap_or(env!("CARGO_PKG_VERSION")),
        });
        let mut capabilities = json!({"tools": {"listChanged": true}});
        if !external_servers(&self.core).is_empty() {
            capabilities["logging"] = json!({});
        }
        if !self.core.config.prompts.is_empty() || !publish.prompts.entries().is_empty() {
            capabilities["prompts"] = json!({"listChanged": true});
            capabilities["completions"] = json!({});
        }
        if !self.resource_servers().is_empty() {
            capabilities["resources"] = json!({"subscribe": true, "listChanged": true});
            capabilities["completions"] = json!({});
        }
        let instructions = self.text(self.core.config.publish_texts.instructions.as_ref()).await?;
        let hello = server_hello(negotiate(&hello.requested_version), &info, &capabilities, instructions.as_deref())
            .map_err(|error| RpcError::internal(error.to_string()))?;
        let Some(text) = self.text(self.core.config.publish_texts.introduction.as_ref()).await? else { return Ok(hello) };
        let mut hello: Value = serde_json::from_str(hello.get()).map_err(|error| RpcError::internal(error.to_string()))?;
        hello["_meta"] = json!({INTRODUCTION_KEY: text});
        encode(&hello)
    }

    /// A text of `publish`, made for this client.
    async fn text(&self, source: Option<&InstructionSource>) -> Result<Option<String>, RpcError> {
        let Some(source) = source else { return Ok(None) };
        let made = context::instructions(&self.core, &self.context(), source).await;
        made.map(Some).map_err(|error| self.rpc(&error.into()))
    }

    pub(super) fn resource_servers(&self) -> Vec<ServerName> {
        resource_servers(&self.core).into_iter().map(ServerName::new).collect()
    }

    async fn call_tool(&self) -> Result<RawJson, RpcError> {
        let params = &self.call.params;
        let name = params["name"].as_str().ok_or_else(|| RpcError::invalid_params("`name` is missing or no string"))?;
        let mut forwarded = params.clone();
        match params.get("arguments") {
            None | Some(Value::Null) => forwarded["arguments"] = json!({}),
            Some(Value::Object(_)) => {}
            Some(_) => return Err(RpcError::invalid_params("`arguments` must be an object")),
        }
        if let Some(Value::Object(meta)) = forwarded.get_mut("_meta") {
            // Only the host itself may say how work went from agent to agent.
            meta.shift_remove(VIA_KEY);
        }
        if forwarded.get("_meta").is_some_and(|meta| meta.as_object().is_none_or(Map::is_empty)) {
            forwarded.as_object_mut().and_then(|params| params.shift_remove("_meta"));
        }
        let cx = self.context();
        let (server, tool) = self.owner(&cx, TOOLS, name).await?;
        let output = self.core.router.forward(&cx, &server, &tool, forwarded, self.call.raw.clone()).await;
        let output = output.map_err(|error| self.rpc(&error))?;
        match output.raw {
            Some(raw) => Ok(raw),
            None => encode(&output.value),
        }
    }

    async fn list_tools(&self) -> Result<RawJson, RpcError> {
        let cx = self.context();
        let catalogue = Catalogue::collect(&self.core, &cx).await;
        encode(&json!({"tools": catalogue.show(&self.core, &cx, TOOLS)}))
    }

    /// The server behind a tool's or prompt's name.
    pub(super) async fn owner(&self, cx: &CallContext, list: &str, name: &str) -> Result<Owner, RpcError> {
        let kind = if list == PROMPTS { "prompt" } else { "tool" };
        Catalogue::owner(&self.core, cx, list, name).await.map_err(|unowned| match unowned {
            Unowned::Failed(error) => self.rpc(&error),
            Unowned::Unknown { nearest } => {
                let hint = nearest.map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default();
                RpcError::invalid_params(format!("unknown {kind}: {name}{hint}"))
            }
        })
    }

    async fn list_prompts(&self) -> Result<RawJson, RpcError> {
        let cx = self.context();
        let catalogue = Catalogue::prompts(&self.core, &cx).await;
        encode(&json!({"prompts": catalogue.show(&self.core, &cx, PROMPTS)}))
    }

    async fn get_prompt(&self) -> Result<RawJson, RpcError> {
        let params = &self.call.params;
        let name = params["name"].as_str().ok_or_else(|| RpcError::invalid_params("`name` is missing or no string"))?;
        let mut forwarded = params.clone();
        if !forwarded.get("arguments").is_some_and(Value::is_object) {
            forwarded["arguments"] = json!({});
        }
        let cx = self.context();
        let (server, prompt) = self.owner(&cx, PROMPTS, name).await?;
        let output = self.core.router.get_prompt(&cx, &server, &prompt, forwarded, self.call.raw.clone()).await;
        let output = output.map_err(|error| self.rpc(&error))?;
        output.raw.map_or_else(|| encode(&output.value), Ok)
    }
}

/// Progress notifications for a client's token; values always grow.
pub(crate) fn progress(token: Value, tell: impl Fn(Value) + Send + Sync + 'static) -> ProgressSink {
    let last = Mutex::new(None::<f64>);
    Arc::new(move |step| {
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        let least = if step.total.is_some() { 0.01 } else { 1.0 };
        let told = match *last {
            Some(last) if step.progress <= last => last + least,
            _ => step.progress,
        };
        *last = Some(told);
        let mut params = json!({"progressToken": token, "progress": told});
        for (key, value) in [("total", step.total.map(Value::from)), ("message", step.message.clone().map(Value::from))] {
            if let Some(value) = value {
                params[key] = value;
            }
        }
        for (key, value) in &step.further {
            params[key.as_str()] = value.clone();
        }
        tell(params);
    })
}

fn posts(peer: Peer) -> impl Fn(Value) + Send + Sync {
    move |params| {
        if let Ok(params) = to_raw_value(&params) {
            peer.post(PROGRESS, Some(&params));
        }
    }
}

/// Takes what an outside client tells: it asks for nothing, so there is no answer.
pub fn told(host: &Host, root: &Arc<RootSession>, session: &str, method: &str, params: Option<&RawValue>) {
    if method == "notifications/initialized" {
        // It asks for nothing and changes nothing here; a replay gives requests alone.
        return;
    }
    let core = host.core();
    if core.drivers.tracer.enabled() {
        let params = params.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        note(&core.drivers.tracer, session, method, Direction::In, params);
    }
    if method == "notifications/roots/list_changed" {
        let (root, method, params) = (root.clone(), method.to_owned(), params.map(RawValue::to_owned));
        tokio::spawn(async move { core.router.tell(&root, &method, params.as_deref()).await });
    }
}

/// The boundary of the client of a session, as traces call it.
pub(crate) fn boundary(session: &str) -> String {
    format!("client.{session}")
}

/// Traces what a client told, or was told.
pub(crate) fn note(tracer: &Tracer, session: &str, method: &str, direction: Direction, params: Option<Value>) {
    let (boundary, method, body) = (boundary(session), method.to_owned(), json!({"params": params}));
    tracer.emit(&Scope::new(session), None, EventKind::Notification { boundary, method, direction, body });
}

#[async_trait]
impl PeerHandler for Connection {
    async fn request(&self, request: IncomingRequest) -> Result<RawJson, RpcError> {
        let is_hello = request.method == "initialize";
        let hello = is_hello.then(|| self.introduction.guard());
        if !is_hello {
            let needed = !self.host.core().config.host_hooks.session.is_empty();
            self.introduction.wait(needed, &request.cancel).await?;
        }
        let mut params: Value = match &request.params {
            Some(raw) => serde_json::from_str(raw.get()).map_err(|error| RpcError::invalid_params(error.to_string()))?,
            None => Value::Null,
        };
        let token = match params.get_mut("_meta") {
            Some(Value::Object(meta)) => meta.shift_remove("progressToken").filter(|token| !token.is_null()),
            _ => None,
        };
        let peer = request.peer.clone();
        let capabilities = params.get("capabilities").filter(|_| is_hello).cloned().unwrap_or_default();
        let name = format!("{}/{}", self.session_id, request.id);
        let _under_way = Begun::new(&self.under_way, &name, request.id);
        let call = OutsideCall {
            id: name,
            root: self.root.clone(),
            session: self.session_id.clone(),
            method: request.method,
            params,
            raw: request.params.as_ref().and_then(RawParams::read),
            cancel: request.cancel,
            progress: token.map(|token| (token.clone(), progress(token, posts(request.peer)))),
        };
        let answered = answer(&self.host, call).await;
        if is_hello && answered.is_ok() {
            let (under_way, streams) = (self.under_way.clone(), self.streams.clone());
            self.root.introduce(Arc::new(PeerClient {
                peer,
                boundary: boundary(&self.session_id),
                capabilities,
                under_way,
                streams,
            }));
            hello.into_iter().for_each(Introducing::succeed);
        }
        answered
    }

    fn arrived(&self, request: &IncomingRequest) {
        if request.method == "initialize" {
            self.introduction.begin();
        }
    }

    fn flooded(&self, dropped: usize) {
        let core = self.host.core();
        let (boundary, body) = (boundary(&self.session_id), json!({"dropped": dropped}));
        let event = EventKind::Warning { boundary, method: "notifications_flooded".to_owned(), body };
        core.drivers.tracer.emit(&Scope::new(self.session_id.clone()), None, event);
    }

    fn notification(&self, _: &Peer, method: &str, params: Option<&RawValue>, _: &Frame) {
        told(&self.host, &self.root, &self.session_id, method, params);
    }

    fn sending(&self, frame: &Frame) {
        let tracer = &self.host.core().drivers.tracer;
        if !tracer.enabled() {
            return;
        }
        if let Ok(Message::Notification { method, params }) = Message::parse(frame) {
            let params = params.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
            note(tracer, &self.session_id, &method, Direction::Out, params);
        }
    }
}
