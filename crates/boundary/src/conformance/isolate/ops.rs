//! The bridge: operations at once and awaited, their promises, their callbacks, and released handles.

use std::sync::Arc;

use serde_json::json;

use super::ctx::WhenSlow;
use super::{Case, EngineUnderTest, TestCtx};

pub(super) fn cases() -> Vec<Case> {
    case_list![ops:
        inline_op, nested_groups, absent_groups, await_op, undefined_args_are_null, op_error, inline_op_error, op_error_uncaught, min_args,
        async_twins, async_twin_rejects, twins_together, inline_ops_have_no_twin, callback_in_order, callback_stops,
        callback_number_stops, callback_throws, callback_of_twin, callback_is_optional, callback_must_be_a_function,
        op_inside_callback, release_kills_handles, release_twice, release_ends_the_twin, wrong_receiver, handles_cannot_be_forged,
        bad_op_argument, named_groups, named_groups_after_release, ctx_after_the_arguments, left_behind_op_is_dropped, kept_beyond_the_call,
    ]
}

async fn logged(t: &EngineUnderTest, code: &str) -> (serde_json::Value, Vec<String>) {
    let ctx = Arc::new(TestCtx::default());
    let value = t.shot(code).ctx(&ctx).value().await;
    (value, ctx.log())
}

