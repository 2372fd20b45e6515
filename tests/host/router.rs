//! Calls through the router: unknown names, deadlines, broken connections, what survives.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom::router::CallError;
use greenroom_boundary::Clock as _;
use greenroom_boundary::clock::sleep;
use greenroom_boundary::trace::{Direction, EventKind, Outcome};
use greenroom_boundary::{CancellationToken, ServerName};
use serde_json::{Value, json};
use test_case::test_case;

use crate::support::{Set, Stage, error, result, returns};

#[test]
fn an_unknown_server_is_answered_with_the_nearest() {
    let stage = Set::new("mcpServers: {shop: {}}").build();
    let error = stage.call("shpo", "buy", json!({})).unwrap_err();
    assert_eq!(
        (error.code(), error.to_string().as_str()),
        ("CALL_UNKNOWN_SERVER", "no server or agent is named \"shpo\"; did you mean \"shop\"?")
    );
    let error = stage.call("zzzzzzzzzzzz", "buy", json!({})).unwrap_err();
    assert_eq!(error.to_string(), "no server or agent is named \"zzzzzzzzzzzz\"");
}

#[test]
fn an_unknown_tool_of_a_built_in_server_names_what_there_is() {
    let stage = Set::new("agents: {desk: {}}").build();
    let message = |server: &str| stage.call(server, "nope", json!({})).unwrap_err().to_string();
    assert_eq!(message("nanobot.meta"), "nanobot.meta has no tool named \"nope\"; its tools are list_agents and list_servers");
    assert_eq!(message("desk"), "desk has no tool named \"nope\"; its only tool is chat-with-desk");
    assert!(stage.events().is_empty(), "nothing left, so nothing is traced");
}

#[test]
fn an_unknown_function_of_a_script_is_an_unknown_tool() {
    let stage = Set::new("mcpServers: {policy: {script: policy.js}}").native("policy", "check", returns(json!({}))).build();
    assert_eq!(stage.call("policy", "chek", json!({})).unwrap_err().code(), "CALL_UNKNOWN_TOOL");
    assert_eq!(stage.list("policy").unwrap(), ["check"]);
}

#[test]
fn a_disabled_server_fails_with_its_reason_and_is_never_opened() {
    let stage = Set::new("mcpServers: {web: {url: 'http://x/${NOPE}'}, shop: {}}").mcp("shop", "tools: [{name: buy}]").build();
    let error = stage.call("web", "t", json!({})).unwrap_err();
    assert_eq!(error.code(), "SERVER_DISABLED");
    assert_eq!(
        error.to_string(),
        "server web is disabled: mcpServers.web.url: variable NOPE is not set; set it in the environment or write ${NOPE:-default}"
    );
    assert_eq!(stage.list("shop").unwrap(), ["buy"]);
}

