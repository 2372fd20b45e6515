//! The host that is measured: echo servers behind chains of hooks, and a child process.
//!
//! Invariant: tracing is off, as in `greenroom serve`; every call goes through `Router::call`. Deliberately nothing that a person
//! could not configure, but for the native servers of an embedding program.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use greenroom::agents::{Session, TurnTree};
use greenroom::config::{ScriptConfig, Variables, load_text};
use greenroom::context::{OutputStream, TABLE};
use greenroom::drivers::mcp::RealMcp;
use greenroom::drivers::sandbox::{ChildEnvironment, ConfinedCli};
use greenroom::drivers::{OsEntropy, SystemClock};
use greenroom::host::{Host, NativeFactory};
use greenroom::router::{CallContext, CallError, Output, Server, ServerRequest};
use greenroom_boundary::audit::DenyAudit;
use greenroom_boundary::egress::DenyAll;
use greenroom_boundary::isolate::{CallValue, HandOff, IsolateError, JsException};
use greenroom_boundary::mcp::{FrameDuplex, McpTarget, ServerAddress};
use greenroom_boundary::trace::NoTrace;
use greenroom_boundary::{CancellationToken, Credentials, Drivers, IsolateDriver, Scope, ServerName, Tracer};
use greenroom_mocks::MockIsolate;
use greenroom_mocks::llm::DenyLlm;
use greenroom_wire::{Peer, PeerHandler, PeerOptions, ProtocolVersion, RequestOptions, client_handshake};
use serde_json::{Value, json};

/// Lengths of the chains.
pub(crate) const CHAINS: [usize; 4] = [0, 1, 4, 8];
/// Chains of mixed outcomes; each letter is a hook: consents, mutates, refuses, throws, answers a wrong type.
pub(crate) const CASES: [&str; 8] =
    ["cccccccc", "cmcmcmcm", "mmmmmmmm", "cccmcmcr", "cmmccmct", "mcmcmcmw", "ccmmccmm", "mccccccc"];
/// Whether a case's call arrives.
pub(crate) fn passes(case: &str) -> bool {
    !case.contains(['r', 't', 'w'])
}

/// Names the chains' script, which is no file.
const SCRIPT: &str = "/bench/outcomes.js";

struct Echo;
struct Consent;

#[async_trait]
impl Server for Echo {
    fn boundary(&self) -> String {
        "server.echo".to_owned()
    }

    async fn request(&self, _: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        (request.sent)();
        if request.method == "tools/list" {
            return Ok(json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}).into());
        }
        let text = request.params["arguments"]["text"].clone();
        Ok(json!({"content": [{"type": "text", "text": text}]}).into())
    }
}

#[async_trait]
impl Server for Consent {
    fn boundary(&self) -> String {
        "server.consent".to_owned()
    }

    async fn request(&self, _: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        (request.sent)();
        Ok(json!({"content": [], "structuredContent": {"accept": true, "mutated": false}}).into())
    }
}

/// A host on the real drivers, with this engine.
pub(crate) struct Bench {
    host: Host,
    cx: CallContext,
}

