//! The router: a call to a server in process, and a call to a child process on stdio.
//!
//! Invariant: both go through `Router::call` with tracing off, as in `greenroom serve`. Deliberately no hooks: the hook
//! engine's benches measure those.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use greenroom::agents::{Session, TurnTree};
use greenroom::config::{Variables, load_text};
use greenroom::context::{OutputStream, TABLE};
use greenroom::drivers::mcp::RealMcp;
use greenroom::drivers::sandbox::{ChildEnvironment, ConfinedCli};
use greenroom::drivers::{OsEntropy, SystemClock};
use greenroom::host::Host;
use greenroom::router::CallContext;
use greenroom_boundary::egress::DenyAll;
use greenroom_boundary::isolate::HandOff;
use greenroom_boundary::trace::NoTrace;
use greenroom_boundary::{CancellationToken, Credentials, Drivers, Scope, ServerName, Tracer};
use greenroom_mocks::isolate::MockIsolate;
use greenroom_mocks::llm::DenyLlm;
use serde_json::json;

fn host() -> Host {
    let child = format!(
        "mcpServers:\n  child: {{ command: {:?}, args: [serve, -c, benches/child.yaml, --stdio] }}\n  nanobot.meta: {{}}\n",
        env!("CARGO_BIN_EXE_greenroom")
    );
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
        audit: Arc::new(greenroom_boundary::audit::DenyAudit),
        credentials,
    };
    Host::start(config, drivers, HandOff::Concurrent)
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
    group.finish();
    runtime.block_on(host.shutdown());
}

criterion_group!(benches, router);
criterion_main!(benches);
