//! A stage for one host: a config in YAML, scripted drivers, virtual time.
//!
//! Invariant: nothing but what a test lists can be reached. Deliberately no expectations: tests ask for what happened.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use greenroom::Host;
use greenroom::agents::{Session, TurnTree};
use greenroom::config::{HookDeclaration, HostConfig, Variables, load_text};
use greenroom::context::{OutputStream, TABLE};
use greenroom::hooks::{HookKey, HookOptions, HookTarget};
use greenroom::router::{CallContext, CallError, Output};
use greenroom_boundary::clock::{UnixNanos, sleep};
use greenroom_boundary::egress::DenyAll;
use greenroom_boundary::isolate::{CallValue, HandOff, IsolateDriver, IsolateError, JsException};
use greenroom_boundary::mcp::{Frame, FrameDuplex, FrameSink, McpError, McpTarget};
use greenroom_boundary::trace::{EventKind, HookVerdict, TraceEvent};
use greenroom_boundary::{BoxFuture, CancellationToken, Credentials, Drivers, Llm, McpConnector, Scope, ServerName, Tracer};
use greenroom_harness::host::{Leftovers, TurnReply, TurnRequest};
use greenroom_harness::load::typed;
use greenroom_harness::trace::TraceLog;
use greenroom_mocks::audit::MemoryAudit;
use greenroom_mocks::isolate::MockCall;
use greenroom_mocks::llm::{LlmScript, LlmSwitch, ScriptedLlm};
use greenroom_mocks::mcp::{McpScript, McpSwitch, ScriptedMcp};
use greenroom_mocks::{MockIsolate, SeededEntropy, VirtualClock};
use serde_json::{Value, json};

/// A native function in place of a script's.
pub(crate) type Native = Box<dyn Fn(MockCall) -> BoxFuture<'static, Result<CallValue, IsolateError>> + Send + Sync>;

/// What a raw server answers to a request or notification, and after which wait: whole frames, `$id` stands for the request's id.
pub(crate) type Respond = Arc<dyn Fn(&str, &Value) -> (Duration, Vec<String>) + Send + Sync>;

pub(crate) fn json_value(value: &Value) -> CallValue {
    CallValue::Json(serde_json::value::to_raw_value(value).unwrap())
}

/// A function of its arguments; `None` is `undefined`.
pub(crate) fn pure(work: impl Fn(&[Value]) -> Option<Value> + Send + Sync + 'static) -> Native {
    Box::new(move |call| {
        let args: Vec<Value> = call.args.iter().map(|raw| serde_json::from_str(raw.get()).unwrap()).collect();
        let value = work(&args).map_or(CallValue::Undefined, |value| json_value(&value));
        Box::pin(async move { Ok(value) })
    })
}

/// Always the same value.
pub(crate) fn returns(value: Value) -> Native {
    pure(move |_| Some(value.clone()))
}

/// An exception.
pub(crate) fn thrown(message: &str) -> IsolateError {
    IsolateError::Js(JsException {
        class: "Error".to_owned(),
        message: message.to_owned(),
        code: None,
        frames: Vec::new(),
        cause: None,
    })
}

/// Always throws.
pub(crate) fn throws(message: &'static str) -> Native {
    Box::new(move |_| Box::pin(async move { Err(thrown(message)) }))
}

/// Waits that long on the host's clock, then returns the value.
pub(crate) fn slow(wait: Duration, value: Value) -> Native {
    Box::new(move |call| {
        let value = json_value(&value);
        Box::pin(async move {
            call.ctx.wall_deadline(wait).await;
            Ok(value)
        })
    })
}

/// Calls an operation of `ctx` and returns `{ok: value}` or `{error: {code, message, class}}`.
pub(crate) async fn op(call: &MockCall, path: &str, args: Vec<Value>) -> Value {
    let args = args.iter().map(|value| serde_json::value::to_raw_value(value).unwrap()).collect();
    match call.op(path, args).await {
        Ok(value) => json!({"ok": value.map(|raw| serde_json::from_str::<Value>(raw.get()).unwrap())}),
        Err(error) => json!({"error": {"code": error.code, "message": error.message, "class": error.class}}),
    }
}

