//! Scripted MCP servers: the conformance suite's simulated arm, and what scripts can say.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::clock::{UnixNanos, sleep};
use greenroom_boundary::conformance;
use greenroom_boundary::conformance::mcp::{TEXT, connect};
use greenroom_boundary::mcp::{Frame, FrameDuplex, McpTarget, ServerAddress};
use greenroom_boundary::{CancellationToken, Clock, McpConnector, ServerName};
use greenroom_mocks::VirtualClock;
use greenroom_mocks::mcp::{DenyMcp, McpScript, McpSwitch, ScriptedMcp};
use serde_json::{Value, json};
use test_case::test_case;

fn target(server: &str) -> McpTarget {
    McpTarget { server: ServerName::from(server), address: ServerAddress::Simulated }
}

fn script(value: Value) -> McpScript {
    serde_json::from_value(value).unwrap()
}

fn clock() -> VirtualClock {
    VirtualClock::new(UnixNanos(0), 0)
}

async fn send(connection: &mut FrameDuplex, message: Value) {
    connection.sink.send(Frame::from(message.to_string())).await.unwrap();
}

async fn receive(connection: &mut FrameDuplex) -> String {
    connection.source.next().await.unwrap().unwrap().to_text()
}

fn lookup(id: Value, invoice: &str) -> Value {
    let params = json!({ "name": "lookup", "arguments": { "invoice": invoice }, "_meta": { "progressToken": 9 } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// Runs a script against requests sent all at once, and returns what came with the milliseconds at which it came.
fn play(script: McpScript, requests: Vec<Value>, answers: usize) -> (Vec<(u128, String)>, ScriptedMcp) {
    let clock = clock();
    let runtime = clock.runtime().unwrap();
    let server = ScriptedMcp::new(script, Arc::new(clock.clone()));
    let got = runtime.block_on(async {
        let mut connection = server.open(&target("ledger"), &CancellationToken::new()).await.unwrap();
        let start = clock.now();
        for request in requests {
            send(&mut connection, request).await;
        }
        let mut got = Vec::new();
        for _ in 0..answers {
            let text = receive(&mut connection).await;
            got.push((clock.now().since(start).as_millis(), text));
        }
        connection.sink.close().await;
        assert!(connection.source.next().await.is_none());
        got
    });
    assert_eq!(clock.pending_timers(), 0, "a closed connection leaves no timer");
    (got, server)
}

#[test]
fn conforms() {
    let echo = |text: &str| {
        let when = json!({ "tool": "echo", "arguments": { "text": text } });
        json!({ "when": when, "result": { "structuredContent": { "text": text } } })
    };
    let mut calls: Vec<_> = [TEXT, "first", "second", "left", "right"].into_iter().map(echo).collect();
    let progress = json!([{ "progress": 1 }, { "progress": 2 }, { "progress": 3, "after": "1s" }]);
    calls.push(json!({ "when": { "tool": "steps" }, "progress": progress, "result": {} }));
    calls.push(json!({ "when": { "tool": "crash" }, "crash": true }));
    let clock = clock();
    let server = ScriptedMcp::new(script(json!({ "calls": calls })), Arc::new(clock.clone()));
    let servers: BTreeMap<ServerName, Arc<dyn McpConnector>> =
        BTreeMap::from([("reference".into(), Arc::new(server.clone()) as Arc<dyn McpConnector>)]);
    let switch = McpSwitch::new(servers);
    clock.runtime().unwrap().block_on(conformance::mcp::all(&switch, &target("reference"), &target("absent")));
    assert_eq!(server.unused(), Vec::<String>::new());
}

#[test]
fn a_slow_answer_does_not_hold_up_a_fast_one() {
    let script = script(json!({ "calls": [
        { "when": { "tool": "lookup", "arguments": { "invoice": "A" } }, "after": "900ms", "result": { "structuredContent": { "c": 14 } } },
        { "when": { "tool": "lookup", "arguments": { "invoice": "B" } }, "after": "120ms",
          "progress": [{ "after": "50ms", "progress": 1, "total": 2, "message": "half" }],
          "error": { "code": -32000, "message": "gone", "data": { "b": 1.50 } } }
    ]}));
    let (got, server) = play(script, vec![lookup(json!(1), "A"), lookup(json!("b"), "B")], 3);
    let expected = [
        (
            50,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9,"progress":1,"total":2,"message":"half"}}"#,
        ),
        (120, r#"{"jsonrpc":"2.0","id":"b","error":{"code":-32000,"message":"gone","data":{"b":1.5}}}"#),
        (900, r#"{"jsonrpc":"2.0","id":1,"result":{"structuredContent":{"c":14},"content":[]}}"#),
    ];
    assert_eq!(got, expected.map(|(at, text)| (at, text.to_owned())));
    assert!(server.unused().is_empty());
}

#[test]
fn calls_are_used_up_in_order_and_the_rest_gets_the_fallback() {
    let call =
        |text: &str| json!({ "when": { "tool": "lookup" }, "result": { "content": [{ "type": "text", "text": text }] } });
    let script = script(json!({
        "calls": [call("one"), call("two")],
        "otherwise": { "error": { "code": -32602, "message": "unscripted call" } }
    }));
    let (got, _) = play(script, (1..=3).map(|id| lookup(json!(id), "A")).collect(), 3);
    let ends: Vec<_> = got.iter().map(|(_, text)| ["one", "two", "unscripted"].map(|part| text.contains(part))).collect();
    assert_eq!(ends, [[true, false, false], [false, true, false], [false, false, true]]);
}

#[test]
fn an_unscripted_call_says_what_would_have_matched() {
    let script = script(
        json!({ "calls": [{ "when": { "tool": "lookup", "arguments": { "invoice": "A" } }, "repeat": 2, "result": {} }] }),
    );
    let (got, server) = play(script, vec![lookup(json!(1), "Z")], 1);
    insta::assert_snapshot!(got[0].1, @r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"unscripted call: tools/call of lookup; calls[0]: arguments: /invoice: expected \"A\", found \"Z\""}}"#);
    insta::assert_snapshot!(server.unused().join("\n"), @r#"calls[0] ({"tool":"lookup","arguments":{"invoice":"A"}}) came 0 of 2 times"#);
}

#[test_case("answer", true; "late answers come by default")]
#[test_case("stop", false)]
fn a_cancelled_call(on_cancel: &str, answered: bool) {
    let calls = json!([{ "when": { "tool": "lookup" }, "after": "45s", "result": {} }]);
    let script = script(json!({ "on_cancel": on_cancel, "calls": calls }));
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": "x" } });
    let clock = clock();
    let server = ScriptedMcp::new(script, Arc::new(clock.clone()));
    clock.runtime().unwrap().block_on(async {
        let mut connection = server.open(&target("ledger"), &CancellationToken::new()).await.unwrap();
        send(&mut connection, lookup(json!("x"), "A")).await;
        send(&mut connection, cancelled).await;
        sleep(&clock, Duration::from_secs(60)).await;
        connection.sink.close().await;
        assert_eq!(connection.source.next().await.is_some(), answered);
    });
}

#[test]
fn a_hanging_call_never_answers_and_leaves_nothing() {
    let script = script(json!({ "calls": [{ "when": { "tool": "lookup" }, "hang": true }] }));
    let (got, _) = play(script, vec![lookup(json!(1), "A"), json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })], 1);
    assert_eq!(got, [(0, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#.to_owned())]);
}

#[test]
fn lists_come_in_pages_and_as_they_were_written() {
    let tools = json!([{ "name": "a", "x-unknown": { "z": 1, "a": 2 } }, { "name": "b" }, { "name": "c" }]);
    let list = |id: u32, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params });
    let requests = vec![list(1, json!({})), list(2, json!({ "cursor": "2" })), list(3, json!({ "cursor": "no" }))];
    let (got, _) = play(script(json!({ "tools": tools, "page_size": 2 })), requests, 3);
    let texts: Vec<_> = got.into_iter().map(|(_, text)| text).collect();
    assert_eq!(
        texts,
        [
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a","x-unknown":{"z":1,"a":2}},{"name":"b"}],"nextCursor":"2"}}"#,
            r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"c"}]}}"#,
            r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"unknown cursor"}}"#,
        ]
    );
}

