//! No call sees what another one left, at any level; time and chance are those of the call.

use std::sync::Arc;

use greenroom_boundary::conformance::isolate::TestCtx;
use greenroom_boundary::isolate::{CallValue, HandOff, IsolateDriver, IsolateError, Isolation};
use greenroom_isolate_v8::V8Options;
use serde_json::json;
use test_case::{test_case, test_matrix};

use crate::world::{World, json, script};

fn world(isolation: Isolation) -> World {
    let mut world = World::with(V8Options { most_threads: 1, ..V8Options::default() }, HandOff::Strict);
    world.limits.isolation = isolation;
    world
}

/// Leaves something wherever a script can, and says where it finds what an earlier call left.
const SQUATTER: &str = r"
    let mine = 0; var also = 0; function own() {}
    const places = () => [globalThis, Object, Object.prototype, Array.prototype, Function.prototype, Math, JSON, Promise, Promise.prototype,
        RegExp, Error, Error.prototype, TypeError.prototype, Symbol, Intl, Intl.NumberFormat.prototype, Reflect, console, console.log, Date,
        Date.prototype, Map.prototype, (function* () {}).constructor.prototype, (async () => {}).constructor.prototype,
        Object.getPrototypeOf(Int8Array), Object.getPrototypeOf([][Symbol.iterator]()), Object.getPrototypeOf(''[Symbol.iterator]()),
        Object.getPrototypeOf(new Map().keys()), Object.getPrototypeOf('x'.matchAll(/x/g)), Object.getPrototypeOf(own.prototype),
        Object.getPrototypeOf(async function* () {}), Object.getPrototypeOf((function* () {})()), Array.prototype[Symbol.unscopables],
        (strings => strings)`a`, (strings => strings.raw)`b`, Iterator.prototype, Object.getPrototypeOf([].values().map(x => x)),
        URL, URL.prototype, setTimeout, AbortSignal.prototype, Object.getPrototypeOf(AbortSignal), crypto, performance, Headers.prototype, TextEncoder,
        DOMException.prototype, structuredClone, fetch, btoa,
        Object.getPrototypeOf(new Intl.Segmenter().segment('x')), Symbol.for('left'), Object.getPrototypeOf(async () => {})];
    function f(ctx) {
        const found = [];
        const all = [...places(), Object.getPrototypeOf(ctx), Object.getPrototypeOf(ctx.memory), ctx.Send, own];
        all.forEach((place, at) => {
            if (place.left !== undefined) found.push(at);
        });
        all.forEach((place) => {
            try { place.left = 1 } catch {}
            try { Object.defineProperty(place, 'left', { value: 1 }) } catch {}
            try { Object.setPrototypeOf(place, { left: 1 }) } catch {}
        });
        if (mine++ !== 0 || also++ !== 0) found.push('variables');
        if (RegExp.$1) found.push('the last match');
        /(l)eft/.test('left');
        try { undeclared = 1; } catch {}
        if (globalThis.undeclared !== undefined && found.length > 0) found.push('a global');
        if (Error.stackTraceLimit !== 10) found.push('the stack limit');
        try { Error.stackTraceLimit = 3 } catch {}
        try { Array.prototype.map = null } catch {}
        try { globalThis.JSON = null } catch {}
        Promise.resolve().then(() => { try { ctx.Send('late') } catch {} });
        throw { message: JSON_OF(found) };
    }
    const JSON_OF = (found) => found.join();
";