enum ServerScript {
    Scripted(String),
    Raw(Respond),
}

/// What a stage is made of.
pub(crate) struct Set {
    config: String,
    servers: Vec<(String, ServerScript)>,
    models: Vec<(String, String)>,
    natives: Vec<(String, String, Native)>,
    hooks: Vec<HookDeclaration>,
    engine: Option<Arc<dyn IsolateDriver>>,
    sources: Vec<(String, String)>,
}

impl Set {
    pub(crate) fn new(config: &str) -> Self {
        Self {
            config: config.to_owned(),
            servers: vec![],
            models: vec![],
            natives: vec![],
            hooks: vec![],
            engine: None,
            sources: vec![],
        }
    }

    /// A scripted server, as scenarios write it.
    pub(crate) fn mcp(mut self, name: &str, script: &str) -> Self {
        self.servers.push((name.to_owned(), ServerScript::Scripted(script.to_owned())));
        self
    }

    /// A server that answers frame by frame; `initialize` is answered for it.
    pub(crate) fn raw(self, name: &str, respond: impl Fn(&str, &Value) -> Vec<String> + Send + Sync + 'static) -> Self {
        self.timed(name, move |method, params| (Duration::ZERO, respond(method, params)))
    }

    /// The same with a wait before the answer, on the host's clock.
    pub(crate) fn timed(
        mut self,
        name: &str,
        respond: impl Fn(&str, &Value) -> (Duration, Vec<String>) + Send + Sync + 'static,
    ) -> Self {
        self.servers.push((name.to_owned(), ServerScript::Raw(Arc::new(respond))));
        self
    }

    /// A real engine in place of native functions.
    pub(crate) fn engine(mut self, engine: Arc<dyn IsolateDriver>) -> Self {
        self.engine = Some(engine);
        self
    }

    /// The text of `SCRIPT.js`.
    pub(crate) fn source(mut self, script: &str, text: &str) -> Self {
        self.sources.push((script.to_owned(), text.to_owned()));
        self
    }

    /// A scripted model, as scenarios write it.
    pub(crate) fn model(mut self, name: &str, script: &str) -> Self {
        self.models.push((name.to_owned(), script.to_owned()));
        self
    }

    /// Function `function` of the script file `SCRIPT.js`, which is made for it.
    pub(crate) fn native(mut self, script: &str, function: &str, native: Native) -> Self {
        self.natives.push((script.to_owned(), function.to_owned(), native));
        self
    }

    /// A message hook on any server or agent, as a scenario declares it.
    pub(crate) fn hook_on(mut self, server: &str, key: &str, target: &str) -> Self {
        let target = HookTarget::parse(target).unwrap();
        let declared = u32::try_from(self.hooks.len()).unwrap();
        let bindings = HookKey::parse(key).unwrap().bindings(&target, HookOptions::default(), declared);
        let declare = |binding| HookDeclaration { server: ServerName::new(server), binding };
        self.hooks.extend(bindings.into_iter().map(declare));
        self
    }