#[test]
fn an_upstream_error_keeps_its_code_and_data() {
    let text = r#"{"code":-32042,"message":"no","data":{"z":1.0,"big":9007199254740993,"a":[]}}"#;
    let stage = Set::new("mcpServers: {shop: {}}").raw("shop", move |_, _| vec![error(text)]).build();
    let CallError::Rpc { error, .. } = stage.call("shop", "buy", json!({})).unwrap_err() else { panic!() };
    assert_eq!((error.code, error.message.as_str()), (-32042, "no"));
    assert_eq!(error.data.unwrap().get(), r#"{"z":1.0,"big":9007199254740993,"a":[]}"#);
}

/// C18, paths 1 and 2: number spellings and unknown fields reach the caller as they came.
#[test]
fn an_unchanged_result_keeps_its_bytes() {
    let text = r#"{"content":[],"unknown":{"b":1,"a":2},"n":[9007199254740993,1.0,1e400,-0,0.10,1234567890123456789012345678901234567890],"_meta":{"x/y":1}}"#;
    for hooks in ["{}", "{'tools/call': policy/same}"] {
        let stage = Set::new(&format!("mcpServers: {{shop: {{hooks: {hooks}}}, policy: {{script: policy.js}}}}"))
            .raw("shop", move |_, _| vec![result(text)])
            .native("policy", "same", returns(json!({"accept": true})))
            .build();
        let output = stage.call("shop", "buy", json!({})).unwrap();
        assert_eq!(output.raw.unwrap().get(), text, "hooks: {hooks}");
    }
}

/// Answers the first call late, the second at once.
fn late() -> Stage {
    Set::new("mcpServers: {shop: {}}\npolicy: {tool_timeout: 30s}")
        .mcp(
            "shop",
            "tools: [{name: slow}, {name: buy}]\ncalls:\n  - {when: {tool: slow}, after: 45s, result: {content: []}}\n  \
             - {when: {tool: buy}, after: 60s, progress: [{after: 20s, progress: 1}, {after: 40s, progress: 2}], result: {content: [{type: text, text: sold}]}}\n",
        )
        .build()
}

#[test]
fn a_late_server_is_told_and_its_late_answer_is_traced() {
    let stage = late();
    let error = stage.call("shop", "slow", json!({})).unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), ("CALL_TIMEOUT", "shop did not answer tools/call within 30000 ms"));
    let request = &stage.sent("shop", "tools/call")[0];
    stage.run(sleep(&stage.clock, Duration::from_secs(20)));
    let cancelled = stage.sent("shop", "notifications/cancelled");
    assert_eq!(cancelled.len(), 1);
    assert_eq!(cancelled[0]["params"]["requestId"], request["id"]);
    assert_eq!(stage.warnings(), [("stale_response".to_owned(), json!({"id": request["id"]}))]);
    let outcomes: Vec<Outcome> = stage
        .events()
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::Response { method, outcome, .. } if method == "tools/call" => Some(outcome),
            _ => None,
        })
        .collect();
    assert_eq!(outcomes, [Outcome::Timeout]);
    assert_eq!(stage.end().connections, 0);
}

/// C07: the host attaches a token of its own, so progress extends the deadline.
#[test]
fn progress_extends_the_deadline_though_nobody_listens() {
    let stage = late();
    let output = stage.call("shop", "buy", json!({})).unwrap();
    assert_eq!(output.value["content"][0]["text"], "sold");
    assert_eq!(stage.clock.pending_timers(), 0);
}

#[test]
fn progress_is_passed_on_in_order() {
    let stage = late();
    let heard: Arc<Mutex<Vec<f64>>> = Arc::default();
    let mut cx = stage.caller();
    let listener = heard.clone();
    cx.progress = Some(Arc::new(move |step| listener.lock().unwrap().push(step.progress)));
    stage.run(stage.host.core().router.call(&cx, &ServerName::new("shop"), "buy", json!({}))).unwrap();
    assert_eq!(*heard.lock().unwrap(), [1.0, 2.0]);
}

#[test]
fn foreign_and_shrinking_progress_is_dropped_and_traced() {
    let note = |token: &str, value: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{value}}}}}"#
        )
    };
    let frames = vec![
        note("$id", "2"),
        note("\"srv-1\"", "1"),
        note("$id", "2"),
        note("$id", "1"),
        result(r#"{"content":[]}"#),
        note("$id", "9"),
    ];
    let stage = Set::new("mcpServers: {shop: {}}").raw("shop", move |_, _| frames.clone()).build();
    let heard: Arc<Mutex<Vec<f64>>> = Arc::default();
    let mut cx = stage.caller();
    let listener = heard.clone();
    cx.progress = Some(Arc::new(move |step| listener.lock().unwrap().push(step.progress)));
    stage.run(stage.host.core().router.call(&cx, &ServerName::new("shop"), "buy", json!({}))).unwrap();
    stage.run(stage.clock.settle());
    assert_eq!(*heard.lock().unwrap(), [2.0]);
    let reasons: Vec<Value> = stage.warnings().into_iter().map(|(_, body)| body["reason"].clone()).collect();
    assert_eq!(reasons, ["unknown_token", "not_increasing", "not_increasing", "unknown_token"]);
}

