//! The turn: tools, arguments, limits, retries, hooks around the model, cancellation, history.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use greenroom_boundary::trace::{EventKind, HookVerdict, Outcome};
use greenroom_harness::host::{Leftovers, TurnReply};
use serde_json::{Value, json};
use test_case::test_case;

use crate::support::{Native, Set, Stage, error, pure, result, returns, slow, throws};

const DESK: &str = "agents: {desk: {connector: main, tools: [shop]}}\nmcpServers: {shop: {}}\n";

fn failed(reply: TurnReply) -> (Outcome, String, String) {
    let error = reply.error.unwrap();
    (reply.outcome, error.code, error.message)
}

/// What the model was told of its tool calls, in order.
fn tool_messages(stage: &Stage) -> Vec<String> {
    let requests = stage.requests("llm.main", "chat");
    let last = requests.last().unwrap()["messages"].as_array().unwrap();
    last.iter().filter(|m| m["role"] == "tool").map(|m| m["content"].as_str().unwrap().to_owned()).collect()
}

/// C29: what the model writes as arguments, and what the server or the model gets.
#[test_case("''", Ok(json!({})); "empty")]
#[test_case("'  '", Ok(json!({})); "blank")]
#[test_case("'null'", Ok(json!({})); "null")]
#[test_case("'{}'", Ok(json!({})); "an object")]
#[test_case("'{\"n\": 1.0}'", Ok(json!({"n": 1.0})); "with a field")]
#[test_case("'{'", Err("Error: the arguments are not valid JSON: EOF while parsing an object at line 1 column 1"); "malformed")]
#[test_case("'[]'", Err("Error: the arguments must be a JSON object, not []"); "a list")]
#[test_case("'\"{}\"'", Err("Error: the arguments must be a JSON object, not \"{}\""); "text")]
fn c29_arguments(written: &str, wanted: Result<Value, &str>) {
    let stage = Set::new(DESK)
        .mcp("shop", "tools: [{name: buy}]\ncalls: [{when: {tool: buy}, result: {content: [{type: text, text: sold}]}}]")
        .model(
            "main",
            &format!("- {{id: ask, reply: {{tool_calls: [{{name: shop__buy, arguments: {written}}}]}}}}\n- {{id: end, reply: {{text: done}}}}\n"),
        )
        .build();
    assert_eq!(stage.turn("desk", "go").text, "done");
    let sent = stage.sent("shop", "tools/call");
    match wanted {
        Ok(arguments) => {
            assert_eq!(sent[0]["params"]["arguments"], arguments);
            assert_eq!(tool_messages(&stage), ["sold"]);
        }
        Err(message) => {
            assert!(sent.is_empty());
            assert_eq!(tool_messages(&stage), [message]);
        }
    }
    let history = &stage.requests("llm.main", "chat")[1]["messages"];
    let text = history[1]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
    if !text.starts_with('{') {
        assert!(!text.trim().is_empty() && text != "null", "what is sent back is usable by the next provider: {text:?}");
    }
}

#[test]
fn an_unknown_tool_is_told_to_the_model_with_the_nearest() {
    let stage = Set::new(DESK)
        .mcp("shop", "tools: [{name: buy-now}]")
        .model(
            "main",
            "- {id: ask, reply: {tool_calls: [{name: shop__buy_now}, {name: zzzzzzzzzzzzzzz}]}}\n- {id: end, reply: {text: done}}\n",
        )
        .build();
    stage.turn("desk", "go");
    let told = tool_messages(&stage);
    assert_eq!(told[0], "Error: there is no tool named shop__buy_now; the nearest is shop__buy-now");
    assert_eq!(told[1], "Error: there is no tool named zzzzzzzzzzzzzzz");
    assert!(stage.sent("shop", "tools/call").is_empty(), "a near miss is never guessed");
}