    pub(crate) fn build(self) -> Stage {
        let folder = tempfile::tempdir().unwrap();
        let clock = VirtualClock::new(UnixNanos(1_700_000_000_000_000_000), 0);
        let shared: Arc<dyn greenroom_boundary::Clock> = Arc::new(clock.clone());
        let entropy = SeededEntropy::new(1);
        let mut isolate = MockIsolate::new(&TABLE);
        for (script, function, native) in self.natives {
            let path = folder.path().join(format!("{script}.js"));
            std::fs::write(&path, "").unwrap();
            isolate = isolate.register(&path.display().to_string(), &function, native);
        }
        for (script, text) in self.sources {
            std::fs::write(folder.path().join(format!("{script}.js")), text).unwrap();
        }
        let spy = Spy::default();
        let mut servers: BTreeMap<ServerName, Arc<dyn McpConnector>> = BTreeMap::new();
        for (name, script) in self.servers {
            let inner: Arc<dyn McpConnector> = match script {
                ServerScript::Scripted(text) => {
                    let script: McpScript = typed(Path::new("server"), &text).unwrap();
                    Arc::new(ScriptedMcp::new(script, shared.clone()))
                }
                ServerScript::Raw(respond) => Arc::new(RawServer { respond, clock: shared.clone() }),
            };
            servers.insert(ServerName::new(name), inner);
        }
        let mut models: BTreeMap<String, Arc<dyn Llm>> = BTreeMap::new();
        for (name, text) in self.models {
            let script: LlmScript = typed(Path::new("model"), &text).unwrap();
            models.insert(name.clone(), Arc::new(ScriptedLlm::new(name, script, shared.clone(), &entropy)));
        }
        let log = TraceLog::new(100_000);
        let audit = MemoryAudit::default();
        let drivers = Drivers {
            llm: Arc::new(LlmSwitch::new(models)),
            mcp: Arc::new(Spying { inner: McpSwitch::new(servers), spy: spy.clone() }),
            cli: Arc::new(greenroom_mocks::cli::DenyCli),
            isolate: self.engine.unwrap_or_else(|| Arc::new(isolate)),
            clock: shared.clone(),
            entropy: Arc::new(entropy),
            egress: Arc::new(DenyAll),
            search: Arc::new(greenroom_boundary::search::DenySearch),
            workspaces: Arc::new(greenroom_mocks::workspace::MemoryWorkspaces::new(shared.clone())),
            audit: Arc::new(audit.clone()),
            tracer: Tracer::new(shared, Arc::new(log.clone())),
            credentials: Credentials::default(),
        };
        let mut config: HostConfig = match load_text("scenario:host", &self.config, folder.path(), &Variables::default()) {
            Ok(config) => config,
            Err(error) => panic!("{error}"),
        };
        config.hooks.extend(self.hooks);
        let runtime = clock.runtime().unwrap();
        let host = Host::start(config, drivers, HandOff::Strict);
        Stage { host, log, clock, audit, runtime, spy, folder }
    }
}

/// A host on scripted drivers.
pub(crate) struct Stage {
    pub(crate) host: Host,
    pub(crate) log: TraceLog,
    pub(crate) clock: VirtualClock,
    pub(crate) audit: MemoryAudit,
    runtime: tokio::runtime::Runtime,
    spy: Spy,
    folder: tempfile::TempDir,
}