#[test]
fn a_crashed_server_fails_its_calls_and_is_opened_again() {
    let stage = Set::new("mcpServers: {shop: {}}")
        .mcp(
            "shop",
            "tools: [{name: buy}, {name: boom}]\ncalls: [{when: {tool: boom}, crash: true}, {when: {tool: buy}, repeat: 2, result: {content: []}}]",
        )
        .build();
    stage.call("shop", "buy", json!({})).unwrap();
    let error = stage.call("shop", "boom", json!({})).unwrap_err();
    assert_eq!(error.code(), "MCP_CLOSED");
    assert_eq!(stage.host.core().router.open_connections(), 0);
    stage.call("shop", "buy", json!({})).unwrap();
    assert_eq!(stage.sent("shop", "initialize").len(), 2);
    assert_eq!(stage.host.core().router.open_connections(), 1);
    assert_eq!(stage.end().connections, 0);
}

#[test]
fn a_cancelled_call_reaches_the_server() {
    let stage = Set::new("mcpServers: {shop: {}}")
        .mcp("shop", "tools: [{name: buy}]\non_cancel: stop\ncalls: [{when: {tool: buy}, hang: true}]")
        .build();
    let cx = stage.caller();
    let (token, wait): (CancellationToken, _) = (cx.cancel.clone(), sleep(&stage.clock, Duration::from_secs(5)));
    let error = stage.run(async {
        tokio::spawn(async move {
            wait.await;
            token.cancel();
        });
        stage.host.core().router.call(&cx, &ServerName::new("shop"), "buy", json!({})).await.unwrap_err()
    });
    assert_eq!(error.code(), "CALL_CANCELLED");
    stage.run(stage.clock.settle());
    assert_eq!(stage.sent("shop", "notifications/cancelled").len(), 1);
    assert_eq!(stage.unanswered(), Vec::<String>::new());
}

#[test]
fn a_refused_handshake_leaves_no_connection() {
    let stage = Set::new("mcpServers: {shop: {}}")
        .mcp("shop", "tools: [{name: buy}]\ninitialize: {error: {code: -32000, message: not today}}")
        .build();
    let error = stage.call("shop", "buy", json!({})).unwrap_err();
    assert_eq!(error.code(), "MCP_UNREACHABLE");
    assert!(error.to_string().contains("not today"), "{error}");
    assert_eq!(stage.end().connections, 0);
}

#[test]
fn a_call_dropped_during_the_handshake_leaves_it_to_the_next() {
    let stage = Set::new("mcpServers: {shop: {}}")
        .mcp(
            "shop",
            "tools: [{name: buy}]\ninitialize: {after: 20s}\ncalls: [{when: {tool: buy}, repeat: 9, result: {content: []}}]",
        )
        .build();
    let (cx, shop) = (stage.caller(), ServerName::new("shop"));
    stage.run(async {
        let router = &stage.host.core().router;
        tokio::select! {
            biased;
            result = router.call(&cx, &shop, "buy", json!({})) => panic!("it answers too early: {result:?}"),
            () = sleep(&stage.clock, Duration::from_secs(5)) => {}
        }
    });
    stage.run(stage.clock.settle());
    stage.call("shop", "buy", json!({})).unwrap();
    assert_eq!(stage.sent("shop", "initialize").len(), 1);
    assert_eq!(stage.end().connections, 0);
}

#[test]
fn a_handshake_that_nobody_waits_for_ends_with_the_host() {
    let stage = Set::new("mcpServers: {shop: {}}\npolicy: {list_timeout: 5s}")
        .mcp("shop", "tools: [{name: buy}]\ninitialize: {after: 20s}")
        .build();
    assert_eq!(stage.list("shop").unwrap_err().code(), "CALL_TIMEOUT");
    assert_eq!(stage.host.core().router.open_connections(), 1);
    assert_eq!(stage.end().connections, 0);
}

