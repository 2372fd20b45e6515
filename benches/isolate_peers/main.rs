//! Hook scripts on our engines beside Node's `vm`, a Deno process and bare QuickJS, in one run. Ends with a table.
//!
//! Invariant: every one runs the same scripts on the same arguments, JSON text in and out, in a context that no other call has
//! seen; only `greenroom_frozen` shares one. Ours are measured whole, thread hop and limits included, the others without.
//! Deliberately no limits that fail: a busy machine would fail them.

mod peers;

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use criterion::Criterion;
use greenroom::context::TABLE;
use greenroom_boundary::isolate::{
    CallRequest, CallValue, Callback, ContextOps, HandOff, Isolation, Limits, OpArgs, OpError, OpIndex, PassCtx, Script,
};
use greenroom_boundary::{BoxFuture, CancellationToken, IsolateDriver, RawJson};
use greenroom_isolate_v8::{V8Engine, V8Options, initialise_v8};
use serde_json::Value;
use serde_json::value::RawValue;

use peers::{Deno, Hook, Node};

const CTX: &str = r#"{"chat_id":"c","assistant_id":"desk","locale":"","metadata":{"tone":"kind"}}"#;
const MESSAGES: &str = r#"[{"role":"system","content":"You are at the desk."},{"role":"user","content":"Where is my refund of invoice 4711? Write to ada@example.org or call +49 30 1234567, card 4111 1111 1111 1111."}]"#;
const OPTIONS: &str = r#"{"connector":"main","metadata":{}}"#;

/// The scripts that every peer runs.
const CORPUS: [(&str, &str); 5] = [
    ("nothing", include_str!("corpus/nothing.js")),
    ("metadata", include_str!("corpus/metadata.js")),
    ("redact", include_str!("corpus/redact.js")),
    ("route", include_str!("corpus/route.js")),
    ("sixty_functions", include_str!("corpus/sixty_functions.js")),
];

/// A host that does nothing, at once.
struct NoHost;

impl ContextOps for NoHost {
    fn data(&self) -> RawJson {
        raw(CTX)
    }

    fn inline(&self, op: OpIndex, args: OpArgs) -> Result<Option<RawJson>, OpError> {
        black_box((op, args));
        Ok(None)
    }

    fn start(
        &self,
        _: OpIndex,
        _: OpArgs,
        _: Option<Arc<dyn Callback>>,
    ) -> BoxFuture<'static, Result<Option<RawJson>, OpError>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn console(&self, _level: &str, _text: &str) {}

    fn now_ms(&self) -> f64 {
        0.0
    }

    fn random(&self) -> f64 {
        0.5
    }

    fn wall_deadline(&self, _wall: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

fn raw(text: &str) -> RawJson {
    RawValue::from_string(text.to_owned()).expect("JSON")
}

fn main() {
    // Before any thread is there.
    let v8 = initialise_v8();
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(20)
        .configure_from_args();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let engine = V8Engine::start(v8, &TABLE, V8Options::default()).expect("V8 starts");
    let quickjs = greenroom_isolate_quickjs::QuickJs::new(&TABLE);
    let ours: [(&str, &dyn IsolateDriver, Isolation); 4] = [
        ("greenroom_frozen", &engine, Isolation::Frozen),
        ("greenroom_context", &engine, Isolation::Context),
        ("greenroom_isolate", &engine, Isolation::Isolate),
        ("greenroom_quickjs", &quickjs, Isolation::Context),
    ];
    let mut node = Node::start();
    let deno = Deno::find();
    if node.is_none() || deno.is_none() {
        eprintln!("Node or Deno is not installed: ./x bench --peers does it");
    }
    let args = format!("[{MESSAGES},{OPTIONS}]");
    for (name, code) in CORPUS {
        let hook = Hook { script: code, ctx: CTX, args: &args };
        let mut group = criterion.benchmark_group(format!("isolate_peers/{name}"));
        let script = Arc::new(Script::new(format!("{name}.js"), code));
        for (peer, engine, isolation) in ours {
            same(&runtime.block_on(call(engine, &script, isolation)), &peers::quickjs(&hook), name);
            group.bench_function(peer, |bencher| {
                bencher.iter(|| black_box(runtime.block_on(call(engine, &script, isolation))));
            });
        }
        group.bench_function("quickjs_bare", |bencher| bencher.iter(|| black_box(peers::quickjs(&hook))));
        if let Some(node) = &mut node {
            group.bench_function("node_vm", |bencher| bencher.iter_custom(|times| node.run(&hook, times)));
        }
        if let Some(deno) = &deno {
            group.sample_size(10);
            group.bench_function("deno_process", |bencher| bencher.iter_custom(|times| deno.run(&hook, times)));
        }
        group.finish();
    }
    criterion.final_summary();
    print();
}

async fn call(engine: &dyn IsolateDriver, script: &Arc<Script>, isolation: Isolation) -> String {
    let request = CallRequest {
        script: script.clone(),
        function: "Create".to_owned(),
        pass_ctx: PassCtx::First,
        args: vec![raw(MESSAGES), raw(OPTIONS)],
        limits: Limits { isolation, ..Limits::default() },
    };
    match engine.call(request, Arc::new(NoHost), HandOff::Concurrent, &CancellationToken::new()).await {
        Ok(CallValue::Json(value)) => value.get().to_owned(),
        Ok(CallValue::Undefined) => String::new(),
        other => panic!("{} gave {other:?}", script.name),
    }
}

/// What is compared must do the same work.
fn same(ours: &str, theirs: &str, name: &str) {
    let value = |text: &str| serde_json::from_str::<Value>(text).ok();
    assert_eq!(value(ours), value(theirs), "{name} gives the same everywhere");
}

/// A row for each script: the medians of this run, ours first.
fn print() {
    const COLUMNS: [&str; 7] = [
        "greenroom_frozen",
        "greenroom_context",
        "greenroom_isolate",
        "greenroom_quickjs",
        "quickjs_bare",
        "node_vm",
        "deno_process",
    ];
    print!("\n{:<18}", "median of a hook");
    for column in COLUMNS {
        print!(" {column:>18}");
    }
    println!();
    for (name, _) in CORPUS {
        print!("{name:<18}");
        for column in COLUMNS {
            print!(" {:>18}", median(&format!("isolate_peers_{name}"), column).map_or("-".to_owned(), time));
        }
        println!();
    }
}

fn median(group: &str, function: &str) -> Option<f64> {
    let target = PathBuf::from(env!("CARGO_BIN_EXE_greenroom")).parent()?.parent()?.join("criterion");
    let text = std::fs::read_to_string(target.join(group).join(function).join("new/estimates.json")).ok()?;
    let estimates: Value = serde_json::from_str(&text).ok()?;
    estimates["median"]["point_estimate"].as_f64()
}

fn time(nanos: f64) -> String {
    match nanos {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.1} µs", n / 1e3),
        n => format!("{:.1} ms", n / 1e6),
    }
}
