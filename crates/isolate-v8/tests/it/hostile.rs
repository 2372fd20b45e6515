//! Scripts that try to stay, to grow, or to get out.

use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::conformance::isolate::TestCtx;
use greenroom_boundary::isolate::{HandOff, IsolateError};
use greenroom_isolate_v8::V8Options;
use test_case::test_case;

use crate::world::World;

#[test_case("for (;;) {}"; "an empty loop")]
#[test_case("return /^(a+)+$/.test('a'.repeat(60) + 'b')"; "regex backtracking")]
#[test_case("function g() { try { g() } finally { g() } } g()"; "stack overflow doubled by finally")]
#[test_case("return [3, 1, 2].sort(() => { for (;;) {} })"; "a comparator that spins")]
#[test_case("for (;;) { try { null.x } catch {} }"; "a loop of caught errors")]
#[test_case("for (;;) new Array(1000).fill(1.5)"; "a loop around fill")]
#[test_case("let n = 0; while (n >= 0) n = new Array(100).fill(n).length"; "a loop whose condition comes of fill")]
#[test_case("let n = 0; for (;;) for (let i = 0; i < 10; i++) n = (n + i) | 0"; "a loop around a short one")]
#[test_case("for (;;) { const a = new Array(100); for (let i = 0; i < 100; i++) a[i] = 1.5 }"; "a loop around one that fills")]
#[test_case("let n = 0; for (;;) [1, 2, 3].forEach(x => { n = (n + x) | 0 })"; "a loop around forEach")]
#[test_case("return new Proxy({}, { ownKeys() { for (;;) {} } })"; "a proxy as the result")]
#[test_case("throw new Proxy({}, { get() { for (;;) {} } })"; "a proxy as the error")]
#[test_case("return { get then() { for (;;) {} } }"; "a getter for then")]
#[test_case("Object.prototype.toJSON = () => { for (;;) {} }; return ctx.Send({})"; "toJSON on every object")]
#[test_case("const p = Promise.reject(1); p.then = null; queue(); function queue() { Promise.resolve().then(queue) } return 1"; "a microtask storm after the result")]
fn computing_for_ever_is_stopped(body: &str) {
    let mut world = World::new();
    world.limits.cpu = Duration::from_millis(60);
    let error = world.call(&format!("function f(ctx) {{ {body} }}")).expect_err("it must not end");
    assert_eq!(error, IsolateError::CpuLimit { limit_ms: 60 });
    world.is_unharmed();
}

#[test_case("const all = []; for (;;) all.push({ x: [1, 2, 3] })"; "small objects")]
#[test_case("const all = []; for (;;) all.push(new Array(100000).fill(1.5))"; "arrays")]
#[test_case("let s = 'x'; const all = []; for (;;) { s += s + 'é漢'; all.push(s.split('')) }"; "a string that doubles")]
#[test_case("const m = new Map(); for (let i = 0; ; i++) m.set(i, 'v' + i)"; "a map")]
#[test_case("const all = []; for (;;) all.push(new ArrayBuffer(1 << 20))"; "array buffers")]
#[test_case("let g = () => 1; for (;;) { const h = g; g = () => h }"; "closures")]
#[test_case("return new Array(30000000).fill(7).length"; "one huge array")]
fn growing_for_ever_is_stopped(body: &str) {
    let mut world = World::new();
    world.limits.heap_bytes = 24 << 20;
    let error = world.call(&format!("function f(ctx) {{ {body} }}")).expect_err("it must not end");
    assert_eq!(error, IsolateError::HeapLimit { limit_bytes: 24 << 20 });
    world.is_unharmed();
}