async fn inline_op(t: EngineUnderTest) {
    let (value, log) =
        logged(&t, "function f(ctx) { return [ctx.Send({ a: [1] }, 'x').id, ctx.Append('m', 'y') === undefined] }").await;
    assert_eq!(value, json!([1, true]));
    assert_eq!(log, [r#"Send {"a":[1]} "x""#, r#"Append "m" "y""#]);
}

async fn nested_groups(t: EngineUnderTest) {
    let code = "function f(ctx) { const m = ctx.memory.context; m.Set('k', { v: 1 }); return [m.Get('k'), m.Get('no') === undefined, m === ctx.memory.context] }";
    assert_eq!(t.value(code).await, json!([{ "v": 1 }, true, true]));
}

async fn absent_groups(t: EngineUnderTest) {
    let code = "Array.prototype.some = () => false; \
                function f(ctx) { return [typeof ctx.memory.user, 'user' in ctx.memory, typeof ctx.memory.context.Get, ctx.memory.user?.Get('k') === undefined] }";
    assert_eq!(t.value(code).await, json!(["undefined", false, "function", true]));
}

async fn await_op(t: EngineUnderTest) {
    let code = "function f(ctx) { const a = ctx.mcp.CallTool('s', 't', { n: 1 }); const b = ctx.mcp.CallTool('s', 'u'); return [a, b] }";
    assert_eq!(t.value(code).await, json!([{ "called": ["s", "t", { "n": 1 }] }, { "called": ["s", "u"] }]));
}

async fn named_groups(t: EngineUnderTest) {
    let code = "async function f(ctx) { \
                const { ask } = ctx.peers['a b']; const fails = (work) => { try { work() } catch (e) { return e.name } }; \
                return [ask(1, { n: 2 }), (await ctx.peers.then.askAsync(3)).called, ctx.peers.x.title.called, (await ctx.peers.x.titleAsync()).called, \
                typeof ctx.peers[Symbol.iterator], JSON.stringify(ctx.peers), JSON.stringify(ctx.peers.x), fails(() => ask()), \
                typeof (await ctx.peers).x] }";
    let wanted = json!([{ "called": ["a b", 1, { "n": 2 }] }, ["then", 3], ["x"], ["x"], "undefined", "{}", "{}", "TypeError", "object"]);
    assert_eq!(t.value(code).await, wanted);
}

async fn named_groups_after_release(t: EngineUnderTest) {
    let code = "function f(ctx) { const x = ctx.peers.x; ctx.Release(); const codes = []; \
                for (const work of [() => x.ask(1), () => x.title, () => ctx.peers.y.title]) { try { work() } catch (e) { codes.push(e.code) } } \
                return codes }";
    assert_eq!(t.value(code).await, json!(["ERR_RELEASED", "ERR_RELEASED", "ERR_RELEASED"]));
}

async fn ctx_after_the_arguments(t: EngineUnderTest) {
    let code = "function f(a, b, ctx) { return [a, b, ctx.Send('x').id, arguments.length] }";
    assert_eq!(t.shot(code).args(&["1", "[2]"]).ctx_last().value().await, json!([1, [2], 1, 3]));
}

async fn undefined_args_are_null(t: EngineUnderTest) {
    let (_, log) = logged(&t, "function f(ctx) { ctx.Send(undefined, null, 1); ctx.Send(() => 1); return 1 }").await;
    assert_eq!(log, ["Send null null 1", "Send null"]);
}

async fn op_error(t: EngineUnderTest) {
    let code = "function f(ctx) { try { ctx.fail() } catch (e) { \
                return [e instanceof RangeError, e instanceof Error, e.name, e.message, e.code, typeof e.stack] } }";
    assert_eq!(t.value(code).await, json!([true, true, "RangeError", "it failed", "ERR_TEST", "string"]));
}

async fn inline_op_error(t: EngineUnderTest) {
    let code =
        "function f(ctx) { try { ctx.failNow() } catch (e) { return [e.constructor === Error, e.name, e.message, e.code] } }";
    assert_eq!(t.value(code).await, json!([true, "Error", "it failed at once", "ERR_NOW"]));
}

async fn op_error_uncaught(t: EngineUnderTest) {
    let thrown = t.thrown("function f(ctx) {\n  ctx.fail()\n}").await;
    assert_eq!((thrown.class.as_str(), thrown.code.as_deref()), ("RangeError", Some("ERR_TEST")));
    assert_eq!(thrown.frames.first().map(|frame| (frame.function.as_str(), frame.line)), Some(("f", 2)));
}

async fn min_args(t: EngineUnderTest) {
    for call in ["ctx.mcp.CallTool('s')", "ctx.mcp.CallToolAsync('s')", "ctx.memory.context.Set('k')"] {
        let code = format!(
            "async function f(ctx) {{ try {{ await {call} }} catch (e) {{ return [e instanceof TypeError, e.message] }} }}"
        );
        let value = t.value(&code).await;
        assert_eq!(value[0], json!(true), "{call}: {value}");
        let path = if call.contains("Set") { "memory.context.Set" } else { "mcp.CallTool" };
        assert!(value[1].as_str().is_some_and(|message| message.contains(path)), "{call}: {value}");
    }
}

async fn async_twins(t: EngineUnderTest) {
    let code = "async function f(ctx) { const p = ctx.mcp.CallToolAsync('s', 't'); return [p instanceof Promise, await p] }";
    assert_eq!(t.value(code).await, json!([true, { "called": ["s", "t"] }]));
}

async fn async_twin_rejects(t: EngineUnderTest) {
    let code =
        "async function f(ctx) { return ctx.failAsync().then(() => 'no', e => [e.name, e.code, e instanceof RangeError]) }";
    assert_eq!(t.value(code).await, json!(["RangeError", "ERR_TEST", true]));
    let thrown = t.thrown("function f(ctx) { return ctx.failAsync() }").await;
    assert_eq!(thrown.code.as_deref(), Some("ERR_TEST"));
}

async fn twins_together(t: EngineUnderTest) {
    let code = "async function f(ctx) { \
                const [a, b] = await Promise.all([ctx.mcp.CallToolAsync('s', 1), ctx.mcp.CallToolAsync('s', 2)]); \
                const c = await Promise.race([ctx.slowAsync(), ctx.mcp.CallToolAsync('s', 3)]); \
                const d = await Promise.allSettled([ctx.failAsync(), ctx.mcp.CallTool('s', 4)]); \
                return [a.called[1], b.called[1], c.called[1], d[0].reason.code, d[1].value.called[1]] }";
    assert_eq!(t.value(code).await, json!([1, 2, 3, "ERR_TEST", 4]));
}

async fn inline_ops_have_no_twin(t: EngineUnderTest) {
    assert_eq!(
        t.value("function f(ctx) { return [typeof ctx.SendAsync, typeof ctx.slowAsync] }").await,
        json!(["undefined", "function"])
    );
}

async fn callback_in_order(t: EngineUnderTest) {
    let code = "function f(ctx) { const got = []; \
                const done = ctx.llm.Stream('m', [], { onChunk(chunk, n) { got.push(chunk.text + n); ctx.Send(n) }, temperature: 1 }); \
                return [got, done] }";
    let (value, log) = logged(&t, code).await;
    assert_eq!(value, json!([["a1", "b2", "c3"], { "chunks": 3, "stopped": false }]));
    assert_eq!(log, [r#"llm.Stream "m" [] {"temperature":1}"#, "Send 1", "Send 2", "Send 3"]);
}

async fn callback_stops(t: EngineUnderTest) {
    let code = "function f(ctx) { return ctx.llm.Stream('m', [], { onChunk: (c, n) => n < 2 ? true : false }) }";
    assert_eq!(t.value(code).await, json!({ "chunks": 2, "stopped": true }));
}

async fn callback_number_stops(t: EngineUnderTest) {
    for (returned, chunks) in [("0", 3), ("1", 1), ("null", 3), ("'text'", 3), ("-1", 1)] {
        let code = format!("function f(ctx) {{ return ctx.llm.Stream('m', [], {{ onChunk: () => {returned} }}) }}");
        assert_eq!(t.value(&code).await["chunks"], json!(chunks), "{returned}");
    }
}

async fn callback_throws(t: EngineUnderTest) {
    let code = "function f(ctx) { const mine = new TypeError('mine'); let n = 0; \
                try { ctx.llm.Stream('m', [], { onChunk() { n++; throw mine } }) } catch (e) { return [n, e.code, e.cause === mine] } }";
    assert_eq!(t.value(code).await, json!([1, "ERR_CALLBACK", true]));
    let thrown = t.thrown("function f(ctx) { ctx.llm.Stream('m', [], { onChunk() { throw new TypeError('mine') } }) }").await;
    assert_eq!(thrown.code.as_deref(), Some("ERR_CALLBACK"));
    assert_eq!(thrown.cause.map(|cause| cause.message), Some("mine".to_owned()));
}

async fn callback_of_twin(t: EngineUnderTest) {
    let code = "async function f(ctx) { const got = []; \
                const p = ctx.llm.StreamAsync('m', [], { onChunk(c) { got.push(c.text) } }); got.push('first'); \
                return [await p, got] }";
    assert_eq!(t.value(code).await, json!([{ "chunks": 3, "stopped": false }, ["first", "a", "b", "c"]]));
}

async fn callback_is_optional(t: EngineUnderTest) {
    let (value, log) =
        logged(&t, "function f(ctx) { return [ctx.llm.Stream('m', []), ctx.llm.Stream('m', [], { x: 1 })] }").await;
    assert_eq!(value, json!([{ "chunks": 0, "stopped": false }, { "chunks": 0, "stopped": false }]));
    assert_eq!(log, [r#"llm.Stream "m" []"#, r#"llm.Stream "m" [] {"x":1}"#]);
}

async fn callback_must_be_a_function(t: EngineUnderTest) {
    let thrown = t.thrown("function f(ctx) { ctx.llm.Stream('m', [], { onChunk: 'no' }) }").await;
    assert_eq!(thrown.class, "TypeError");
    assert!(thrown.message.contains("onChunk"), "{thrown}");
}

async fn op_inside_callback(t: EngineUnderTest) {
    let code = "function f(ctx) { const got = []; \
                ctx.llm.Stream('m', [], { onChunk(c) { got.push(ctx.mcp.CallTool('s', c.text).called[1]) } }); return got }";
    assert_eq!(t.value(code).await, json!(["a", "b", "c"]));
}

async fn release_kills_handles(t: EngineUnderTest) {
    let code = "async function f(ctx) { const m = ctx.memory.context, codes = []; ctx.Release(); \
                for (const use of [() => ctx.Send('x'), () => ctx.mcp.CallTool('s', 't'), () => ctx.mcp.CallToolAsync('s', 't'), () => m.Get('k')]) { \
                try { await use(); codes.push('lives') } catch (e) { codes.push(e.code) } } return codes }";
    let (value, log) = logged(&t, code).await;
    assert_eq!(value, json!(["ERR_RELEASED", "ERR_RELEASED", "ERR_RELEASED", "ERR_RELEASED"]));
    assert_eq!(log, Vec::<String>::new());
}

async fn release_twice(t: EngineUnderTest) {
    assert_eq!(t.value("function f(ctx) { return [ctx.Release(), ctx.Release()].length }").await, json!(2));
}

async fn release_ends_the_twin(t: EngineUnderTest) {
    let code = "async function f(ctx) { const p = ctx.mcp.CallToolAsync('s', 't'); ctx.Release(); \
                return await p.then(() => 'settled', () => 'settled') }";
    assert_eq!(t.value(code).await, json!("settled"));
}

async fn wrong_receiver(t: EngineUnderTest) {
    let code = "function f(ctx) { const { Send } = ctx, { CallTool } = ctx.mcp; \
                return [() => Send('x'), () => ctx.Send.call({}, 'x'), () => CallTool.call({}, 's', 't'), () => ctx.Send.call(null, 'x'), \
                () => ctx.Release.call({})].map(g => { try { g(); return 'ran' } catch (e) { return e instanceof TypeError } }) }";
    let (value, log) = logged(&t, code).await;
    assert_eq!(value, json!([true, true, true, true, true]));
    assert_eq!(log, Vec::<String>::new());
}

async fn handles_cannot_be_forged(t: EngineUnderTest) {
    let code = "function f(ctx) { const fakes = [Object.create(ctx), Object.assign({}, ctx), structured(ctx)]; \
                function structured(o) { return JSON.parse(JSON.stringify(o)) } \
                return [Object.keys(ctx).filter(k => typeof ctx[k] !== 'function' && !['mcp', 'llm', 'memory'].includes(k)), \
                fakes.map(o => { try { ctx.Send.call(o, 1); return 'ran' } catch (e) { return e instanceof TypeError } })] }";
    assert_eq!(t.value(code).await, json!([["chat_id", "metadata", "locale", "empty"], [true, true, true]]));
}

async fn bad_op_argument(t: EngineUnderTest) {
    for (argument, class) in
        [("1n", "TypeError"), ("cyclic", "TypeError"), ("({ get a() { throw new RangeError('mine') } })", "RangeError")]
    {
        let code = format!(
            "const cyclic = {{}}; cyclic.c = cyclic\nfunction f(ctx) {{ try {{ ctx.Send({argument}) }} catch (e) {{ return e.name }} }}"
        );
        let (value, log) = logged(&t, &code).await;
        assert_eq!(value, json!(class), "{argument}");
        assert_eq!(log, Vec::<String>::new(), "{argument}");
    }
}

async fn left_behind_op_is_dropped(t: EngineUnderTest) {
    let ctx = Arc::new(TestCtx::when_slow(WhenSlow::Nothing));
    assert_eq!(t.shot("function f(ctx) { ctx.slowAsync(); return 1 }").ctx(&ctx).value().await, json!(1));
    assert_eq!(ctx.slow_under_way(), 0);
}

async fn kept_beyond_the_call(t: EngineUnderTest) {
    let ctx = Arc::new(TestCtx::default());
    let code = "let kept; function f(ctx) { kept = ctx; ctx.slowAsync().then(() => kept.Send('late')); \
                Promise.resolve().then(() => 1).then(() => kept.Send('in time')); return 1 }";
    assert_eq!(t.shot(code).ctx(&ctx).value().await, json!(1));
    assert!(!ctx.log().contains(&"Send \"late\"".to_owned()));
    assert_eq!(t.value("function f() { return typeof kept }").await, json!("undefined"));
}