#[test_case("true", 30; "side by side")]
#[test_case("false", 60; "one by one")]
fn tool_results_come_in_the_order_of_the_calls(parallel: &str, seconds: u64) {
    let stage = Set::new(&format!("{DESK}policy: {{parallel_tools: {parallel}}}"))
        .mcp(
            "shop",
            "tools: [{name: a}, {name: b}, {name: c}]\ncalls:\n  - {when: {tool: a}, after: 30s, result: {content: [{type: text, text: A}]}}\n  \
             - {when: {tool: b}, after: 10s, error: {code: -1, message: B failed}}\n  - {when: {tool: c}, after: 20s, result: {content: [{type: text, text: C}], isError: true}}\n",
        )
        .model(
            "main",
            "- {id: ask, reply: {tool_calls: [{name: shop__a}, {name: shop__b}, {name: shop__c}]}}\n\
             - {id: end, when: {tool_results: [{of: shop__a, is_error: false}, {of: shop__b, is_error: true}, {of: shop__c, is_error: true}]}, reply: {text: done}}\n",
        )
        .build();
    let reply = stage.turn("desk", "go");
    assert_eq!((reply.outcome, reply.text.as_str()), (Outcome::Ok, "done"), "{:?}", reply.error);
    assert_eq!(tool_messages(&stage), ["A", "Error: shop: B failed (code -1)", "C"]);
    assert_eq!(stage.events().last().unwrap().vt, seconds * 1_000_000_000);
}

#[test]
fn a_model_that_asks_for_ever_is_stopped() {
    let stage = Set::new(&format!("{DESK}policy: {{max_model_calls: 3}}"))
        .mcp("shop", "tools: [{name: buy}]\ncalls: [{when: {tool: buy}, repeat: 9, result: {content: []}}]")
        .model("main", "- {id: ask, repeat: 9, reply: {tool_calls: [{name: shop__buy}]}}\n")
        .build();
    let (outcome, code, message) = failed(stage.turn("desk", "go"));
    assert_eq!((outcome, code.as_str()), (Outcome::Error, "TURN_LIMIT"));
    assert_eq!(message, "the model asked for tools 3 times in one turn; raise policy.max_model_calls if that is right");
    assert_eq!(stage.requests("llm.main", "chat").len(), 3);
}

#[test_case("idempotent", "{}", 1; "not idempotent")]
#[test_case("idempotent", "{idempotentHint: true}", 3; "idempotent")]
#[test_case("idempotent", "{readOnlyHint: true}", 3; "read only")]
#[test_case("all", "{}", 3; "all")]
fn only_tools_that_may_be_repeated_are(only: &str, annotations: &str, tries: usize) {
    let stage = Set::new(&format!("{DESK}policy: {{tool_timeout: 1s, tool_retry: {{max: 2, backoff: 500ms, only: {only}}}}}"))
        .mcp(
            "shop",
            &format!(
                "tools: [{{name: buy, annotations: {annotations}}}]\ncalls: [{{when: {{tool: buy}}, repeat: 3, hang: true}}]"
            ),
        )
        .model("main", "- {id: ask, reply: {tool_calls: [{name: shop__buy}]}}\n- {id: end, reply: {text: done}}\n")
        .build();
    assert_eq!(stage.turn("desk", "go").text, "done");
    assert_eq!(stage.sent("shop", "tools/call").len(), tries);
    assert_eq!(tool_messages(&stage), ["Error: shop did not answer tools/call within 1000 ms"]);
}

#[test]
fn an_answer_is_never_asked_for_again() {
    let stage = Set::new(&format!("{DESK}policy: {{tool_retry: {{max: 2, backoff: 1s, only: all}}}}"))
        .mcp("shop", "tools: [{name: buy}]\ncalls: [{when: {tool: buy}, repeat: 3, error: {code: -32603, message: down}}]")
        .model("main", "- {id: ask, reply: {tool_calls: [{name: shop__buy}]}}\n- {id: end, reply: {text: done}}\n")
        .build();
    stage.turn("desk", "go");
    assert_eq!(stage.sent("shop", "tools/call").len(), 1);
}

#[test]
fn a_server_that_is_away_does_not_take_the_turn_down() {
    let stage = Set::new("agents: {desk: {connector: main, tools: [gone, shop]}}\nmcpServers: {shop: {}, gone: {}}\n")
        .mcp("shop", "tools: [{name: buy}]")
        .model("main", "- {id: end, when: {tools: [{name: shop__buy}]}, reply: {text: done}}\n")
        .build();
    assert_eq!(stage.turn("desk", "go").text, "done");
    let (code, body) = &stage.warnings()[0];
    assert_eq!((code.as_str(), &body["server"], &body["code"]), ("server_unavailable", &json!("gone"), &json!("MCP_DENIED")));
}

fn scripted(create: Native, next: Native, model: &str) -> Stage {
    Set::new("agents: {desk: {connector: main, script: desk.js}}")
        .model("main", model)
        .native("desk", "Create", create)
        .native("desk", "Next", next)
        .build()
}

const HELLO: &str = "- {id: hello, repeat: 9, reply: {text: hello}}";

