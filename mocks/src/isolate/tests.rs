//! The mock engine: scripted outcomes in order, native functions, limits, and what is recorded.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use greenroom_boundary::CancellationToken;
use greenroom_boundary::conformance::isolate::{TABLE, TestCtx, WhenSlow};
use greenroom_boundary::isolate::{CallRequest, CallValue, HandOff, IsolateDriver, IsolateError, Limits, PassCtx, Script};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::{IsolateScript, MockIsolate};

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

fn script(value: Value) -> IsolateScript {
    serde_json::from_value(value).expect("a script")
}

fn request(name: &str, function: &str) -> CallRequest {
    CallRequest {
        script: Arc::new(Script::new(name, "")),
        function: function.to_owned(),
        pass_ctx: PassCtx::First,
        args: vec![to_raw_value(&json!({ "n": 1 })).expect("JSON")],
        limits: Limits { wall: Duration::from_millis(250), ..Limits::default() },
    }
}

fn call(isolate: &MockIsolate, name: &str, function: &str) -> Result<CallValue, IsolateError> {
    call_in(isolate, request(name, function), &Arc::new(TestCtx::default()))
}

fn call_in(isolate: &MockIsolate, request: CallRequest, ctx: &Arc<TestCtx>) -> Result<CallValue, IsolateError> {
    block_on(isolate.call(request, Arc::clone(ctx) as _, HandOff::Strict, &CancellationToken::new()))
}

#[test]
fn outcomes_come_in_order_and_are_recorded() {
    let isolate = MockIsolate::scripted(script(json!({
        "a.ts#Create": [
            { "returns": null }, { "returns": { "x": [1] }, "repeat": 2 }, {},
            { "throws": { "class": "RangeError", "message": "far", "code": "E_FAR" } }, { "throws": { "message": "plain" } },
            { "heap": true },
        ],
        "a.ts#Next": [{ "timeout": true }],
    })));
    assert_eq!(isolate.unused().len(), 7);
    for _ in 0..7 {
        let _ = call(&isolate, "a.ts", "Create");
    }
    let error = call(&isolate, "a.ts", "Create").expect_err("used up");
    let _ = call(&isolate, "a.ts", "nope");
    let outcomes: Vec<_> = isolate.calls().into_iter().map(|call| call.outcome.unwrap_or_default()).collect();
    insta::assert_debug_snapshot!(outcomes, @r#"
    [
        "null",
        "{\"x\":[1]}",
        "{\"x\":[1]}",
        "undefined",
        "HOOK_THREW",
        "HOOK_THREW",
        "HOOK_HEAP_LIMIT",
        "HOOK_ENGINE",
        "no such function",
    ]
    "#);
    insta::assert_snapshot!(error, @"script engine: all 7 scripted calls of a.ts#Create are used up; add a step, or `repeat: N` to one");
    assert_eq!(isolate.unused(), ["a.ts#Next[0] came 0 of 1 times"]);
    assert_eq!(isolate.calls()[0].args, [r#"{"n":1}"#]);
    assert_eq!(isolate.counters().finished_calls, 9);
}

#[test]
fn a_scripted_error_keeps_class_message_and_code() {
    let isolate = MockIsolate::scripted(script(json!({ "a.ts#f": [{ "throws": { "message": "far", "code": "E" } }] })));
    let Err(IsolateError::Js(exception)) = call(&isolate, "a.ts", "f") else { panic!("it throws") };
    assert_eq!((exception.class.as_str(), exception.message.as_str(), exception.code.as_deref()), ("Error", "far", Some("E")));
}

#[test]
fn a_script_without_functions_says_what_to_do() {
    let error = call(&MockIsolate::new(TABLE), "agents/travel.ts", "Create").expect_err("nothing is registered");
    assert_eq!(error.code(), "HOOK_ENGINE");
    insta::assert_snapshot!(error, @"script engine: the mock engine knows no function of agents/travel.ts; script `agents/travel.ts#Create` under `drivers.isolate`, register it, or use a real engine");
}

#[test]
fn native_functions_use_ctx_by_path() {
    let isolate = MockIsolate::new(TABLE).register("a.ts", "Create", |call| {
        async move {
            let key = to_raw_value("k").expect("JSON");
            call.op("memory.context.Set", vec![key.clone(), call.args[0].clone()]).await.expect("it is set");
            let tool = call.op("mcp.CallTool", vec![key.clone(), key.clone()]).await.expect("it answers").expect("a value");
            let failed = call.op("fail", Vec::new()).await.expect_err("it fails");
            let missing = call.op("nope", Vec::new()).await.expect_err("no such operation");
            let few = call.op("mcp.CallTool", Vec::new()).await.expect_err("too few arguments");
            let kept = call.op("memory.context.Get", vec![key]).await.expect("it is read").expect("a value");
            let all = json!([tool, kept, failed.code, missing.message, few.message]);
            Ok(CallValue::Json(to_raw_value(&all).expect("JSON")))
        }
        .boxed()
    });
    let Ok(CallValue::Json(json)) = call(&isolate, "a.ts", "Create") else { panic!("it returns a value") };
    insta::assert_snapshot!(json.get(), @r#"[{"called":["k","k"]},{"n":1},"ERR_TEST","ctx.nope is not a function","ctx.mcp.CallTool needs 2 arguments, 0 given"]"#);
    assert_eq!(block_on(isolate.functions(&request("a.ts", "").script, &Limits::default())), Ok(vec!["Create".to_owned()]));
}

#[test]
fn the_wall_limit_ends_a_native_function() {
    let isolate = MockIsolate::new(TABLE).register("a.ts", "f", |call| {
        async move {
            call.op("slow", Vec::new()).await.expect("it never ends");
            Ok(CallValue::Undefined)
        }
        .boxed()
    });
    let ctx = Arc::new(TestCtx::when_slow(WhenSlow::WallPasses));
    let error = call_in(&isolate, request("a.ts", "f"), &ctx).expect_err("it takes too long");
    assert_eq!(error, IsolateError::WallLimit { limit_ms: 250 });
    assert_eq!((ctx.slow_under_way(), isolate.counters().active_calls), (0, 0));
}

#[test]
fn a_cancelled_call_does_not_run() {
    let isolate = MockIsolate::scripted(script(json!({ "a.ts#f": [{ "returns": 1 }] })));
    let token = CancellationToken::new();
    token.cancel();
    let outcome = block_on(isolate.call(request("a.ts", "f"), Arc::new(TestCtx::default()), HandOff::Concurrent, &token))
        .expect_err("cancelled");
    assert_eq!(outcome, IsolateError::Cancelled);
    assert_eq!(isolate.unused().len(), 1);
}

#[test]
fn steps_are_read_strictly_and_written_back() {
    let refused = |value: Value| serde_json::from_value::<IsolateScript>(value).expect_err("refused").to_string();
    insta::assert_snapshot!(refused(json!({ "a#f": [{ "returns": 1, "heap": true }] })), @"a step has one of `returns`, `throws`, `timeout` and `heap`; write one step for each call");
    insta::assert_snapshot!(refused(json!({ "a#f": [{ "return": 1 }] })), @"unknown field `return`, expected one of `returns`, `throws`, `timeout`, `heap`, `repeat`");
    let text = r#"{"a#f":[{"returns":null},{"throws":{"class":"Error","message":"m"},"repeat":2},{"timeout":true},{}]}"#;
    let read: IsolateScript = serde_json::from_str(text).expect("a script");
    assert_eq!(serde_json::to_string(&read).expect("JSON"), text);
}
