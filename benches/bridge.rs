//! The bridge to V8: a hook in a fresh context, a host call that does nothing, and `ctx.Send`.
//!
//! Invariant: the whole call as the host sees it, thread hop included; host calls are counted inside one script so that
//! the hop does not hide them. Deliberately V8 only.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use greenroom::context::TABLE;
use greenroom_boundary::isolate::{
    CallRequest, CallValue, Callback, ContextOps, HandOff, Isolation, Limits, OpArgs, OpError, OpIndex, PassCtx, Script,
};
use greenroom_boundary::{BoxFuture, CancellationToken, IsolateDriver, RawJson};
use greenroom_isolate_v8::{V8Engine, V8Options, initialise_v8};
use serde_json::value::RawValue;

/// A host that does nothing, at once.
struct NoHost;

impl ContextOps for NoHost {
    fn data(&self) -> RawJson {
        RawValue::from_string(r#"{"chat_id":"c","assistant_id":"a","metadata":{}}"#.to_owned()).expect("JSON")
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

const HOOK: &str = r#"
function Create(ctx, messages) { return { messages, metadata: { chat: ctx.chat_id } }; }
function Noop(ctx, times) { for (let i = 0; i < times; i++) ctx.MessageID(); }
function Send(ctx, times) { for (let i = 0; i < times; i++) ctx.Send("hello"); }
"#;

struct Bench {
    runtime: tokio::runtime::Runtime,
    engine: V8Engine,
    script: Arc<Script>,
}

impl Bench {
    fn call(&self, function: &str, argument: &str) {
        self.call_at(Isolation::Context, function, argument);
    }

    fn call_at(&self, isolation: Isolation, function: &str, argument: &str) {
        let request = CallRequest {
            script: self.script.clone(),
            function: function.to_owned(),
            pass_ctx: PassCtx::First,
            args: vec![RawValue::from_string(argument.to_owned()).expect("JSON")],
            limits: Limits { isolation, cpu: Duration::from_secs(60), wall: Duration::from_secs(60), ..Limits::default() },
        };
        let (ctx, cancel) = (Arc::new(NoHost), CancellationToken::new());
        let value = self.runtime.block_on(self.engine.call(request, ctx, HandOff::Strict, &cancel)).expect("a value");
        assert!(!matches!(value, CallValue::NoSuchFunction), "{function} must exist");
        black_box(value);
    }

    /// Time of `times` host calls made inside one hook.
    #[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
    fn inside(&self, function: &str, times: u64) -> Duration {
        let started = Instant::now();
        self.call(function, &times.to_string());
        started.elapsed()
    }
}

fn bridge(criterion: &mut Criterion) {
    let engine = V8Engine::start(initialise_v8(), &TABLE, V8Options::default()).expect("V8 starts");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let script = Arc::new(Script::new("bench.js", HOOK));
    let bench = Bench { runtime, engine, script };
    let mut group = criterion.benchmark_group("bridge");
    group.bench_function("fresh_context_hook", |bencher| {
        bencher.iter(|| bench.call("Create", r#"[{"role":"user","content":"hello"}]"#));
    });
    group.bench_function("frozen_hook", |bencher| {
        bencher.iter(|| bench.call_at(Isolation::Frozen, "Create", r#"[{"role":"user","content":"hello"}]"#));
    });
    group.bench_function("isolate_hook", |bencher| {
        bencher.iter(|| bench.call_at(Isolation::Isolate, "Create", r#"[{"role":"user","content":"hello"}]"#));
    });
    group.bench_function("host_noop", |bencher| bencher.iter_custom(|times| bench.inside("Noop", times)));
    group.bench_function("send", |bencher| bencher.iter_custom(|times| bench.inside("Send", times)));
    group.finish();
}

criterion_group!(benches, bridge);
criterion_main!(benches);