#[test_case(json!({"temperature": "0.7"}), "Create returned a wrong type: field `temperature`:"; "temperature")]
#[test_case(json!({"max_tokens": -1}), "Create returned a wrong type: field `max_tokens`:"; "max tokens")]
#[test_case(json!({"messages": "hi"}), "Create returned a wrong type: field `messages`:"; "messages")]
#[test_case(json!({"messages": [{"role": "robot"}]}), "Create returned a wrong type: field `messages`:"; "role")]
#[test_case(json!({"metadata": []}), "Create returned a wrong type: field `metadata`:"; "metadata")]
#[test_case(json!({"mcp_servers": [{"tools": []}]}), "Create returned a wrong type: field `mcp_servers`:"; "servers")]
#[test_case(json!({"delegate": {"agent_id": "x"}}), "Create returned a wrong type: field `delegate`:"; "delegate without messages")]
#[test_case(json!("hi"), "Create must return an object or nothing, it returned \"hi\""; "text")]
#[test_case(json!([1]), "Create must return an object or nothing, it returned [1]"; "list")]
fn a_wrong_type_from_create_names_the_field(value: Value, message: &str) {
    let stage = scripted(returns(value), returns(Value::Null), HELLO);
    let (outcome, code, text) = failed(stage.turn("desk", "go"));
    assert_eq!((outcome, code.as_str()), (Outcome::Error, "HOOK_MALFORMED"));
    assert!(text.starts_with(message), "{text}");
    assert_eq!(stage.verdicts(), [("desk/Create".to_owned(), HookVerdict::Error)]);
    assert!(stage.requests("llm.main", "chat").is_empty());
}

#[test]
fn create_shapes_the_request_and_next_shapes_the_reply() {
    let create = pure(|args| {
        assert_eq!(args[0], json!([{"role": "user", "content": "go"}]));
        Some(json!({"messages": [{"role": "user", "content": "other"}], "temperature": 0.5, "max_tokens": 7, "unknown": 1}))
    });
    let next = pure(|args| {
        assert_eq!(args[0]["error"], "");
        assert_eq!(args[0]["completion"]["content"], "hello");
        Some(json!({"data": {"said": args[0]["completion"]["content"]}}))
    });
    let stage = scripted(create, next, "- {id: hello, when: {messages: [{role: user, content: other}]}, reply: {text: hello}}");
    let reply = stage.turn("desk", "go");
    assert_eq!((reply.text.as_str(), reply.data), ("hello", json!({"said": "hello"})), "{:?}", reply.error);
    let request = &stage.requests("llm.main", "chat")[0];
    assert_eq!((&request["temperature"], &request["max_tokens"]), (&json!(0.5), &json!(7)));
}

#[test]
fn next_hears_of_a_failed_model_and_may_recover() {
    let next = pure(|args| {
        assert_eq!(args[0]["error_code"], "LLM_STATUS");
        assert_eq!(args[0]["completion"], Value::Null);
        Some(json!({"data": {"sorry": args[0]["error"]}}))
    });
    let stage = scripted(returns(Value::Null), next, "- {id: bad, reply: {error: {status: 503, message: busy}}}");
    let reply = stage.turn("desk", "go");
    assert_eq!((reply.outcome, reply.data), (Outcome::Ok, json!({"sorry": "main: provider answered 503: busy"})));
}

#[test]
fn without_recovery_the_models_failure_stays_the_turns() {
    let stage = scripted(returns(Value::Null), returns(Value::Null), "- {id: bad, reply: {text: half, cut: true}}");
    let (_, code, message) = failed(stage.turn("desk", "go"));
    assert_eq!((code.as_str(), message.as_str()), ("LLM_TRUNCATED", "main: the answer was cut off"));
    assert_eq!(stage.unanswered(), Vec::<String>::new());
}

#[test_case("Create"; "in create")]
#[test_case("Next"; "in next")]
fn an_exception_fails_the_turn_whatever_its_text(function: &str) {
    let (create, next) = if function == "Create" {
        (throws("Create is not defined"), returns(Value::Null))
    } else {
        (returns(Value::Null), throws("is not a function"))
    };
    let (_, code, _) = failed(scripted(create, next, HELLO).turn("desk", "go"));
    assert_eq!(code, "HOOK_THREW");
}

#[test]
fn an_agent_without_a_model_is_its_hooks() {
    let stage = Set::new("agents: {desk: {script: desk.js}}")
        .native(
            "desk",
            "Next",
            pure(|args| Some(json!({"data": {"asked": args[0]["messages"][0]["content"], "none": args[0]["completion"]}}))),
        )
        .build();
    let reply = stage.turn("desk", "go");
    assert_eq!(reply.data, json!({"asked": "go", "none": null}));
    assert_eq!(reply.text, "");
}

