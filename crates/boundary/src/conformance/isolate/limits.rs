//! Limits kill: nothing of a script runs after them, and the next call is unharmed.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::ctx::WhenSlow;
use super::{Case, EngineUnderTest, TestCtx};
use crate::CancellationToken;
use crate::isolate::{HandOff, IsolateError};

pub(super) fn cases() -> Vec<Case> {
    case_list![limits:
        cpu_limit, cpu_limit_cannot_be_caught, cpu_limit_in_conversions, cpu_limit_at_load, cpu_limit_in_callback,
        cpu_time_excludes_ops, heap_limit, heap_limit_cannot_be_caught, wall_limit_drops_the_op, wall_limit_on_a_promise,
        wall_limit_runs_no_finally, cancelled_before, cancelled_while_waiting, cancelled_while_computing, result_too_large,
        argument_too_large, op_argument_too_large, never_settles, dropped_call_leaves_nothing,
    ]
}

const CPU: IsolateError = IsolateError::CpuLimit { limit_ms: 40 };

async fn cpu_limit(t: EngineUnderTest) {
    for body in ["for (;;) {}", "return [1].map(function g(n) { for (;;) n++ })", "'a'.replace(/a/g, () => { for (;;) {} })"] {
        assert_eq!(t.shot(&format!("function f() {{ {body} }}")).cpu_ms(40).error().await, CPU, "{body}");
        t.still_works().await;
    }
}

async fn cpu_limit_cannot_be_caught(t: EngineUnderTest) {
    for code in [
        "function f(ctx) { for (;;) { try { for (;;) {} } catch { ctx.Send('caught') } finally { ctx.Send('finally') } } }",
        "async function inner() { await null; for (;;) {} }\nasync function f(ctx) { for (;;) { \
         try { await inner() } catch { ctx.Send('caught') } finally { ctx.Send('finally') } } }",
        "function* g(ctx) { try { yield 1 } finally { try { for (;;) {} } finally { ctx.Send('finally') } } }\n\
         function f(ctx) { try { for (const x of g(ctx)) break } finally { ctx.Send('outer') } }",
        "function f(ctx) { return Promise.allSettled([(async () => { await 1; for (;;) {} })()]).then(() => ctx.Send('settled')) }",
        "async function f(ctx) { for (;;) { await null } }",
        "function f(ctx) { const again = () => Promise.resolve().then(again); return again() }",
    ] {
        let ctx = Arc::new(TestCtx::default());
        assert_eq!(t.shot(code).ctx(&ctx).cpu_ms(40).error().await, CPU, "{code}");
        assert_eq!(ctx.log(), Vec::<String>::new(), "{code}");
        t.still_works().await;
    }
}

async fn cpu_limit_in_conversions(t: EngineUnderTest) {
    for body in [
        "return { toJSON() { for (;;) {} } }",
        "return { get a() { for (;;) {} } }",
        "return { then() { for (;;) {} } }",
        "ctx.Send({ toJSON() { for (;;) {} } })",
        "throw { toString() { for (;;) {} } }",
    ] {
        let error = t.shot(&format!("function f(ctx) {{ {body} }}")).cpu_ms(40).error().await;
        assert!(error == CPU || body.starts_with("throw") && matches!(error, IsolateError::Js(_)), "{body}: {error:?}");
        t.still_works().await;
    }
    for property in ["stack", "message", "name", "code", "cause"] {
        let body = format!(
            "const e = new Error('x'); Object.defineProperty(e, '{property}', {{ get() {{ for (;;) {{}} }} }}); throw e"
        );
        let error = t.shot(&format!("function f() {{ {body} }}")).cpu_ms(40).error().await;
        assert!(matches!(error, IsolateError::Js(_)) || error == CPU, "{property}: {error:?}");
        t.still_works().await;
    }
}

async fn cpu_limit_at_load(t: EngineUnderTest) {
    assert_eq!(t.shot("for (;;) {}\nfunction f() {}").cpu_ms(40).error().await, CPU);
    assert_eq!(t.functions("function f() {}\nfor (;;) {}").await.map_err(|error| error.code()), Err("HOOK_CPU_LIMIT"));
    t.still_works().await;
}

async fn cpu_limit_in_callback(t: EngineUnderTest) {
    let ctx = Arc::new(TestCtx::default());
    let code =
        "function f(ctx) { try { ctx.llm.Stream('m', [], { onChunk() { for (;;) {} } }) } catch { ctx.Send('caught') } }";
    assert_eq!(t.shot(code).ctx(&ctx).cpu_ms(40).error().await, CPU);
    assert!(!ctx.log().iter().any(|line| line.contains("caught")));
    t.still_works().await;
}

async fn cpu_time_excludes_ops(t: EngineUnderTest) {
    let code = "function f(ctx) { let n = 0; for (let i = 0; i < 200; i++) n += ctx.mcp.CallTool('s', i).called[1]; return n }";
    assert_eq!(t.shot(code).cpu_ms(2_000).value().await, json!(19_900));
}

const HEAP: usize = 16 << 20;

async fn heap_limit(t: EngineUnderTest) {
    let code = "function f() { const all = []; for (;;) all.push(new Array(1000).fill({})) }";
    let error = t.shot(code).limits(|limits| limits.heap_bytes = HEAP).error().await;
    assert_eq!(error, IsolateError::HeapLimit { limit_bytes: HEAP });
    t.still_works().await;
}

