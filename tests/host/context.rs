//! `ctx.mcp` and `ctx.llm`, and what a hook sees of its call.

use std::sync::Arc;

use async_trait::async_trait;
use greenroom_boundary::RawJson;
use greenroom_boundary::isolate::{Callback, CallbackVerdict, JsException};
use serde_json::{Value, json};
use test_case::test_case;

use crate::support::{Native, Set, Stage, json_value, op};

/// Runs one operation in `Next` and gives its answer.
fn asks(path: &'static str, args: Value) -> Native {
    Box::new(move |call| {
        let args = args.as_array().unwrap().clone();
        Box::pin(async move { Ok(json_value(&json!({"data": {"answer": op(&call, path, args).await}}))) })
    })
}

fn shop(native: Native) -> Stage {
    Set::new("agents: {desk: {script: desk.js}}\nmcpServers: {shop: {}}")
        .mcp(
            "shop",
            r#"
tools: [{name: price}, {name: text}, {name: json}, {name: many}, {name: bad}, {name: nothing}]
calls:
  - {when: {tool: price, arguments: {sku: 7}}, result: {structuredContent: {eur: 5}, content: [{type: text, text: five}]}}
  - {when: {tool: text}, result: {content: [{type: text, text: five}]}}
  - {when: {tool: json}, result: {content: [{type: text, text: '{"eur": 5}'}]}}
  - {when: {tool: many}, result: {content: [{type: text, text: a}, {type: text, text: '1'}]}}
  - {when: {tool: bad}, result: {isError: true, content: [{type: text, text: sold out}]}}
  - {when: {tool: nothing}, result: {content: []}}
"#,
        )
        .native("desk", "Next", native)
        .build()
}

#[test_case(json!(["shop", "price", {"sku": 7}]), json!({"ok": {"eur": 5}}); "structured")]
#[test_case(json!(["shop", "text"]), json!({"ok": "five"}); "text")]
#[test_case(json!(["shop", "json", null]), json!({"ok": {"eur": 5}}); "json text")]
#[test_case(json!(["shop", "many"]), json!({"ok": ["a", 1]}); "several")]
#[test_case(json!(["shop", "nothing"]), json!({"ok": null}); "nothing")]
#[test_case(json!(["shop", "bad"]), json!({"error": {"code": "ERR_TOOL", "class": "Error", "message": "shop/bad: sold out"}}); "a failed tool throws")]
#[test_case(json!(["shpo", "text"]), json!({"error": {"code": "CALL_UNKNOWN_SERVER", "class": "Error", "message": "no server or agent is named \"shpo\"; did you mean \"shop\"?"}}); "unknown server")]
fn call_tool(args: Value, wanted: Value) {
    assert_eq!(shop(asks("mcp.CallTool", args)).turn("desk", "go").data["answer"], wanted);
}

#[test_case(json!([7, "t"]), "ctx.mcp.CallTool: server must be a string, not 7"; "server is a number")]
#[test_case(json!(["shop", null]), "mcp.CallTool: tool must be a string"; "no tool")]
#[test_case(json!(["shop", "text", []]), "ctx.mcp.CallTool: arguments must be an object, not an array"; "arguments are a list")]
fn c32_a_wrong_argument_is_a_type_error(args: Value, message: &str) {
    let answer = shop(asks("mcp.CallTool", args)).turn("desk", "go").data["answer"].clone();
    assert_eq!((&answer["error"]["code"], &answer["error"]["class"]), (&json!("ERR_ARGUMENT"), &json!("TypeError")));
    assert!(answer["error"]["message"].as_str().unwrap().contains(message), "{answer}");
}

#[test]
fn list_tools_gives_the_servers_own_objects() {
    let answer = shop(asks("mcp.ListTools", json!(["shop"]))).turn("desk", "go").data["answer"].clone();
    assert_eq!(answer["ok"]["tools"][0], json!({"name": "price"}));
}

struct After(usize, CallbackVerdict, std::sync::Mutex<Vec<Value>>);

#[async_trait]
impl Callback for After {
    async fn call(&self, args: Vec<RawJson>) -> CallbackVerdict {
        let mut heard = self.2.lock().unwrap();
        heard.push(serde_json::from_str(args[0].get()).unwrap());
        if heard.len() < self.0 { CallbackVerdict::Continue } else { self.1.clone() }
    }
}

fn streamed(verdict: CallbackVerdict) -> (Value, Stage) {
    let next: Native = Box::new(move |call| {
        let listener = Arc::new(After(2, verdict.clone(), std::sync::Mutex::default()));
        Box::pin(async move {
            let args = [json!("main"), json!([{"role": "user", "content": "count"}]), json!({})];
            let args = args.iter().map(|arg| serde_json::value::to_raw_value(arg).unwrap()).collect();
            let answer = match call.op_with_callback("llm.Stream", args, Some(listener.clone())).await {
                Ok(value) => serde_json::from_str(value.unwrap().get()).unwrap(),
                Err(error) => json!({"error": {"code": error.code, "message": error.message}}),
            };
            let heard = listener.2.lock().unwrap().clone();
            Ok(json_value(&json!({"data": {"answer": answer, "heard": heard}})))
        })
    });
    let stage = Set::new("agents: {desk: {script: desk.js}}")
        .model("main", "- {id: count, reply: {text: one two three four, stream: {chunking: words}}}")
        .native("desk", "Next", next)
        .build();
    let data = stage.turn("desk", "go").data;
    (data, stage)
}

#[test]
fn a_callback_that_goes_on_hears_everything() {
    let (data, _) = streamed(CallbackVerdict::Continue);
    assert_eq!((&data["answer"]["content"], &data["answer"]["stopped"]), (&json!("one two three four"), &json!(false)));
    assert_eq!(data["heard"].as_array().unwrap().len(), 4);
    assert_eq!(data["heard"][0], json!({"type": "text", "props": {"content": "one "}, "delta": true}));
}

#[test]
fn a_callback_that_stops_ends_the_stream() {
    let (data, stage) = streamed(CallbackVerdict::Stop);
    assert_eq!((&data["answer"]["content"], &data["answer"]["stopped"]), (&json!("one two "), &json!(true)));
    assert_eq!(data["answer"]["response"]["finish_reason"], "stopped");
    assert_eq!(stage.unanswered(), Vec::<String>::new());
}

#[test]
fn a_callback_that_throws_makes_the_operation_throw() {
    let exception = JsException { class: "Error".into(), message: "enough".into(), code: None, frames: vec![], cause: None };
    let (data, _) = streamed(CallbackVerdict::Threw(exception));
    assert_eq!(data["answer"]["error"], json!({"code": "ERR_CALLBACK", "message": "onChunk threw Error: enough"}));
}

#[test]
fn a_hook_sees_who_it_works_for() {
    let next: Native = Box::new(|call| {
        let data: Value = serde_json::from_str(call.ctx.data().get()).unwrap();
        let now = call.ctx.now_ms();
        Box::pin(async move { Ok(json_value(&json!({"data": {"ctx": data, "now": now}}))) })
    });
    let data = Set::new("agents: {desk: {script: desk.js}}").native("desk", "Next", next).build().turn("desk", "go").data;
    assert_eq!(
        (&data["ctx"]["assistant_id"], &data["ctx"]["chat_id"], &data["ctx"]["referer"]),
        (&json!("desk"), &json!("default"), &json!("api"))
    );
    assert_eq!(data["now"], json!(1_700_000_000_000.0));
}
