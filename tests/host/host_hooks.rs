//! The host's own hooks: on sessions and messages of outside clients.

use serde_json::{Value, json};
use test_case::test_case;

use crate::front::{ask, connect, refused};
use crate::support::{Native, Set, Stage, pure, returns, texts, thrown};

const SHOP: &str =
    "tools: [{name: buy}]\ncalls: [{when: {tool: buy}, repeat: 9, result: {content: [{type: text, text: done}]}}]";

fn stage(hooks: &str, native: Native) -> Stage {
    let config =
        format!("hooks: {hooks}\nmcpServers: {{shop: {{}}, policy: {{script: policy.js}}}}\npublish: {{mcpServers: shop}}");
    Set::new(&config).mcp("shop", SHOP).native("policy", "h", native).build()
}

fn hello() -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}, "_meta": {"a": 1}})
}

#[test]
fn a_session_hook_that_refuses_fails_initialize() {
    let stage = stage("{session: policy/h}", returns(json!({"accept": false, "reason": "closed"})));
    let peer = connect(&stage);
    let (code, message) = refused(&stage, &peer, "initialize", &hello());
    assert_eq!((code, message.as_str()), (-32603, "hook policy/h rejected the session: closed"));
}

#[test]
fn a_session_hook_may_replace_meta_and_keeps_what_it_does_not_mention() {
    let native = pure(|args| {
        assert_eq!(args[0], json!({"url": "", "sessionId": "s1", "_meta": {"a": 1}}));
        Some(json!({"_meta": {"plan": "pro"}}))
    });
    let stage = stage("{session: policy/h}", native);
    let peer = connect(&stage);
    let answer = ask(&stage, &peer, "initialize", &hello());
    assert_eq!(answer["capabilities"]["experimental"]["ai.nanobot"]["session"], json!({"plan": "pro"}));
    assert_eq!(stage.host.core().session("s1").meta(), Some(json!({"plan": "pro"})));
}

#[test_case(json!({"_meta": 5}), "hook policy/h: `_meta` is no object"; "meta of a wrong type")]
#[test_case(json!(7), "hook policy/h: a hook must return an object, it returned a number"; "a number")]
fn a_session_hook_that_makes_no_sense_fails_closed(answer: Value, told: &str) {
    let stage = stage("{session: policy/h}", returns(answer));
    let peer = connect(&stage);
    assert_eq!(refused(&stage, &peer, "initialize", &hello()).1, told);
}

#[test]
fn a_request_hook_sees_what_clients_send_and_may_change_it() {
    let native = pure(|args| {
        let mut envelope = args[0].clone();
        assert_eq!(envelope["message"]["method"], "tools/call");
        envelope["message"]["params"]["arguments"]["count"] = json!(1);
        envelope["mutated"] = json!(true);
        envelope["reason"] = json!("one each");
        Some(envelope)
    });
    let stage = stage("{'request?method=tools/call&name=b*': policy/h}", native);
    let peer = connect(&stage);
    let result = ask(&stage, &peer, "tools/call", &json!({"name": "buy", "arguments": {"count": 9}}));
    assert_eq!(stage.sent("shop", "tools/call")[0]["params"]["arguments"], json!({"count": 1}));
    assert_eq!(texts(&result), ["MCP request was mutated by hooks. Reasons: one each", "done"]);
    let record = &result["_meta"]["ai.nanobot.hooks/mutations"]["request"];
    assert_eq!((&record["hooks"][0]["hook"], &record["hooks"][0]["boundary"]), (&json!("policy/h"), &json!("host")));
}

#[test]
fn a_refused_request_does_nothing_and_tells_why() {
    let stage = stage("{request: '!mutate:policy/h'}", returns(json!({"accept": false, "reason": "not today"})));
    let peer = connect(&stage);
    let (_, message) = refused(&stage, &peer, "tools/list", &json!({}));
    assert_eq!(message, "hook policy/h rejected message: not today");
    assert!(stage.sent("shop", "tools/list").is_empty());
}

