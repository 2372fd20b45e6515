//! Nothing stays behind.

use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::conformance::isolate::{TestCtx, WhenSlow};
use greenroom_boundary::isolate::{CallValue, Callback, ContextOps, IsolateDriver, IsolateError, OpArgs, OpError, OpIndex};
use greenroom_boundary::{BoxFuture, RawJson};
use serde_json::json;

use crate::world::{World, raw, script};

#[test]
fn two_hundred_calls_leave_nothing() {
    let mut world = World::new();
    world.limits.heap_bytes = 24 << 20;
    // Each leaves a megabyte behind in its context; the heap holds no more than some of them.
    let code = "globalThis.kept = new Array(120000).fill(0).map((_, i) => i + 0.5)
        let ctxs = []
        async function f(ctx, i) { ctxs.push(ctx); globalThis.last = ctx; await ctx.mcp.CallToolAsync('s', i); return i + kept.length }";
    let same = script(code);
    for i in 0..200 {
        let ctx = Arc::new(TestCtx::default());
        let mut request = world.request("");
        request.script = Arc::clone(&same);
        request.args = vec![raw(&i.to_string())];
        let outcome = world.call_with(request, ctx.clone());
        assert!(matches!(&outcome, Ok(CallValue::Json(text)) if text.get() == (120_000 + i).to_string()), "{i}: {outcome:?}");
        assert_eq!(Arc::strong_count(&ctx), 1, "somebody keeps the host's side of call {i}");
    }
    let counters = world.engine.counters();
    assert_eq!((counters.active_calls, counters.live_handles, counters.finished_calls), (0, 0, 200));
}

#[test]
fn however_a_call_ends_the_hosts_side_is_dropped() {
    let mut world = World::new();
    world.limits.cpu = Duration::from_millis(50);
    for code in [
        "function f(ctx) { throw new Error('x', { cause: 1 }) }",
        "function f(ctx) { for (;;) {} }",
        "function f(ctx) { ctx.slow() }",
        "function f(ctx) { return ctx.slowAsync() }",
        "async function f(ctx) { ctx.slowAsync(); ctx.slowAsync(); return 1 }",
        "function f(ctx) { return new Promise(() => {}) }",
        "function f(ctx) { ctx.llm.Stream('m', [], { onChunk() { throw ctx } }) }",
        "function nothing() {}",
        "syntax error",
    ] {
        let ctx = Arc::new(TestCtx::when_slow(WhenSlow::WallPasses));
        let _ = world.call_with(world.request(code), ctx.clone());
        assert_eq!((Arc::strong_count(&ctx), ctx.slow_under_way()), (1, 0), "{code}");
        let counters = world.engine.counters();
        assert_eq!((counters.active_calls, counters.live_handles), (0, 0), "{code}");
    }
}

#[test]
fn a_released_ctx_stays_dead_and_others_live() {
    let world = World::new();
    let code = "function f(ctx) {
          const { memory } = ctx, kept = () => ctx.Send('x'), codes = []
          ctx.__release(); ctx.Release(); ctx[Symbol.dispose]()
          for (const use of [kept, () => memory.context.Get('k'), () => ctx.mcp.CallTool('s', 't')]) {
            try { use(); codes.push('lives') } catch (e) { codes.push([e.code, e instanceof Error, e instanceof TypeError]) }
          }
          return codes
        }";
    let dead = json!(["ERR_RELEASED", true, false]);
    assert_eq!(world.value(code), json!([dead, dead, dead]));
    world.is_unharmed();
}

#[test]
fn a_method_is_bound_to_its_own_group() {
    let world = World::new();
    let code = "function f(ctx) { try { ctx.mcp.CallTool.call(ctx, 's', 't') } catch (e) { return [e.name, e.code] } }";
    assert_eq!(world.value(code), json!(["TypeError", "ERR_RECEIVER"]));
}

#[test]
fn an_engine_can_be_dropped_with_work_behind_it() {
    let world = World::new();
    assert!(matches!(world.call("function f() { return new Promise(() => {}) }"), Err(IsolateError::NeverSettles)));
    drop(world);
    World::new().is_unharmed();
}

/// A host whose operations panic.
struct Panics(TestCtx);

impl ContextOps for Panics {
    fn data(&self) -> RawJson {
        self.0.data()
    }

    fn inline(&self, _op: OpIndex, _args: OpArgs) -> Result<Option<RawJson>, OpError> {
        panic!("a bug of the host")
    }

    fn start(
        &self,
        op: OpIndex,
        args: OpArgs,
        callback: Option<Arc<dyn Callback>>,
    ) -> BoxFuture<'static, Result<Option<RawJson>, OpError>> {
        self.0.start(op, args, callback)
    }

    fn console(&self, level: &str, text: &str) {
        self.0.console(level, text);
    }

    fn now_ms(&self) -> f64 {
        self.0.now_ms()
    }

    fn random(&self) -> f64 {
        self.0.random()
    }

    fn wall_deadline(&self, wall: Duration) -> BoxFuture<'static, ()> {
        self.0.wall_deadline(wall)
    }
}

#[test]
fn a_panic_of_an_operation_is_an_error_of_the_script() {
    let world = World::new();
    let code = "function f(ctx) { try { ctx.Send('x') } catch (e) { return e.code } }";
    let outcome = world.call_with(world.request(code), Arc::new(Panics(TestCtx::default())));
    assert!(matches!(&outcome, Ok(CallValue::Json(text)) if text.get() == "\"ERR_INTERNAL\""), "{outcome:?}");
    world.is_unharmed();
}
