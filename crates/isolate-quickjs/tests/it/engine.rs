//! What is this engine's own: exhausted memory in small pieces, threads that are used again, calls within calls.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use greenroom_boundary::conformance::isolate::{TABLE, TestCtx};
use greenroom_boundary::isolate::{
    CallRequest, CallValue, Callback, ContextOps, HandOff, IsolateDriver, IsolateError, Limits, OpArgs, OpError, OpIndex,
    PassCtx, Script,
};
use greenroom_boundary::{CancellationToken, RawJson};
use greenroom_isolate_quickjs::QuickJs;

fn request(code: &str, limits: Limits) -> CallRequest {
    let script = Arc::new(Script::new("hook.js", code));
    CallRequest { script, function: "f".to_owned(), pass_ctx: PassCtx::First, args: Vec::new(), limits }
}

fn call(engine: &QuickJs, ctx: Arc<dyn ContextOps>, code: &str, limits: Limits) -> Result<CallValue, IsolateError> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(engine.call(request(code, limits), ctx, HandOff::Strict, &CancellationToken::new()))
}

#[test]
fn small_objects_exhaust_memory() {
    let engine = QuickJs::new(TABLE);
    let limits = Limits { heap_bytes: 8 << 20, cpu: Duration::from_secs(20), ..Limits::default() };
    let ctx = Arc::new(TestCtx::default());
    let code = "function f(ctx) { let all; for (;;) { try { for (;;) all = { all, text: 'x' + Math.random() } } catch { ctx.Send(1) } } }";
    let outcome = call(&engine, Arc::clone(&ctx) as _, code, limits);
    assert!(matches!(outcome, Err(IsolateError::HeapLimit { .. } | IsolateError::CpuLimit { .. })), "{outcome:?}");
}

#[test]
fn many_calls_leave_nothing() {
    let engine = QuickJs::new(TABLE);
    for round in 0..200 {
        let code = "async function f(ctx) { return (await ctx.mcp.CallToolAsync('s', 't')).called.length }";
        let outcome = call(&engine, Arc::new(TestCtx::default()), code, Limits::default());
        assert!(matches!(outcome, Ok(CallValue::Json(ref json)) if json.get() == "2"), "{round}: {outcome:?}");
    }
    let counters = engine.counters();
    assert_eq!((counters.active_calls, counters.live_handles, counters.finished_calls), (0, 0, 200));
}

/// A host whose `mcp.CallTool` calls the same script again, until its depth.
struct Nesting {
    engine: Arc<QuickJs>,
    depth: u32,
    seen: Arc<Mutex<Vec<u32>>>,
}

impl ContextOps for Nesting {
    fn data(&self) -> RawJson {
        serde_json::value::to_raw_value(&serde_json::json!({ "depth": self.depth })).expect("JSON")
    }

    fn inline(&self, _: OpIndex, _: OpArgs) -> Result<Option<RawJson>, OpError> {
        self.seen.lock().expect("no panic").push(self.depth);
        Ok(None)
    }

    fn start(
        &self,
        _: OpIndex,
        _: OpArgs,
        _: Option<Arc<dyn Callback>>,
    ) -> BoxFuture<'static, Result<Option<RawJson>, OpError>> {
        let engine = Arc::clone(&self.engine);
        let inner = Arc::new(Self { engine: Arc::clone(&engine), depth: self.depth - 1, seen: Arc::clone(&self.seen) });
        Box::pin(async move {
            let outcome =
                engine.call(request(NESTED, Limits::default()), inner, HandOff::Strict, &CancellationToken::new()).await;
            match outcome {
                Ok(CallValue::Json(json)) => Ok(Some(json)),
                other => Err(OpError::new("ERR_NESTED", format!("{other:?}"))),
            }
        })
    }

    fn console(&self, _: &str, _: &str) {}

    fn now_ms(&self) -> f64 {
        0.0
    }

    fn random(&self) -> f64 {
        0.5
    }

    fn wall_deadline(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

const NESTED: &str = "function f(ctx) { ctx.Send(1); const below = ctx.depth > 0 ? ctx.mcp.CallTool('s', 't') : 0; ctx.Send(2); return below + 1 }";

#[test]
fn a_call_within_a_call_within_a_call() {
    let engine = Arc::new(QuickJs::new(TABLE));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let outer = Arc::new(Nesting { engine: Arc::clone(&engine), depth: 5, seen: Arc::clone(&seen) });
    let outcome = call(&engine, outer, NESTED, Limits::default());
    assert!(matches!(outcome, Ok(CallValue::Json(ref json)) if json.get() == "6"), "{outcome:?}");
    assert_eq!(*seen.lock().expect("no panic"), [5, 4, 3, 2, 1, 0, 0, 1, 2, 3, 4, 5]);
    assert_eq!(engine.counters().active_calls, 0);
}