impl Stage {
    /// Where its script files are.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    pub(crate) fn turn(&self, agent: &str, user: &str) -> TurnReply {
        self.turn_until(agent, user, None)
    }

    /// A turn that is cancelled after `limit`, if it has not ended by then.
    pub(crate) fn turn_until(&self, agent: &str, user: &str, limit: Option<Duration>) -> TurnReply {
        let cancel = CancellationToken::new();
        if let Some(limit) = limit {
            let (token, wait) = (cancel.clone(), sleep(&self.clock, limit));
            self.runtime.spawn(async move {
                wait.await;
                token.cancel();
            });
        }
        let request =
            TurnRequest { id: "t1".to_owned(), agent: agent.to_owned(), user: user.to_owned(), ..TurnRequest::default() };
        self.run(self.host.turn(request, &cancel))
    }

    /// A fresh context of a caller outside any turn.
    pub(crate) fn caller(&self) -> CallContext {
        let tree = TurnTree::new(OutputStream::new(self.host.core().drivers.tracer.clone(), None));
        let root = self.host.core().state.own_root.clone();
        CallContext::new(Scope::new("caller"), root, Session::new("chat"), tree, CancellationToken::new())
    }

    pub(crate) fn call(&self, server: &str, tool: &str, arguments: Value) -> Result<Output, CallError> {
        let cx = self.caller();
        self.run(self.host.core().router.call(&cx, &ServerName::new(server), tool, arguments))
    }

    pub(crate) fn list(&self, server: &str) -> Result<Vec<String>, CallError> {
        let cx = self.caller();
        let tools = self.run(self.host.core().router.list_tools(&cx, &ServerName::new(server)))?;
        Ok(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect())
    }

    /// The messages of one method that a server was sent.
    pub(crate) fn sent(&self, server: &str, method: &str) -> Vec<Value> {
        let frames = self.spy.0.lock().unwrap();
        frames
            .iter()
            .filter(|(name, frame)| name == server && frame["method"] == method)
            .map(|(_, frame)| frame.clone())
            .collect()
    }

    pub(crate) fn events(&self) -> Vec<TraceEvent> {
        self.log.events()
    }

    /// Decisions of hooks, in order.
    pub(crate) fn verdicts(&self) -> Vec<(String, HookVerdict)> {
        let hooks = self.events().into_iter().filter_map(|event| match event.kind {
            EventKind::Hook { hook, verdict, .. } => Some((hook, verdict)),
            _ => None,
        });
        hooks.collect()
    }

    /// Bodies of the requests at a boundary.
    pub(crate) fn requests(&self, at: &str, of: &str) -> Vec<Value> {
        let requests = self.events().into_iter().filter_map(|event| match event.kind {
            EventKind::Request { boundary, method, body, .. } if boundary == at && method == of => Some(body),
            _ => None,
        });
        requests.collect()
    }

    /// Warnings as (code, body).
    pub(crate) fn warnings(&self) -> Vec<(String, Value)> {
        let warnings = self.events().into_iter().filter_map(|event| match event.kind {
            EventKind::Warning { method, body, .. } => Some((method, body)),
            _ => None,
        });
        warnings.collect()
    }

    /// Messages to the client's stream.
    pub(crate) fn output(&self) -> Vec<Value> {
        let output = self.events().into_iter().filter_map(|event| match event.kind {
            EventKind::Output { body } => Some(body),
            _ => None,
        });
        output.collect()
    }

    /// Requests without exactly one response, as `boundary method`.
    pub(crate) fn unanswered(&self) -> Vec<String> {
        let mut open = BTreeMap::new();
        for event in self.events() {
            match event.kind {
                EventKind::Request { span, boundary, method, .. } => {
                    open.insert(span, format!("{boundary} {method}"));
                }
                EventKind::Response { span, .. } => {
                    assert!(open.remove(&span).is_some(), "a response without its request: {span:?}");
                }
                _ => {}
            }
        }
        open.into_values().collect()
    }

    /// Milliseconds of virtual time since the stage was built.
    pub(crate) fn clock_ms(&self) -> u64 {
        greenroom_boundary::Clock::now(&self.clock).0 / 1_000_000
    }

    /// The text without the folder of this stage, so that two stages can be compared.
    pub(crate) fn placeless(&self, text: &str) -> String {
        text.replace(&self.folder.path().display().to_string(), "")
    }

    pub(crate) fn end(&self) -> Leftovers {
        self.run(self.host.shutdown())
    }
}

/// Whatever a test is about: an exchange that left was answered, and nothing is left when the host has ended.
impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let left = self.end();
        assert_eq!((left.connections, left.handles), (0, 0));
        self.run(self.clock.settle());
        assert_eq!(self.unanswered(), Vec::<String>::new(), "exchanges without an answer");
        assert_eq!(self.host.core().drivers.isolate.counters().active_calls, 0, "scripts still run");
    }
}