#[test]
fn a_server_that_starts_slowly_is_listed_once_it_is_up() {
    let stage = Set::new("mcpServers: {shop: {}}\npolicy: {list_timeout: 5s}")
        .mcp("shop", "tools: [{name: buy}]\ninitialize: {after: 12s}")
        .build();
    assert_eq!(stage.list("shop").unwrap_err().code(), "CALL_TIMEOUT");
    assert_eq!(stage.list("shop").unwrap_err().code(), "CALL_TIMEOUT");
    assert_eq!(stage.list("shop").unwrap(), ["buy"]);
    let told: Vec<String> = stage.warnings().into_iter().map(|(code, _)| code).collect();
    assert_eq!(told, ["server_degraded", "server_recovered"]);
    assert_eq!(stage.sent("shop", "initialize").len(), 1);
}

#[test]
fn a_servers_question_is_answered_and_both_are_in_the_trace() {
    let stage = Set::new("mcpServers: {shop: {}}")
        .raw("shop", |method, _| match method {
            "tools/call" => vec![
                r#"{"jsonrpc":"2.0","id":"q1","method":"roots/list"}"#.to_owned(),
                r#"{"jsonrpc":"2.0","id":"q2","method":"sampling/createMessage","params":{}}"#.to_owned(),
                result(r#"{"content":[]}"#),
            ],
            _ => vec![],
        })
        .build();
    stage.call("shop", "buy", json!({})).unwrap();
    let asked: Vec<String> = stage
        .events()
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::Notification { method, direction: Direction::In, .. } => Some(method),
            _ => None,
        })
        .collect();
    assert_eq!(asked, ["roots/list", "sampling/createMessage"]);
}

/// C07: 20 s between steps is fine at a limit of 30 s, until the cap of four times the limit.
#[test_case(&[20, 40, 60], &[1, 2, 3], 70, Ok(70); "answers in time")]
#[test_case(&[20, 40, 60, 80, 100, 119], &[1, 2, 3, 4, 5, 6], 150, Err(120); "the cap holds")]
#[test_case(&[20, 40], &[1, 1], 70, Err(50); "the same value moves nothing")]
#[test_case(&[], &[], 70, Err(30); "no progress")]
fn c07_progress_extends_up_to_a_cap(after: &[u64], values: &[u64], answer: u64, ends: Result<u64, u64>) {
    let steps: Vec<String> =
        after.iter().zip(values).map(|(after, value)| format!("{{after: {after}s, progress: {value}}}")).collect();
    let stage = Set::new("mcpServers: {shop: {}}\npolicy: {tool_timeout: 30s}")
        .mcp("shop", &format!("tools: [{{name: buy}}]\non_cancel: stop\ncalls: [{{when: {{tool: buy}}, after: {answer}s, progress: [{}], result: {{content: []}}}}]", steps.join(", ")))
        .build();
    let result = stage.call("shop", "buy", json!({}));
    assert_eq!(result.is_ok(), ends.is_ok(), "{result:?}");
    assert_eq!(stage.clock.now().0 / 1_000_000_000, ends.unwrap_or_else(|at| at));
    stage.run(stage.clock.settle());
    assert_eq!(stage.sent("shop", "notifications/cancelled").len(), usize::from(ends.is_err()));
}

#[test]
fn a_result_that_cannot_be_read_is_passed_on_with_a_warning() {
    let text = r#"{"content":[{"type":"text","text":"x"}],"n":1e400}"#;
    let stage = Set::new("mcpServers: {shop: {}}").raw("shop", move |_, _| vec![result(text)]).build();
    let output = stage.call("shop", "buy", json!({})).unwrap();
    assert_eq!(output.raw.unwrap().get(), text);
    assert_eq!(stage.warnings()[0].0, "result_unreadable");
}