#[test]
fn notifications_follow_the_handshake_at_their_time() {
    let clock = clock();
    let notifications = json!([{ "after": "5s", "method": "notifications/tools/list_changed" }]);
    let server = ScriptedMcp::new(script(json!({ "notifications": notifications })), Arc::new(clock.clone()));
    clock.runtime().unwrap().block_on(async {
        let mut connection = connect(&server, &target("shop")).await;
        assert_eq!(receive(&mut connection).await, r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
        assert_eq!(clock.now().0, 5_000_000_000);
    });
}

#[test]
fn a_denied_server_says_how_to_allow_it() {
    let runtime = clock().runtime().unwrap();
    let error = runtime.block_on(DenyMcp.open(&target("shop"), &CancellationToken::new())).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        ("MCP_DENIED", "server shop is denied here: list `mcp.shop` under `drivers`")
    );
}

#[test_case(json!({ "tool": [] }), "unknown field `tool`"; "a misspelt key")]
#[test_case(json!({ "calls": [{ "when": { "tool": "a" } }] }), "exactly one of `result`"; "no answer")]
#[test_case(json!({ "calls": [{ "when": { "tool": "a" }, "result": {}, "hang": true }] }), "exactly one of `result`"; "two answers")]
#[test_case(json!({ "calls": [{ "when": { "tool": "a" }, "crash": false }] }), "only `true`"; "false")]
#[test_case(json!({ "calls": [{ "when": {}, "result": {} }] }), "`when` is empty"; "no condition")]
#[test_case(json!({ "calls": [{ "when": { "tool": "a" }, "repeat": 0, "result": {} }] }), "counts from 1"; "no repeat")]
#[test_case(json!({ "calls": [{ "when": { "arguments": { "$rx": "a" } }, "result": {} }] }), "unknown operator"; "a wrong operator")]
fn a_wrong_script_is_refused(value: Value, reason: &str) {
    let error = serde_json::from_value::<McpScript>(value).unwrap_err().to_string();
    assert!(error.contains(reason), "{error}");
}

#[test]
fn a_script_is_written_as_it_is_read() {
    let text = json!({
        "tools": [{ "name": "lookup" }],
        "calls": [
            { "when": { "tool": "lookup", "arguments": { "invoice": { "$re": "^A" } } }, "repeat": 2, "after": "2s",
              "result": { "structuredContent": { "cents": 4200 } } },
            { "when": { "method": "completion/complete" }, "error": { "code": -32603, "message": "no" } },
        ],
        "otherwise": { "crash": true },
        "on_cancel": "stop",
    });
    assert_eq!(serde_json::to_value(script(text.clone())).unwrap(), text);
}