#[test_matrix([Isolation::Frozen, Isolation::Context, Isolation::Isolate])]
fn nothing_bleeds(isolation: Isolation) {
    let world = world(isolation);
    let same = script(SQUATTER);
    for round in 0..4 {
        let mut request = world.request("");
        request.script = Arc::clone(&same);
        let ctx = Arc::new(TestCtx::default());
        match world.call_with(request, ctx.clone()) {
            Err(IsolateError::Js(exception)) => assert_eq!(exception.message, "", "round {round}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(ctx.log(), Vec::<String>::new(), "a job of an earlier call ran");
    }
}

#[test_case("function f() { class Mine extends Error { constructor() { super('m'); this.name = 'Mine' } } const e = new Mine(); return [e.name, e.message] }", json!(["Mine", "m"]); "an error class by hand")]
#[test_case("function Old() {} Old.prototype = Object.create(Error.prototype); Old.prototype.constructor = Old; Old.prototype.toString = () => 'old'; function f() { return `${new Old()}` }", json!("old"); "an old-style class")]
#[test_case("function f() { const o = {}; o.toString = () => 'o'; o.constructor = 1; return `${o}` + Object.keys(o) }", json!("otoString,constructor"); "own toString")]
#[test_case("function f() { 'use strict'; const g = () => 1; g.toString = () => 'g'; g.call = 2; return g + g.call }", json!("g2"); "own properties of functions")]
#[test_case("const list = [3, 1]; function f() { list.sort(); list.push(2); return list }", json!([1, 3, 2]); "module-level lists")]
#[test_case("function f() { return [new Date(0).toISOString(), 'äb'.localeCompare('b'), (1234.5).toLocaleString('de-DE'), [..._()].length] } function* _() { yield 1 }", json!(["1970-01-01T00:00:00.000Z", -1, "1.234,5", 1]); "built-ins")]
#[test_case("async function f() { const all = await Promise.all([1, 2].map(async n => { await null; return n * 2 })); return structured(all) } const structured = all => JSON.parse(JSON.stringify({ all }))", json!({"all": [2, 4]}); "promises")]
#[test_case("export function f() { return [typeof this, g()] }\nexport const g = () => 'export';\n// export default nothing", json!(["undefined", "export"]); "plain exports")]
#[test_case("const f = () => 7; export { f }; let n = 0; export default () => n++", json!(7); "an export list")]
#[test_case("let n = 0; await null; export function f() { return n++ }", json!(0); "a top-level await")]
#[test_case("/* export */ const text = `export\nexport function x`; export function f() { return text.length }", json!(24); "the word export in text")]
fn ordinary_scripts_work_frozen(code: &str, wanted: serde_json::Value) {
    let world = world(Isolation::Frozen);
    let mut request = world.request(code);
    request.pass_ctx = greenroom_boundary::isolate::PassCtx::No;
    for _ in 0..3 {
        assert_eq!(json(world.call_with(request.clone(), Arc::new(TestCtx::default()))), wanted);
    }
}

#[test_matrix([Isolation::Frozen, Isolation::Context, Isolation::Isolate])]
fn what_is_no_function_is_none(isolation: Isolation) {
    let world = world(isolation);
    for code in [
        "const f = () => 1",
        "class f {}",
        "let f = 1",
        "{ let f = () => 1 }",
        "function g() { function f() {} }",
        "// function f() {}",
        "export class f {}",
    ] {
        assert!(matches!(world.call(code), Ok(CallValue::NoSuchFunction)), "{code}");
    }
    let mut request = world.request("function f() {}");
    for name in ["Map", "toString", "eval", "x y", "", "f;let f", "1"] {
        name.clone_into(&mut request.function);
        let outcome = world.call_with(request.clone(), Arc::new(TestCtx::default()));
        assert!(matches!(outcome, Ok(CallValue::NoSuchFunction)), "{name}: {outcome:?}");
    }
}

#[test_matrix([Isolation::Frozen, Isolation::Context, Isolation::Isolate])]
fn positions_are_those_of_the_file(isolation: Isolation) {
    let world = world(isolation);
    for (code, column) in [
        ("function f() { null.x }", 21),
        ("export function f() { null.x }", 28),
        ("\n function f() { null.x } export { f }", 22),
    ] {
        let exception = world.thrown(code);
        let line = if code.starts_with('\n') { 2 } else { 1 };
        assert_eq!(exception.frames.first().map(|frame| (frame.line, frame.column)), Some((line, column)), "{code}");
    }
}

/// Spare contexts are made ready before a call; what the top level asks of the host is asked by its own call all the same.
#[test_matrix([Isolation::Frozen, Isolation::Context, Isolation::Isolate])]
fn a_top_level_asks_its_own_call(isolation: Isolation) {
    let world = world(isolation);
    let same = script(
        "const drawn = [Math.random(), Date.now()]; console.log('loading'); function f() { return [...drawn, Math.random()] }",
    );
    for _ in 0..6 {
        let mut request = world.request("");
        request.script = Arc::clone(&same);
        let ctx = Arc::new(TestCtx::default());
        assert_eq!(json(world.call_with(request, ctx.clone())), json!([0.125, 1_700_000_000_123_i64, 0.25]));
        assert_eq!(ctx.log(), ["console.log loading"]);
    }
}

/// The top level of this script runs ahead; nothing of that can be seen.
#[test]
fn running_ahead_shows_nowhere() {
    let world = world(Isolation::Context);
    let same = script(
        "const order = []; Promise.resolve().then(() => order.push('job')); let n = 0; async function f() { order.push('call'); await null; return [order, n++] }",
    );
    for _ in 0..8 {
        let mut request = world.request("");
        request.script = Arc::clone(&same);
        assert_eq!(json(world.call_with(request, Arc::new(TestCtx::default()))), json!([["call", "job"], 0]));
    }
    let rejected = script("Promise.reject(new Error('early')); function f() { return 1 }");
    for _ in 0..4 {
        let mut request = world.request("");
        request.script = Arc::clone(&rejected);
        let outcome = world.call_with(request, Arc::new(TestCtx::default()));
        assert!(matches!(outcome, Err(IsolateError::UnhandledRejection(_))), "{outcome:?}");
    }
    assert_eq!(world.engine.counters().active_calls, 0);
}