#[test]
fn nothing_of_the_script_runs_after_a_kill() {
    let mut world = World::new();
    world.limits.cpu = Duration::from_millis(60);
    let ctx = Arc::new(TestCtx::default());
    let code = "async function inner() { await null; try { for (;;) {} } finally { return inner() } }
        async function f(ctx) {
          for (;;) { try { await Promise.allSettled([inner(), inner()]) } catch { ctx.Send('caught') } finally { ctx.Send('finally') } }
        }";
    let error = world.call_with(world.request(code), ctx.clone()).expect_err("it must not end");
    assert_eq!(error, IsolateError::CpuLimit { limit_ms: 60 });
    assert_eq!(ctx.log(), Vec::<String>::new());
    world.is_unharmed();
}

#[test]
fn kills_do_not_bleed_into_the_next_call() {
    let mut world = World::with(V8Options { most_threads: 1, ..V8Options::default() }, HandOff::Strict);
    world.limits.cpu = Duration::from_millis(20);
    for _ in 0..15 {
        world.call("function f() { for (;;) {} }").expect_err("it must not end");
        world.is_unharmed();
    }
}

/// A built-in of V8 that never looks whether it should stop: the call ends without it, and its thread is given up.
#[test_case(HandOff::Strict)]
#[test_case(HandOff::Concurrent)]
fn a_builtin_that_cannot_be_interrupted_is_left_behind(hand_off: HandOff) {
    let mut world = World::with(V8Options { most_threads: 1, ..V8Options::default() }, hand_off);
    world.limits.cpu = Duration::from_millis(20);
    let code = "function f(ctx) { const n = 'a'.repeat(30000); return ('a'.repeat(300000)).lastIndexOf(n + 'b') }";
    let error = world.call(code).expect_err("it is stopped");
    assert_eq!(error, IsolateError::CpuLimit { limit_ms: 20 });
    assert_eq!(world.engine.census().given_up_threads, 1);
    world.goes_on();
}

#[test_case("return eval('1 + 1')"; "eval")]
#[test_case("return new Function('return 1')()"; "Function")]
#[test_case("return (async () => {}).constructor('return 1')()"; "AsyncFunction")]
#[test_case("return (function* () {}).constructor('yield 1')()"; "GeneratorFunction")]
fn code_is_not_made_from_strings(body: &str) {
    let world = World::new();
    assert_eq!(world.thrown(&format!("function f() {{ {body} }}")).class, "EvalError");
}

#[test]
fn dangerous_globals_are_absent() {
    let world = World::new();
    let code = "function f() { return ['Temporal', 'WebAssembly', 'SharedArrayBuffer', 'Atomics', 'FinalizationRegistry', 'WeakRef'].filter(n => n in globalThis) }";
    assert_eq!(world.value(code), serde_json::json!([]));
}

#[test]
fn dynamic_import_is_refused() {
    let world = World::new();
    let error = world.call("async function f() { return await import('node:fs') }").expect_err("there is nothing to import");
    assert!(matches!(error, IsolateError::Js(_)), "{error:?}");
    world.is_unharmed();
}

#[test]
fn deep_values_do_not_overflow_the_host() {
    let world = World::new();
    let code = "function f(ctx) { let v = []; for (let i = 0; i < 200000; i++) v = [v]; try { ctx.Send(v) } catch (e) { return e.name } return 'sent' }";
    let answer = world.value(code);
    assert!(answer == "RangeError" || answer == "sent", "{answer}");
    world.is_unharmed();
}

#[test]
fn buffers_have_a_budget_and_it_is_given_back() {
    let mut world = World::new();
    world.limits.heap_bytes = 16 << 20;
    for _ in 0..5 {
        assert_eq!(world.value("function f() { return new ArrayBuffer(12 << 20).byteLength }"), 12 << 20);
    }
    let caught = "function f(ctx) { try { new ArrayBuffer(64 << 20) } catch { ctx.Send('caught') } for (;;) {} }";
    let error = world.call(caught).expect_err("it is over the budget");
    assert_eq!(error, IsolateError::HeapLimit { limit_bytes: 16 << 20 });
    world.is_unharmed();
}
