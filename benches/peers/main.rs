//! Greenroom beside its peers, in one run: calls in process, calls over stdio, hook chains. Ends with a table of ratios.
//!
//! Invariant: what is compared does the same work with the same payload in the same run. `./x bench --peers` installs what it
//! needs. Deliberately no limits that fail: a busy machine would fail them.

mod fastmcp;
mod greenroom_host;
mod rmcp_pair;
mod table;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;

use criterion::Criterion;
use greenroom::context::TABLE;
use greenroom_boundary::ServerName;
use greenroom_isolate_v8::{V8Engine, V8Options, initialise_v8};
use greenroom_mocks::MockIsolate;
use serde_json::json;

use greenroom_host::{Bench, CHAINS};

/// As in the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    // Before any thread is there.
    let v8 = initialise_v8();
    let mut criterion = Criterion::default().warm_up_time(Duration::from_secs(1)).configure_from_args();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    in_process(&mut criterion, &runtime);
    stdio(&mut criterion, &runtime);
    native_chains(&mut criterion, &runtime);
    let engine = Arc::new(V8Engine::start(v8, &TABLE, V8Options::default()).expect("V8 starts"));
    let quickjs = Arc::new(greenroom_isolate_quickjs::QuickJs::new(&TABLE));
    script_chains(&mut criterion, &runtime, "v8", engine);
    script_chains(&mut criterion, &runtime, "quickjs", quickjs);
    chain_cases(&mut criterion, &runtime);
    criterion.final_summary();
    table::print();
}

fn in_process(criterion: &mut Criterion, runtime: &tokio::runtime::Runtime) {
    let bench = Bench::new(Arc::new(MockIsolate::new(&TABLE)));
    let mut group = criterion.benchmark_group("in_process_call");
    let echo = ServerName::new("echo0");
    group.bench_function("greenroom", |bencher| {
        bencher.iter(|| black_box(runtime.block_on(bench.call(&echo, json!({"text": "hello"})))));
    });
    let gateway = runtime.block_on(bench.gateway());
    group.bench_function("greenroom_whole_gateway", |bencher| {
        let params = json!({"name": "echo", "arguments": {"text": "hello"}});
        bencher.iter(|| black_box(runtime.block_on(greenroom_host::call_through(&gateway, params.clone()))));
    });
    let client = runtime.block_on(rmcp_pair::connect());
    group.bench_function("rmcp_duplex", |bencher| {
        bencher.iter(|| black_box(runtime.block_on(rmcp_pair::call(&client))));
    });
    match fastmcp::Loop::start() {
        Some(mut python) => {
            group.sample_size(10);
            group.bench_function("fastmcp_in_memory", |bencher| bencher.iter_custom(|times| python.run(times)));
        }
        None => eprintln!("FastMCP is not installed: ./x bench --peers does it"),
    }
    group.finish();
    runtime.block_on(async {
        gateway.close().await;
        bench.end().await;
    });
}

fn stdio(criterion: &mut Criterion, runtime: &tokio::runtime::Runtime) {
    let bench = Bench::new(Arc::new(MockIsolate::new(&TABLE)));
    let direct = runtime.block_on(bench.direct());
    let mut group = criterion.benchmark_group("stdio_call");
    group.bench_function("direct", |bencher| {
        bencher.iter(|| black_box(runtime.block_on(greenroom_host::direct_call(&direct))));
    });
    let child = ServerName::new("child");
    group.bench_function("through_the_router", |bencher| {
        bencher.iter(|| black_box(runtime.block_on(bench.call_tool(&child, "list_agents", json!({})))));
    });
    let gateway = runtime.block_on(bench.gateway());
    group.bench_function("gateway_in_process", |bencher| {
        bencher.iter(|| black_box(runtime.block_on(greenroom_host::direct_call(&gateway))));
    });
    let process = runtime.block_on(bench.gateway_process());
    group.bench_function("gateway_process", |bencher| {
        bencher.iter(|| black_box(runtime.block_on(greenroom_host::direct_call(&process))));
    });
    let copying = runtime.block_on(bench.copying_process());
    group.bench_function("copying_process", |bencher| {
        bencher.iter(|| black_box(runtime.block_on(greenroom_host::direct_call(&copying))));
    });
    let (client, mut server) = runtime.block_on(rmcp_pair::connect_child(&greenroom_host::child()));
    group.bench_function("rmcp_client", |bencher| {
        bencher.iter(|| black_box(runtime.block_on(rmcp_pair::call_child(&client))));
    });
    group.finish();
    runtime.block_on(async {
        for peer in [direct, gateway, process, copying] {
            peer.close().await;
        }
        // It may have ended already.
        let _ = client.cancel().await;
        let _ = server.kill().await;
        bench.end().await;
    });
}

fn native_chains(criterion: &mut Criterion, runtime: &tokio::runtime::Runtime) {
    let bench = Bench::new(Arc::new(MockIsolate::new(&TABLE)));
    let mut group = criterion.benchmark_group("native_hooks");
    for length in CHAINS {
        let echo = ServerName::new(format!("echo{length}"));
        group.bench_function(length.to_string(), |bencher| {
            bencher.iter(|| black_box(runtime.block_on(bench.call(&echo, json!({"text": "hello"})))));
        });
    }
    group.finish();
    runtime.block_on(bench.end());
}

fn script_chains(
    criterion: &mut Criterion,
    runtime: &tokio::runtime::Runtime,
    name: &str,
    engine: Arc<dyn greenroom_boundary::IsolateDriver>,
) {
    let bench = Bench::new(engine);
    let mut group = criterion.benchmark_group(format!("{name}_hooks"));
    group.sample_size(20);
    for length in CHAINS.into_iter().filter(|length| *length > 0) {
        let echo = ServerName::new(format!("scripted{length}"));
        group.bench_function(length.to_string(), |bencher| {
            bencher.iter(|| black_box(runtime.block_on(bench.call(&echo, json!({"text": "hello"})))));
        });
    }
    group.finish();
    runtime.block_on(bench.end());
}

/// One call through a chain of eight with mixed outcomes, as the properties generate them.
fn chain_cases(criterion: &mut Criterion, runtime: &tokio::runtime::Runtime) {
    let bench = Bench::new(Arc::new(greenroom_host::outcomes()));
    let mut group = criterion.benchmark_group("chain_cases");
    for (number, case) in greenroom_host::CASES.iter().enumerate() {
        let server = ServerName::new(format!("case{number}"));
        let arrived = runtime.block_on(bench.try_call(&server, json!({"text": "hello"}))).is_ok();
        assert_eq!(arrived, greenroom_host::passes(case), "{case}");
    }
    let mut next = 0;
    group.bench_function("mock", |bencher| {
        bencher.iter(|| {
            next = (next + 1) % greenroom_host::CASES.len();
            let server = ServerName::new(format!("case{next}"));
            black_box(runtime.block_on(bench.try_call(&server, json!({"text": "hello"}))).is_ok())
        });
    });
    group.finish();
    runtime.block_on(bench.end());
}