#[test]
fn an_unknown_agent_is_answered_with_the_nearest() {
    let (_, code, message) = failed(Set::new("agents: {desk: {}}").build().turn("dsk", "go"));
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("DELEGATION_UNKNOWN_AGENT", "no agent is named \"dsk\"; did you mean \"desk\"?")
    );
}

#[test_case("", &["one", "hello", "two"]; "chat by default")]
#[test_case(", chat: false", &["two"]; "without chat")]
fn turns_of_one_chat_share_their_history(chat: &str, seen: &[&str]) {
    let stage =
        Set::new(&format!("agents: {{desk: {{connector: main, instructions: be kind{chat}}}}}")).model("main", HELLO).build();
    stage.turn("desk", "one");
    stage.turn("desk", "two");
    let messages = stage.requests("llm.main", "chat")[1]["messages"].clone();
    let said: Vec<&str> = messages.as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!((said[0], &said[1..]), ("be kind", seen));
}

/// C27: nothing is asked once a turn is cancelled, and the server is told.
#[test_case("true"; "side by side")]
#[test_case("false"; "one by one")]
fn a_cancelled_turn_stops_everything_below_it(parallel: &str) {
    let stage = Set::new(&format!("agents: {{desk: {{connector: main, script: desk.js, tools: [shop]}}}}\nmcpServers: {{shop: {{}}}}\npolicy: {{parallel_tools: {parallel}}}"))
        .mcp("shop", "tools: [{name: a}, {name: b}]\non_cancel: stop\ncalls: [{when: {tool: {$re: '[ab]'}}, repeat: 2, hang: true}]")
        .model("main", "- {id: ask, reply: {tool_calls: [{name: shop__a}, {name: shop__b}]}}\n- {id: never, reply: {text: done}}\n")
        .native("desk", "Next", returns(json!({"data": {"recovered": true}})))
        .build();
    let reply = stage.turn_until("desk", "go", Some(Duration::from_secs(5)));
    assert_eq!(failed(reply), (Outcome::Cancelled, "TURN_CANCELLED".to_owned(), "the turn was cancelled".to_owned()));
    stage.run(stage.clock.settle());
    assert_eq!(stage.requests("llm.main", "chat").len(), 1, "no model is asked afterwards");
    let calls = stage.sent("shop", "tools/call").len();
    assert_eq!(calls, if parallel == "true" { 2 } else { 1 }, "no tool is called afterwards");
    assert_eq!(stage.sent("shop", "notifications/cancelled").len(), calls);
    assert_eq!(stage.verdicts(), [], "no hook runs afterwards");
    assert_eq!(stage.unanswered(), Vec::<String>::new());
    assert_eq!(stage.end(), Leftovers::default());
}

#[test]
fn a_cancelled_stream_ends_with_the_turn() {
    let stage = Set::new("agents: {desk: {connector: main}}")
        .model("main", "- {id: slow, reply: {text: one two three four, stream: {ttft: 1s, tokens_per_s: 1, chunking: words}}}")
        .build();
    let reply = stage.turn_until("desk", "go", Some(Duration::from_millis(2_500)));
    assert_eq!(reply.outcome, Outcome::Cancelled);
    assert_eq!(stage.unanswered(), Vec::<String>::new());
    let chunks = stage.events().iter().filter(|event| matches!(event.kind, EventKind::Chunk { .. })).count();
    assert!(chunks >= 1, "it had begun");
    assert_eq!(stage.end(), Leftovers::default());
}

#[test]
fn a_turn_that_is_cancelled_in_a_hook_leaves_nothing() {
    let stage = scripted(slow(Duration::from_secs(20), Value::Null), returns(Value::Null), HELLO);
    let reply = stage.turn_until("desk", "go", Some(Duration::from_secs(5)));
    assert_eq!(failed(reply).0, Outcome::Cancelled);
    assert_eq!(stage.requests("llm.main", "chat").len(), 0);
    assert_eq!(stage.end(), Leftovers::default());
    assert_eq!(stage.host.core().drivers.isolate.counters().active_calls, 0);
}

