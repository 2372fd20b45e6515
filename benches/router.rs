//! The router: a call to a server in process, through chains of native hooks, and to a child process on stdio.
//!
//! Invariant: all go through `Router::call` with tracing off, as in `greenroom serve`. Deliberately no script hooks: the
//! bridge's benches measure those.

use std::hint::black_box;
use std::sync::Arc;

use async_trait::async_trait;
use criterion::{Criterion, criterion_group, criterion_main};
use greenroom::agents::{Session, TurnTree};
use greenroom::config::{Variables, load_text};
use greenroom::context::{OutputStream, TABLE};
use greenroom::drivers::mcp::RealMcp;
use greenroom::drivers::sandbox::{ChildEnvironment, ConfinedCli};
use greenroom::drivers::{OsEntropy, SystemClock};
use greenroom::host::{Host, NativeFactory};
use greenroom::router::{CallContext, CallError, Output, Server, ServerRequest};
use greenroom_boundary::egress::DenyAll;
use greenroom_boundary::isolate::HandOff;
use greenroom_boundary::trace::NoTrace;
use greenroom_boundary::{CancellationToken, Credentials, Drivers, Scope, ServerName, Tracer};
use greenroom_mocks::isolate::MockIsolate;
use greenroom_mocks::llm::DenyLlm;
use serde_json::json;

/// As in the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Lengths of the hook chains.
const CHAINS: [usize; 4] = [0, 1, 4, 8];

/// A tool that gives its arguments back, or a hook that has no objection.
#[derive(Clone, Copy)]
enum Native {
    Echo,
    Consent,
}

#[async_trait]
impl Server for Native {
    fn boundary(&self) -> String {
        "server.native".to_owned()
    }

    async fn request(&self, _: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        (request.sent)();
        let structured = match self {
            Self::Echo => request.params["arguments"].clone(),
            Self::Consent => json!({"accept": true, "mutated": false}),
        };
        Ok(json!({"content": [], "structuredContent": structured}).into())
    }
}

fn native(name: impl Into<String>, native: Native) -> (ServerName, NativeFactory) {
    (ServerName::new(name.into()), Arc::new(move || Arc::new(native) as Arc<dyn Server>))
}

/// The child process, a built-in server, and an echo behind each chain. A native server's `command` is never started.
fn config() -> String {
    let mut text = format!(
        "mcpServers:\n  child: {{ command: {:?}, args: [serve, -c, benches/child.yaml, --stdio] }}\n  nanobot.meta: {{}}\n  \
         hook: {{ command: native }}\n",
        env!("CARGO_BIN_EXE_greenroom")
    );
    for length in CHAINS {
        let hooks: Vec<String> = (0..length).map(|number| format!("hook/pass{number}")).collect();
        text += &format!(
            "  echo{length}: {{ command: native, hooks: {{ 'tools/call?direction=request': [{}] }} }}\n",
            hooks.join(", ")
        );
    }
    text
}

fn host() -> Host {
    let child = config();
    let config = load_text("bench.yaml", &child, ".".as_ref(), &Variables::default()).expect("the bench's config");
    let clock = Arc::new(SystemClock::new());
    let (egress, credentials, environment) = (Arc::new(DenyAll), Credentials::default(), ChildEnvironment::of_this_process());
    let drivers = Drivers {
        llm: Arc::new(DenyLlm),
        mcp: Arc::new(RealMcp::new(clock.clone(), egress.clone(), credentials.clone(), environment.clone())),
        cli: Arc::new(ConfinedCli::new(clock.clone(), environment)),
        isolate: Arc::new(MockIsolate::new(&TABLE)),
        tracer: Tracer::new(clock.clone(), Arc::new(NoTrace)),
        clock,
        entropy: Arc::new(OsEntropy),
        egress,
        search: Arc::new(greenroom_boundary::search::DenySearch),
        workspaces: Arc::new(greenroom::drivers::FolderWorkspaces),
        audit: Arc::new(greenroom_boundary::audit::DenyAudit),
        credentials,
    };
    let echoes = CHAINS.iter().map(|length| native(format!("echo{length}"), Native::Echo));
    let natives: Vec<_> = echoes.chain([native("hook", Native::Consent)]).collect();
    Host::start_with(config, drivers, HandOff::Concurrent, natives)
}

fn context(host: &Host) -> CallContext {
    let tree = TurnTree::new(OutputStream::new(host.core().drivers.tracer.clone(), None));
    CallContext::new(
        Scope::new("bench"),
        host.core().state.own_root.clone(),
        Session::new("bench"),
        tree,
        CancellationToken::new(),
    )
}

fn router(criterion: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (host, mut group) = (host(), criterion.benchmark_group("router"));
    let cx = context(&host);
    for (name, server, tool) in [("in_process_call", "nanobot.meta", "list_agents"), ("stdio_call", "child", "list_agents")] {
        let server = ServerName::new(server);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let output = runtime.block_on(host.core().router.call(&cx, &server, tool, json!({}))).expect("an answer");
                black_box(output);
            });
        });
    }
    for length in CHAINS {
        let server = ServerName::new(format!("echo{length}"));
        group.bench_function(format!("native_hooks/{length}"), |bencher| {
            bencher.iter(|| {
                let core = host.core();
                let call = core.router.call(&cx, &server, "echo", json!({"text": "hello"}));
                black_box(runtime.block_on(call).expect("an answer"))
            });
        });
    }
    group.finish();
    runtime.block_on(host.shutdown());
}

criterion_group!(benches, router);
criterion_main!(benches);
