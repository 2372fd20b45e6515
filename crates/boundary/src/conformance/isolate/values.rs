//! What goes in and what comes out: arguments, results, functions, fresh contexts.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Case, EngineUnderTest, TestCtx};
use crate::isolate::{CallValue, IsolateError};

pub(super) fn cases() -> Vec<Case> {
    case_list![values:
        results, promises_are_awaited, nothing_is_undefined, args_in_order, args_without_ctx, proto_key_stays_data,
        big_text_and_numbers, ctx_data, exports_can_be_called, defaults_can_be_called, functions_in_source_order,
        missing_function, builtins_are_not_functions, globals_do_not_survive, tampering_does_not_survive,
        results_use_the_engines_own_json, not_json, no_host_globals, no_code_from_text, dates_and_random_from_the_host, console_lines,
    ]
}

async fn results(t: EngineUnderTest) {
    for (code, expected) in [
        ("null", json!(null)),
        ("'a\\u2028\"é😀'", json!("a\u{2028}\"é😀")),
        ("1.5", json!(1.5)),
        ("true", json!(true)),
        ("[1, [2], undefined, () => 1]", json!([1, [2], null, null])),
        ("({ a: 1, b: undefined, c() {}, d: { e: NaN } })", json!({ "a": 1, "d": { "e": null } })),
        ("new Date(0)", json!("1970-01-01T00:00:00.000Z")),
        ("new Map([[1, 2]])", json!({})),
    ] {
        assert_eq!(t.value(&format!("function f() {{ return {code} }}")).await, expected, "{code}");
    }
}

async fn promises_are_awaited(t: EngineUnderTest) {
    assert_eq!(t.value("async function f() { await null; return { a: 1 } }").await, json!({ "a": 1 }));
    assert_eq!(t.value("function f() { return Promise.resolve().then(() => 2).then(n => n + 1) }").await, json!(3));
    assert_eq!(t.value("function f() { return { then(resolve) { resolve(4) } } }").await, json!(4));
}

async fn nothing_is_undefined(t: EngineUnderTest) {
    for code in
        ["function f() {}", "async function f() {}", "function f() { return undefined }", "function f() { return () => 1 }"]
    {
        let outcome = t.shot(code).run().await;
        assert!(matches!(outcome, Ok(CallValue::Undefined)), "{code}: {outcome:?}");
    }
}