async fn heap_limit_cannot_be_caught(t: EngineUnderTest) {
    let ctx = Arc::new(TestCtx::default());
    let code =
        "function f(ctx) { const all = []; try { for (;;) all.push(new Array(1000).fill({})) } catch { ctx.Send('caught') } }";
    let error = t.shot(code).ctx(&ctx).limits(|limits| limits.heap_bytes = HEAP).error().await;
    assert_eq!(error, IsolateError::HeapLimit { limit_bytes: HEAP });
    assert_eq!(ctx.log(), Vec::<String>::new());
    t.still_works().await;
}

const WALL: IsolateError = IsolateError::WallLimit { limit_ms: 1_500 };

async fn wall(t: &EngineUnderTest, code: &str) {
    let ctx = Arc::new(TestCtx::when_slow(WhenSlow::WallPasses));
    let error = t.shot(code).ctx(&ctx).limits(|limits| limits.wall = Duration::from_millis(1_500)).error().await;
    assert_eq!(error, WALL);
    assert_eq!(ctx.slow_under_way(), 0, "the operation goes on");
    assert!(!ctx.log().iter().any(|line| line.starts_with("Send")), "the script went on: {:?}", ctx.log());
    t.still_works().await;
}

async fn wall_limit_drops_the_op(t: EngineUnderTest) {
    wall(&t, "function f(ctx) { ctx.slow(); ctx.Send('after') }").await;
}

async fn wall_limit_on_a_promise(t: EngineUnderTest) {
    wall(&t, "async function f(ctx) { await ctx.slowAsync(); ctx.Send('after') }").await;
}

async fn wall_limit_runs_no_finally(t: EngineUnderTest) {
    wall(&t, "function f(ctx) { try { ctx.slow() } catch { ctx.Send('caught') } finally { ctx.Send('finally') } }").await;
}

async fn cancelled_before(t: EngineUnderTest) {
    let (ctx, token) = (Arc::new(TestCtx::default()), CancellationToken::new());
    token.cancel();
    let error = t.shot("function f(ctx) { ctx.Send('ran') }").ctx(&ctx).cancel(&token).error().await;
    assert_eq!(error, IsolateError::Cancelled);
    assert_eq!(ctx.log(), Vec::<String>::new());
}

async fn cancelled_while_waiting(t: EngineUnderTest) {
    let token = CancellationToken::new();
    let ctx = Arc::new(TestCtx::when_slow(WhenSlow::Cancel(token.clone())));
    let code = "function f(ctx) { try { ctx.slow() } finally { ctx.Send('finally') } }";
    assert_eq!(t.shot(code).ctx(&ctx).cancel(&token).error().await, IsolateError::Cancelled);
    assert_eq!((ctx.slow_under_way(), ctx.log()), (0, vec!["slow ".to_owned()]));
    t.still_works().await;
}

async fn cancelled_while_computing(t: EngineUnderTest) {
    if t.hand_off == HandOff::Strict {
        return; // The runtime's thread waits for the script: nothing else can cancel meanwhile.
    }
    let token = CancellationToken::new();
    let shot = t.shot("function f() { for (;;) {} }").cancel(&token);
    let (error, ()) = futures::join!(shot.error(), async { token.cancel() });
    assert_eq!(error, IsolateError::Cancelled);
    t.still_works().await;
}

async fn result_too_large(t: EngineUnderTest) {
    let error = t.shot("function f() { return 'x'.repeat(2000) }").limits(|limits| limits.value_bytes = 1_000).error().await;
    assert_eq!(error, IsolateError::ValueLimit { limit_bytes: 1_000 });
    let value = t.shot("function f() { return 'x'.repeat(900) }").limits(|limits| limits.value_bytes = 1_000).value().await;
    assert_eq!(value.as_str().map(str::len), Some(900));
}

async fn argument_too_large(t: EngineUnderTest) {
    let text = format!("\"{}\"", "x".repeat(2_000));
    let shot = t.shot("function f(ctx, a) { return a.length }").args(&[&text]);
    assert_eq!(shot.limits(|limits| limits.value_bytes = 1_000).error().await, IsolateError::ValueLimit { limit_bytes: 1_000 });
}

async fn op_argument_too_large(t: EngineUnderTest) {
    let ctx = Arc::new(TestCtx::default());
    let code = "function f(ctx) { ctx.Send('x'.repeat(2000)) }";
    let error = t.shot(code).ctx(&ctx).limits(|limits| limits.value_bytes = 1_000).error().await;
    assert_eq!(error, IsolateError::ValueLimit { limit_bytes: 1_000 });
    assert_eq!(ctx.log(), Vec::<String>::new());
    t.still_works().await;
}

async fn never_settles(t: EngineUnderTest) {
    for code in ["function f() { return new Promise(() => {}) }", "async function f() { await new Promise(() => {}) }"] {
        assert_eq!(t.shot(code).error().await, IsolateError::NeverSettles, "{code}");
    }
}

async fn dropped_call_leaves_nothing(t: EngineUnderTest) {
    let ctx = Arc::new(TestCtx::default());
    {
        let mut call = Box::pin(t.shot("function f(ctx) { ctx.slow() }").ctx(&ctx).run());
        // Polled until the operation is under way, then dropped.
        while ctx.slow_under_way() == 0 {
            assert!(futures::poll!(&mut call).is_pending());
            super::ctx::yield_once().await;
            std::thread::yield_now();
        }
    }
    assert_eq!(ctx.slow_under_way(), 0);
    t.still_works().await;
}