/// C05: the running turn keeps its catalogue; the next one sees the change.
#[test]
fn c05_a_turn_keeps_one_catalogue() {
    let changed = Arc::new(AtomicBool::new(false));
    let stage = Set::new(DESK)
        .raw("shop", move |method, params| match method {
            "tools/list" if changed.load(Ordering::SeqCst) => {
                vec![result(r#"{"tools":[{"name":"a","inputSchema":{"type":"object","required":["n"]}},{"name":"c"}]}"#)]
            }
            "tools/list" => vec![result(r#"{"tools":[{"name":"a"},{"name":"b"}]}"#)],
            "tools/call" if params["name"] == "a" => {
                changed.store(true, Ordering::SeqCst);
                vec![r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned(), result(r#"{"content":[]}"#)]
            }
            _ => vec![error(r#"{"code":-32602,"message":"no tool b"}"#)],
        })
        .model(
            "main",
            "- {id: one, reply: {tool_calls: [{name: shop__a}]}}\n\
             - {id: two, when: {tools: [{name: shop__a}, {name: shop__b}]}, reply: {tool_calls: [{name: shop__b}]}}\n\
             - {id: three, when: {tool_results: [{of: shop__b, is_error: true}]}, reply: {text: done}}\n\
             - {id: next, when: {tools: [{name: shop__a, parameters: {required: [n]}}, {name: shop__c}]}, reply: {text: again}}\n",
        )
        .build();
    assert_eq!(stage.turn("desk", "go").text, "done");
    assert_eq!(stage.turn("desk", "go").text, "again");
    assert_eq!(stage.sent("shop", "tools/list").len(), 2);
}

/// C16: root keywords of a schema reach the model, whatever an override changes beside them.
#[test]
fn c16_root_keywords_of_a_schema_reach_the_model() {
    let schema = json!({"type": "object", "$defs": {"Fit": {"enum": ["full", "crop"]},
        "Node": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Node"}}}}},
        "properties": {"f": {"$ref": "#/$defs/Fit"}, "tree": {"$ref": "#/$defs/Node"}, "x": true}, "required": ["f"],
        "additionalProperties": false, "$schema": "http://json-schema.org/draft-07/schema#"});
    let list = json!({"tools": [{"name": "draw", "description": "old", "inputSchema": schema}]}).to_string();
    let stage = Set::new(
        "agents: {desk: {connector: main, tools: [shop]}}\nmcpServers: {shop: {toolOverrides: {draw: {description: Draws}}}}\n",
    )
    .raw("shop", move |_, _| vec![result(&list)])
    .model("main", "- {id: end, reply: {text: done}}\n")
    .build();
    stage.turn("desk", "go");
    let tool = &stage.requests("llm.main", "chat")[0]["tools"][0];
    assert_eq!(tool["description"], "Draws");
    assert_eq!(tool["parameters"].to_string(), schema.to_string());
}

/// C18, path 4: digits of the model's arguments reach the server.
#[test]
fn c18_integers_beyond_double_precision_reach_the_server() {
    let stage = Set::new(DESK)
        .mcp("shop", "tools: [{name: buy}]\ncalls: [{when: {tool: buy}, result: {content: []}}]")
        .model(
            "main",
            "- {id: ask, reply: {tool_calls: [{name: shop__buy, arguments: '{\"n\":9007199254740993,\"x\":1.0}'}]}}\n- {id: end, reply: {text: done}}\n",
        )
        .build();
    stage.turn("desk", "go");
    assert_eq!(stage.sent("shop", "tools/call")[0]["params"]["arguments"].to_string(), r#"{"n":9007199254740993,"x":1.0}"#);
    let history = &stage.requests("llm.main", "chat")[1]["messages"][1]["tool_calls"][0]["function"]["arguments"];
    assert_eq!(history, r#"{"n":9007199254740993,"x":1.0}"#);
}

/// One tool that fails by itself takes neither its neighbours nor the turn down.
#[test]
fn a_crash_under_one_of_two_calls_fails_both_and_the_turn_goes_on() {
    let stage = Set::new(DESK)
        .mcp("shop", "tools: [{name: a}, {name: boom}]\ncalls: [{when: {tool: a}, after: 5s, result: {content: []}}, {when: {tool: boom}, after: 1s, crash: true}]")
        .model(
            "main",
            "- {id: ask, reply: {tool_calls: [{name: shop__a}, {name: shop__boom}]}}\n\
             - {id: end, when: {tool_results: [{of: shop__a, is_error: true}, {of: shop__boom, is_error: true}]}, reply: {text: done}}\n",
        )
        .build();
    let reply = stage.turn("desk", "go");
    assert_eq!(reply.text, "done", "{:?}", reply.error);
}