async fn args_in_order(t: EngineUnderTest) {
    let code = "function f(ctx, ...rest) { return [typeof ctx.Send, arguments.length, ...rest] }";
    let value = t.shot(code).args(&["1", r#""two""#, r#"{"z":1,"a":[null]}"#]).value().await;
    assert_eq!(value.to_string(), r#"["function",4,1,"two",{"z":1,"a":[null]}]"#);
}

async fn args_without_ctx(t: EngineUnderTest) {
    let value = t.shot("function f(...all) { return all }").no_ctx().args(&["1", "2"]).value().await;
    assert_eq!(value, json!([1, 2]));
}

async fn proto_key_stays_data(t: EngineUnderTest) {
    let text = r#"{"__proto__":{"x":1},"constructor":2}"#;
    let code = "function f(ctx, o) { return [Object.keys(o), o.x === undefined, ({}).x === undefined, o] }";
    let value = t.shot(code).args(&[text]).value().await;
    assert_eq!(value.to_string(), format!(r#"[["__proto__","constructor"],true,true,{text}]"#));
}

async fn big_text_and_numbers(t: EngineUnderTest) {
    let text = serde_json::to_string(&"é😀\n".repeat(50_000)).expect("JSON");
    let value = t.shot("function f(ctx, s) { return [s.length, s] }").args(&[&text]).value().await;
    assert_eq!(value[0], json!(200_000));
    assert_eq!(value[1].to_string(), text);
    assert_eq!(
        t.shot("function f(ctx, n) { return n }").args(&["9007199254740991"]).value().await,
        json!(9_007_199_254_740_991_u64)
    );
}

async fn ctx_data(t: EngineUnderTest) {
    let code =
        "function f(ctx) { return [ctx.chat_id, ctx.metadata.depth.n[1], ctx.locale, ctx.empty, ctx.nothing === undefined] }";
    assert_eq!(t.value(code).await, json!(["chat-1", 2, "en-gb", null, true]));
}

async fn exports_can_be_called(t: EngineUnderTest) {
    let code = "export function a() { return 'a' }\nexport async function b() { return 'b' }\nfunction c() { return 'c' + a() }\n\
                export const d = () => 'd'\nfunction inner() { return 'e' }\nexport { inner as e }\n";
    for name in ["a", "b", "c", "d", "e"] {
        let value = t.shot(code).function(name).value().await;
        assert_eq!(value, json!(if name == "c" { "ca" } else { name }), "{name}");
    }
}

async fn defaults_can_be_called(t: EngineUnderTest) {
    for code in [
        "export default function () { return 'default' }",
        "export default function named() { return 'default' }",
        "export default async () => 'default'",
        "export default async function () { return 'default' }",
        "const x = () => 'default'\nexport default x",
        "const x = () => 'default'\nexport { x as default }",
    ] {
        assert_eq!(t.shot(code).function("default").value().await, json!("default"), "{code}");
    }
}

async fn functions_in_source_order(t: EngineUnderTest) {
    let code = "// export function commented() {}\nconst text = 'export function quoted() {}'\nfunction zeta() { function nested() {} }\n\
                export async function alpha() {}\nexport const mid = () => 1\nexport const three = 3\nexport function* gen() {}\n\
                class Kept {}\nexport default function () {}\n";
    assert_eq!(t.functions(code).await, Ok(["zeta", "alpha", "mid", "gen", "default"].map(str::to_owned).to_vec()));
    assert_eq!(t.functions("").await, Ok(Vec::new()));
}

async fn missing_function(t: EngineUnderTest) {
    let code = "const notOne = 1\nexport function g() { return nope() }\nlet missing\n";
    for name in ["f", "notOne", "missing", "g.h", "a b", "", "()", "__proto__"] {
        let outcome = t.shot(code).function(name).run().await;
        assert!(matches!(outcome, Ok(CallValue::NoSuchFunction)), "{name}: {outcome:?}");
    }
    let outcome = t.shot("function f() { const x = 1; return x() }").run().await;
    let Err(IsolateError::Js(exception)) = outcome else { panic!("calling what is no function throws: {outcome:?}") };
    assert_eq!(exception.class, "TypeError");
}

async fn builtins_are_not_functions(t: EngineUnderTest) {
    for name in ["toString", "Object", "parseInt", "eval", "constructor", "hasOwnProperty", "Send", "default"] {
        let outcome = t.shot("function f() {}").function(name).run().await;
        assert!(matches!(outcome, Ok(CallValue::NoSuchFunction)), "{name}: {outcome:?}");
    }
}

async fn globals_do_not_survive(t: EngineUnderTest) {
    let code = "let n = 0; function f() { globalThis.k = (globalThis.k || 0) + 1; n += 1; return [n, globalThis.k] }";
    assert_eq!(t.value(code).await, json!([1, 1]));
    assert_eq!(t.value(code).await, json!([1, 1]));
}

async fn tampering_does_not_survive(t: EngineUnderTest) {
    t.value(
        "function f(ctx) { Object.getPrototypeOf(ctx).Send = () => 7; Array.prototype.map = () => 'x'; Object.prototype.y = 1; \
         globalThis.JSON = {}; Date.now = () => 1; return 1 }",
    )
    .await;
    assert_eq!(t.value("function f(ctx) { return [({}).y === undefined, typeof JSON.parse, Date.now()] }").await, {
        json!([true, "function", 1_700_000_000_123_i64])
    });
    t.still_works().await;
}

async fn results_use_the_engines_own_json(t: EngineUnderTest) {
    let code = "function f(ctx, a) { JSON.stringify = () => '\"evil\"'; JSON.parse = () => 'evil'; globalThis.JSON = null; \
                globalThis.Error = class {}; ctx.Send({ b: 1 }); try { ctx.failNow() } catch (e) { return [a, e.code] } }";
    let ctx = Arc::new(TestCtx::default());
    assert_eq!(t.shot(code).args(&["[1]"]).ctx(&ctx).value().await, json!([[1], "ERR_NOW"]));
    assert_eq!(ctx.log()[0], r#"Send {"b":1}"#);
}

async fn not_json(t: EngineUnderTest) {
    for code in ["const a = {}; a.a = a; return a", "return { a: 1n }", "return 1n"] {
        let error = t.shot(&format!("function f() {{ {code} }}")).error().await;
        assert_eq!(error.code(), "HOOK_NOT_JSON", "{code}: {error}");
    }
    let thrown = t.thrown("function f() { return { toJSON() { throw new RangeError('no') } } }").await;
    assert_eq!((thrown.class.as_str(), thrown.message.as_str()), ("RangeError", "no"));
}

async fn no_host_globals(t: EngineUnderTest) {
    let code = "function f() { return ['require', 'process', 'WebSocket', 'XMLHttpRequest', 'Deno', 'os', 'std'].filter(n => n in globalThis) }";
    assert_eq!(t.value(code).await, json!([]));
}

async fn no_code_from_text(t: EngineUnderTest) {
    let code = "function f() { return [() => eval('1'), () => new Function('return 1')(), () => Function('return 1')(), \
                () => (() => {}).constructor('return 1')(), () => (async () => {}).constructor('')(), \
                () => (function* () {}).constructor('')()].map(g => { try { g(); return 'ran' } catch (e) { return e instanceof Error } }) }";
    assert_eq!(t.value(code).await, json!([true, true, true, true, true, true]));
}

async fn dates_and_random_from_the_host(t: EngineUnderTest) {
    let code = "function f() { return [Date.now(), new Date().getTime(), new Date(5).getTime(), new Date() instanceof Date, \
                Date.UTC(1970, 0), Math.random(), Math.random()] }";
    let now: Value = json!(1_700_000_000_123_i64);
    assert_eq!(t.value(code).await, json!([now, now, 5, true, 0, 0.125, 0.25]));
}

async fn console_lines(t: EngineUnderTest) {
    let ctx = Arc::new(TestCtx::default());
    let code = "function f() { console.log('a', { b: [1] }, 2, null, undefined); console.warn('w'); console.error('e'); \
                console.info('i'); console.debug('d'); return 1 }";
    t.shot(code).ctx(&ctx).value().await;
    assert_eq!(
        ctx.log(),
        [
            r#"console.log a {"b":[1]} 2 null undefined"#,
            "console.warn w",
            "console.error e",
            "console.info i",
            "console.debug d"
        ]
    );
}