impl Bench {
    pub(crate) fn new(engine: Arc<dyn IsolateDriver>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let script = folder.path().join("consent.js");
        std::fs::write(&script, "export function pass() { return { accept: true, mutated: false } }\n").expect("a script");
        let text = config(&script.display().to_string());
        let config = load_text("bench.yaml", &text, ".".as_ref(), &Variables::default()).expect("the bench's config");
        let clock = Arc::new(SystemClock::new());
        let (egress, credentials, environment) =
            (Arc::new(DenyAll), Credentials::default(), ChildEnvironment::of_this_process());
        let drivers = Drivers {
            llm: Arc::new(DenyLlm),
            mcp: Arc::new(RealMcp::new(clock.clone(), egress.clone(), credentials.clone(), environment.clone())),
            cli: Arc::new(ConfinedCli::new(clock.clone(), environment)),
            isolate: engine,
            tracer: Tracer::new(clock.clone(), Arc::new(NoTrace)),
            clock,
            entropy: Arc::new(OsEntropy),
            egress,
            search: Arc::new(greenroom_boundary::search::DenySearch),
            workspaces: Arc::new(greenroom::drivers::FolderWorkspaces),
            audit: Arc::new(DenyAudit),
            credentials,
        };
        let echo: NativeFactory = Arc::new(|| Arc::new(Echo) as Arc<dyn Server>);
        let consent: NativeFactory = Arc::new(|| Arc::new(Consent) as Arc<dyn Server>);
        let echoes = CHAINS.iter().flat_map(|length| [format!("echo{length}"), format!("scripted{length}")]);
        let cases = (0..CASES.len()).map(|case| format!("case{case}"));
        let natives = echoes.chain(cases).map(|name| (ServerName::new(name), echo.clone()));
        let natives: Vec<_> = natives.chain([(ServerName::new("consent"), consent)]).collect();
        let host = Host::start_with(config, drivers, HandOff::Strict, natives);
        let core = host.core();
        // The library keeps the script's text; the folder may go after it has been read once.
        core.scripts.load(&ScriptConfig::File(script)).expect("the script");
        // The mock has functions of its own; only the name counts.
        let outcomes = ScriptConfig::Inline { name: SCRIPT.to_owned(), code: String::new() };
        core.scripts.load(&outcomes).expect("an empty script");
        let tree = TurnTree::new(OutputStream::new(core.drivers.tracer.clone(), None));
        let root = core.state.own_root.clone();
        let cx = CallContext::new(Scope::new("bench"), root, Session::new("bench"), tree, CancellationToken::new());
        Self { host, cx }
    }

    pub(crate) async fn try_call(&self, server: &ServerName, arguments: Value) -> Result<Output, CallError> {
        self.host.core().router.call(&self.cx, server, "echo", arguments).await
    }

    pub(crate) async fn call(&self, server: &ServerName, arguments: Value) -> Output {
        self.call_tool(server, "echo", arguments).await
    }

    pub(crate) async fn call_tool(&self, server: &ServerName, tool: &str, arguments: Value) -> Output {
        self.host.core().router.call(&self.cx, server, tool, arguments).await.expect("an answer")
    }

    /// A connection to the same child, without the router.
    pub(crate) async fn direct(&self) -> Peer {
        self.process("direct", &child()).await
    }

    /// A connection to a host in a process of its own, which has the same child.
    pub(crate) async fn gateway_process(&self) -> Peer {
        let file = std::env::temp_dir().join(format!("greenroom-gateway-{}.yaml", std::process::id()));
        std::fs::write(&file, gateway_config("child")).expect("a config");
        let gateway = self.process("gateway", &serving(&file.display().to_string())).await;
        // It has read it when it answers.
        let _ = std::fs::remove_file(file);
        gateway
    }

    /// A connection to the same child behind two programs that copy bytes: what no gateway in a process of its own can beat.
    pub(crate) async fn copying_process(&self) -> Peer {
        let script = "cat | \"$0\" \"$@\" | cat".to_owned();
        let command = ["sh".to_owned(), "-c".to_owned(), script].into_iter().chain(child()).collect::<Vec<_>>();
        self.process("copying", &command).await
    }

    /// A connection to this host as an outside client has it, without a pipe between them.
    pub(crate) async fn gateway(&self) -> Peer {
        let (ours, theirs) = greenroom_wire::pipe("gateway");
        let host = self.host.clone();
        tokio::spawn(async move { greenroom::front::serve(&host, theirs).await });
        self.introduced("gateway", ours).await
    }

    async fn process(&self, name: &str, command: &[String]) -> Peer {
        let (command, args) = command.split_first().expect("a command");
        let (command, args, env) = (command.clone(), args.to_vec(), std::collections::BTreeMap::new());
        let address = ServerAddress::Process { command, args, env, workdir: None };
        let target = McpTarget { server: ServerName::new(name), address };
        let drivers = &self.host.core().drivers;
        let duplex = drivers.mcp.open(&target, &CancellationToken::new()).await.expect("the child starts");
        self.introduced(name, duplex).await
    }

    async fn introduced(&self, name: &str, duplex: FrameDuplex) -> Peer {
        let options = PeerOptions { clock: self.host.core().drivers.clock.clone(), name: name.to_owned() };
        let peer = Peer::start(duplex, Arc::new(Nobody), options);
        let info = json!({"name": "bench", "version": "1"});
        let within = RequestOptions::within(Duration::from_secs(30));
        client_handshake(&peer, &info, &json!({}), ProtocolVersion::LATEST, within).await.expect("the handshake");
        peer
    }