#[test_case("request", returns(json!({"accept": true})); "on the request")]
#[test_case("response", returns(json!({"accept": true})); "on the answer")]
#[test_case("response?mode=audit", returns(json!({"accept": true, "mutated": true, "message": {"result": {}}})); "an audit hook that would change it")]
fn what_no_hook_changes_keeps_its_bytes(key: &str, native: Native) {
    let text = r#"{"content":[],"n":[1.0,1e400,9007199254740993],"later":{"z":1,"a":2}}"#;
    let config = format!(
        "hooks: {{'{key}': policy/h}}\nmcpServers: {{one: {{}}, policy: {{script: policy.js}}}}\npublish: {{mcpServers: one}}"
    );
    let stage = Set::new(&config)
        .raw("one", move |method, _| match method {
            "tools/list" => vec![r#"{"jsonrpc":"2.0","id":$id,"result":{"tools":[{"name":"buy"}]}}"#.to_owned()],
            "tools/call" => vec![format!(r#"{{"jsonrpc":"2.0","id":$id,"result":{text}}}"#)],
            _ => vec![],
        })
        .native("policy", "h", native)
        .build();
    let peer = connect(&stage);
    let options = greenroom_wire::RequestOptions::within(std::time::Duration::from_mins(1));
    let raw = crate::front::ask_with(&stage, &peer, "tools/call", &json!({"name": "buy"}), options).unwrap();
    assert_eq!(raw.get(), text);
}

#[test]
fn a_response_hook_may_turn_an_error_into_a_result() {
    let native = pure(|args| {
        assert_eq!(args[0]["message"]["error"]["code"], -32602);
        Some(
            json!({"accept": true, "mutated": true, "message": {"result": {"content": [{"type": "text", "text": "no such tool"}]}}}),
        )
    });
    let stage = stage("{'response?callOnError=true': policy/h}", native);
    let peer = connect(&stage);
    let result = ask(&stage, &peer, "tools/call", &json!({"name": "sell"}));
    assert_eq!(texts(&result), ["no such tool", "MCP response was mutated by hooks."]);
}

/// The host's hooks cannot take away what a server's hooks have told.
#[test]
fn records_of_both_places_are_kept() {
    let change = |text: &'static str| {
        pure(move |_| {
            let message = json!({"result": {"content": [{"type": "text", "text": text}]}});
            Some(json!({"accept": true, "mutated": true, "message": message, "reason": text}))
        })
    };
    let config = "hooks: {'response?method=tools/call': policy/host}\nmcpServers:\n  shop: {hooks: {'tools/call?direction=response': policy/own}}\n  policy: {script: policy.js}\npublish: {mcpServers: shop}";
    let stage = Set::new(config)
        .mcp("shop", SHOP)
        .native("policy", "own", change("own"))
        .native("policy", "host", change("host"))
        .build();
    let peer = connect(&stage);
    let result = ask(&stage, &peer, "tools/call", &json!({"name": "buy"}));
    let record = &result["_meta"]["ai.nanobot.hooks/mutations"]["response"];
    assert_eq!(record["reasons"], json!(["own", "host"]));
    assert_eq!(texts(&result), ["host", "MCP response was mutated by hooks. Reasons: host"]);
}

/// C23: a hook of the host whose target is published agent, whose own turns are hooked by each other.
#[test]
fn c23_a_published_agent_as_a_hook_of_the_host_comes_to_an_end() {
    let config = "hooks: {request: guard/chat-with-guard}\nagents:\n  guard: {connector: main, chat: false, hooks: {response: helper/chat-with-helper}}\n  helper: {connector: main, chat: false, hooks: {response: guard/chat-with-guard}}\npublish: {entrypoint: [guard]}";
    let stage = Set::new(config).model("main", "- {id: a, repeat: 9, reply: {text: hello}}").build();
    let peer = connect(&stage);
    let call = json!({"name": "chat-with-guard", "arguments": {"prompt": "hi"}});
    let (_, message) = refused(&stage, &peer, "tools/call", &call);
    assert!(message.contains("guard/chat-with-guard"), "{message}");
    assert!(stage.requests("llm.main", "chat").len() <= 8);
}

#[test]
fn a_hook_of_the_host_that_fails_fails_the_call_unless_it_says_fail_open() {
    for (key, passes) in [("request", false), ("request?failOpen=true", true)] {
        let stage = stage(&format!("{{'{key}': policy/h}}"), Box::new(|_| Box::pin(async { Err(thrown("boom")) })));
        let peer = connect(&stage);
        let options = greenroom_wire::RequestOptions::within(std::time::Duration::from_mins(1));
        let result = crate::front::ask_with(&stage, &peer, "tools/call", &json!({"name": "buy"}), options);
        assert_eq!(result.is_ok(), passes, "{key}");
    }
}

/// A question of an agent-level hook shows what the session hooks said.
#[test]
fn a_config_hook_is_told_of_the_session() {
    let config = "hooks: {session: policy/s}\nagents: {desk: {connector: main, hooks: {config: policy/c}}}\nmcpServers: {policy: {script: policy.js}}";
    let stage = Set::new(config)
        .model("main", "- {id: a, reply: {text: hello}}")
        .native("policy", "s", returns(json!({"_meta": {"plan": "pro"}})))
        .native("policy", "c", pure(|args| Some(json!({"accept": args[0]["_meta"] == json!({"plan": "pro"})}))))
        .build();
    let peer = connect(&stage);
    ask(&stage, &peer, "initialize", &hello());
    let answer = ask(&stage, &peer, "tools/call", &json!({"name": "chat-with-desk", "arguments": {"prompt": "hi"}}));
    assert_eq!(texts(&answer), ["hello"]);
}