/// The text of a result's content items.
pub(crate) fn texts(result: &Value) -> Vec<&str> {
    result["content"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
        .iter()
        .filter_map(|item| item["text"].as_str())
        .collect()
}

/// Every frame to every server.
#[derive(Clone, Debug, Default)]
struct Spy(Arc<Mutex<Vec<(String, Value)>>>);

#[derive(Debug)]
struct Spying {
    inner: McpSwitch,
    spy: Spy,
}

#[async_trait]
impl McpConnector for Spying {
    async fn open(&self, target: &McpTarget, cancel: &CancellationToken) -> Result<FrameDuplex, McpError> {
        let FrameDuplex { sink, source } = self.inner.open(target, cancel).await?;
        let sink = SpySink { server: target.server.to_string(), spy: self.spy.clone(), sink };
        Ok(FrameDuplex { sink: Box::new(sink), source })
    }
}

struct SpySink {
    server: String,
    spy: Spy,
    sink: Box<dyn FrameSink>,
}

#[async_trait]
impl FrameSink for SpySink {
    async fn ready(&mut self) -> Result<(), McpError> {
        self.sink.ready().await
    }

    async fn send(&mut self, frame: Frame) -> Result<(), McpError> {
        let value = serde_json::from_slice(&frame.0).unwrap();
        self.spy.0.lock().unwrap().push((self.server.clone(), value));
        self.sink.send(frame).await
    }

    async fn close(&mut self) {
        self.sink.close().await;
    }
}

struct RawServer {
    respond: Respond,
    clock: Arc<dyn greenroom_boundary::Clock>,
}

impl std::fmt::Debug for RawServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RawServer")
    }
}

#[async_trait]
impl McpConnector for RawServer {
    async fn open(&self, target: &McpTarget, _: &CancellationToken) -> Result<FrameDuplex, McpError> {
        let (host, FrameDuplex { sink, mut source }) = greenroom_wire::pipe(target.server.as_str());
        let (respond, clock) = (self.respond.clone(), self.clock.clone());
        let sink = Arc::new(tokio::sync::Mutex::new(sink));
        tokio::spawn(async move {
            while let Some(Ok(frame)) = source.next().await {
                let message: Value = serde_json::from_slice(&frame.0).unwrap();
                let method = message["method"].as_str().unwrap_or_default();
                let (wait, frames) = match method {
                    // Only calls and lists are scripted.
                    _ if message.get("id").is_none() => continue,
                    "initialize" => (
                        Duration::ZERO,
                        vec![result(
                            r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"raw","version":"1"}}"#,
                        )],
                    ),
                    method => respond(method, &message["params"]),
                };
                let (sink, waited) = (sink.clone(), (!wait.is_zero()).then(|| sleep(clock.as_ref(), wait)));
                let answer = async move {
                    if let Some(waited) = waited {
                        waited.await;
                    }
                    for text in frames {
                        let text = text.replace("$id", &message["id"].to_string());
                        if sink.lock().await.send(Frame::from(text)).await.is_err() {
                            return;
                        }
                    }
                };
                if wait.is_zero() {
                    answer.await;
                } else {
                    tokio::spawn(answer);
                }
            }
        });
        Ok(host)
    }
}

/// A response frame whose result is this JSON text.
pub(crate) fn result(text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":$id,"result":{text}}}"#)
}

/// A response frame whose error is this JSON text.
pub(crate) fn error(text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":$id,"error":{text}}}"#)
}

/// Runs `ctx` operations one after the other in one turn. Gives their answers and the client's stream.
pub(crate) fn run_ops(steps: Vec<(String, Vec<Value>)>) -> (Vec<Value>, Vec<Value>) {
    let next: Native = Box::new(move |call| {
        let steps = steps.clone();
        Box::pin(async move {
            let mut answers = Vec::new();
            for (path, args) in steps {
                answers.push(op(&call, &path, args).await);
            }
            Ok(json_value(&json!({"data": {"answers": answers}})))
        })
    });
    let stage = Set::new("agents: {desk: {script: desk.js}}").native("desk", "Next", next).build();
    let reply = stage.turn("desk", "go");
    assert!(reply.error.is_none(), "{reply:?}");
    (reply.data["answers"].as_array().unwrap().clone(), stage.output())
}