    pub(crate) async fn end(&self) {
        self.host.shutdown().await;
    }
}

/// A call of the child's tool, as any client makes it.
pub(crate) async fn direct_call(peer: &Peer) -> Value {
    call_through(peer, json!({"name": "list_agents", "arguments": {}})).await
}

/// A call of any tool, as any client makes it.
pub(crate) async fn call_through(peer: &Peer, params: Value) -> Value {
    let params = serde_json::value::to_raw_value(&params).expect("params");
    let options = RequestOptions::within(Duration::from_secs(60));
    let raw = peer.request("tools/call", Some(params), options).await.expect("an answer");
    serde_json::from_str(raw.get()).expect("a result")
}

struct Nobody;

#[async_trait]
impl PeerHandler for Nobody {
    async fn request(
        &self,
        request: greenroom_wire::IncomingRequest,
    ) -> Result<greenroom_boundary::RawJson, greenroom_wire::RpcError> {
        Err(greenroom_wire::RpcError::method_not_found(&request.method))
    }
}

/// The child of all stdio benches.
pub(crate) fn child() -> [String; 5] {
    serving(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/child.yaml"))
}

fn serving(config: &str) -> [String; 5] {
    [env!("CARGO_BIN_EXE_greenroom"), "serve", "-c", config, "--stdio"].map(str::to_owned)
}

/// A host that publishes the child.
fn gateway_config(published: &str) -> String {
    let [command, args @ ..] = child();
    format!("publish: {{ mcpServers: [{published}] }}\nmcpServers:\n  child: {{ command: {command:?}, args: {args:?} }}\n")
}

fn config(script: &str) -> String {
    let mut text = gateway_config("child, echo0");
    text += &format!(
        "  consent: {{ command: native }}\n  script: {{ script: {script:?} }}\n  outcomes: {{ script: {SCRIPT:?} }}\n"
    );
    for length in CHAINS {
        let hooks = |target: &str| (0..length).map(|_| target).collect::<Vec<_>>().join(", ");
        for (server, target) in [("echo", "consent/pass"), ("scripted", "script/pass")] {
            text += &format!(
                "  {server}{length}: {{ command: native, hooks: {{ 'tools/call?direction=request': [{}] }} }}\n",
                hooks(target)
            );
        }
    }
    for (number, case) in CASES.iter().enumerate() {
        let hooks: Vec<String> = case.chars().map(|outcome| format!("outcomes/{outcome}")).collect();
        text += &format!(
            "  case{number}: {{ command: native, hooks: {{ 'tools/call?direction=request': [{}] }} }}\n",
            hooks.join(", ")
        );
    }
    text
}

/// The mock engine with one native function for each outcome.
pub(crate) fn outcomes() -> MockIsolate {
    let value = |value: Value| CallValue::Json(serde_json::value::to_raw_value(&value).expect("JSON"));
    let fixed = move |answer: Value| {
        move |_: greenroom_mocks::isolate::MockCall| -> greenroom_boundary::BoxFuture<'static, Result<CallValue, IsolateError>> {
            let answer = value(answer.clone());
            Box::pin(async move { Ok(answer) })
        }
    };
    let thrown =
        |_: greenroom_mocks::isolate::MockCall| -> greenroom_boundary::BoxFuture<'static, Result<CallValue, IsolateError>> {
            let message = "no".to_owned();
            let error = JsException { class: "Error".to_owned(), message, code: None, frames: Vec::new(), cause: None };
            Box::pin(async move { Err(IsolateError::Js(error)) })
        };
    let message = json!({"method": "tools/call", "params": {"name": "echo", "arguments": {"text": "other"}}});
    MockIsolate::new(&TABLE)
        .register(SCRIPT, "c", fixed(json!({"accept": true})))
        .register(SCRIPT, "m", fixed(json!({"accept": true, "mutated": true, "message": message})))
        .register(SCRIPT, "r", fixed(json!({"accept": false, "reason": "no"})))
        .register(SCRIPT, "t", thrown)
        .register(SCRIPT, "w", fixed(json!(7)))
}
