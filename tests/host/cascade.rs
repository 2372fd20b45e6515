//! Message hooks through the router: what an answer does, what a failure does, what is recorded.

use std::time::Duration;

use greenroom::router::CallError;
use greenroom_boundary::trace::{EventKind, HookVerdict};
use serde_json::{Value, json};
use test_case::test_case;

use crate::support::{Native, Set, Stage, pure, returns, slow, texts, throws};

const SHOP: &str = r"
tools: [{name: buy, inputSchema: {type: object}}]
calls:
  - when: {tool: buy}
    repeat: 9
    result: {content: [{type: text, text: sold}], structuredContent: {price: 5}}
";

fn set(hooks: &str) -> Set {
    Set::new(&format!("mcpServers:\n  shop: {{hooks: {hooks}}}\n  policy: {{script: policy.js}}\n")).mcp("shop", SHOP)
}

fn with(hooks: &str, natives: Vec<(&str, Native)>) -> Stage {
    natives.into_iter().fold(set(hooks), |set, (name, native)| set.native("policy", name, native)).build()
}

/// Sets one argument.
fn fixes(key: &'static str, value: Value) -> Native {
    pure(move |args| {
        let mut envelope = args[0].clone();
        envelope["message"]["params"]["arguments"][key] = value.clone();
        envelope["mutated"] = json!(true);
        envelope["reason"] = json!(format!("{key} was wrong"));
        Some(envelope)
    })
}

fn reached(stage: &Stage) -> Value {
    let requests = stage.requests("mcp.shop", "tools/call");
    assert_eq!(requests.len(), 1, "one call reaches the server");
    requests[0]["params"]["arguments"].clone()
}

fn refused(result: Result<greenroom::router::Output, CallError>) -> (String, String) {
    let error = result.unwrap_err();
    (error.code().to_owned(), error.to_string())
}

/// C19: a later hook that says nothing undoes no earlier change.
#[test_case(pure(|_| None); "nothing")]
#[test_case(returns(json!({})); "an empty object")]
#[test_case(returns(json!({"accept": true, "mutated": false, "message": {"params": {"name": "buy", "arguments": {"path": "/a"}}}})); "the original without the mark")]
#[test_case(returns(Value::Null); "null")]
fn a_silent_hook_undoes_nothing(look2: Native) {
    let hooks = "{'tools/call?direction=request': [policy/fix, policy/look, policy/look2]}";
    let look = pure(|args| {
        assert_eq!(args[0]["message"]["params"]["arguments"], json!({"path": "/b"}), "a hook gets the current call, whole");
        Some(json!({"accept": true}))
    });
    let stage = with(hooks, vec![("fix", fixes("path", json!("/b"))), ("look", look), ("look2", look2)]);
    let output = stage.call("shop", "buy", json!({"path": "/a"})).unwrap();
    assert_eq!(reached(&stage), json!({"path": "/b"}));
    let hooks = &output.value["_meta"]["ai.nanobot.hooks/mutations"]["request"]["hooks"];
    let changed: Vec<&str> = hooks.as_array().unwrap().iter().map(|hook| hook["hook"].as_str().unwrap()).collect();
    assert_eq!(changed, ["policy/fix"]);
}

/// C19, fourth variant: a partial message is no call.
#[test]
fn a_partial_message_is_refused_before_it_is_sent() {
    let partial = json!({"accept": true, "mutated": true, "message": {"params": {"arguments": {"mode": "x"}}}});
    let stage = with("{'tools/call?direction=request': [policy/look2]}", vec![("look2", returns(partial))]);
    let (code, message) = refused(stage.call("shop", "buy", json!({})));
    assert_eq!(code, "HOOK_MALFORMED");
    assert_eq!(message, "hook policy/look2: the new message is no valid tools/call: params.name is missing or no string");
    assert!(stage.sent("shop", "tools/call").is_empty());
}

#[test_case(returns(json!({})), "HOOK_MALFORMED", "hook policy/v: a validator (`!mutate:`) must return `accept`"; "no accept")]
#[test_case(returns(json!({"accept": "yes"})), "HOOK_MALFORMED", "hook policy/v: `accept` must be a boolean"; "accept is text")]
#[test_case(returns(json!({"accept": false, "reason": "too dear"})), "HOOK_REJECTED", "hook policy/v rejected message: too dear"; "refuses")]
#[test_case(returns(json!({"accept": true, "mutated": true, "message": {}})), "HOOK_REJECTED", "hook policy/v rejected message: mutation not allowed by hook configuration, implicit rejection"; "mutates")]
#[test_case(returns(json!({"accept": true, "mutated": 1})), "HOOK_MALFORMED", "hook policy/v: `mutated` must be a boolean"; "mutated is a number")]
#[test_case(returns(json!(false)), "HOOK_MALFORMED", "hook policy/v: a hook must return an object, it returned a boolean"; "returns a boolean")]
#[test_case(returns(json!("no")), "HOOK_MALFORMED", "hook policy/v: a hook must return an object, it returned a string"; "returns text")]
#[test_case(returns(json!([true])), "HOOK_MALFORMED", "hook policy/v: a hook must return an object, it returned an array"; "returns a list")]
#[test_case(throws("boom"), "HOOK_THREW", "hook policy/v failed: Error: boom"; "throws")]
#[test_case(slow(Duration::from_secs(11), json!({"accept": true})), "HOOK_TIMEOUT", "hook policy/v did not answer within 10000 ms"; "is late")]
fn a_validator_that_does_not_say_yes_stops_the_call(native: Native, code: &str, message: &str) {
    let stage = with("{'tools/call?direction=request': '!mutate:policy/v'}", vec![("v", native)]);
    assert_eq!(refused(stage.call("shop", "buy", json!({}))), (code.to_owned(), message.to_owned()));
    assert!(stage.sent("shop", "tools/call").is_empty(), "nothing reaches the server");
}

#[test_case(returns(json!(false)); "a boolean")]
#[test_case(returns(json!(7)); "a number")]
#[test_case(returns(json!({"accept": false})); "a refusal")]
#[test_case(returns(json!({"mutated": true})); "a mutation without message")]
#[test_case(returns(json!({"mutated": true, "message": {"params": {"name": "buy", "arguments": []}}})); "arguments that are a list")]
#[test_case(throws("boom"); "an exception")]
#[test_case(slow(Duration::from_secs(11), json!({})); "no answer in time")]
fn a_mutator_that_fails_stops_the_call_too(native: Native) {
    let stage = with("{'tools/call?direction=request': policy/m}", vec![("m", native)]);
    stage.call("shop", "buy", json!({})).unwrap_err();
    assert!(stage.sent("shop", "tools/call").is_empty());
}

#[test_case(throws("boom"), HookVerdict::Error; "throws")]
#[test_case(slow(Duration::from_secs(11), json!({})), HookVerdict::Timeout; "late")]
#[test_case(returns(json!(5)), HookVerdict::Error; "wrong type")]
fn fail_open_lets_the_message_pass_unchanged(native: Native, verdict: HookVerdict) {
    let stage = with("{'tools/call?direction=request&failOpen=true': policy/m}", vec![("m", native)]);
    stage.call("shop", "buy", json!({"n": 1})).unwrap();
    assert_eq!(reached(&stage), json!({"n": 1}));
    assert_eq!(stage.verdicts(), [("policy/m".to_owned(), verdict)]);
}

#[test]
fn fail_open_does_not_overrule_a_refusal() {
    let stage = with("{'tools/call?failOpen=true': '!mutate:policy/v'}", vec![("v", returns(json!({"accept": false})))]);
    assert_eq!(refused(stage.call("shop", "buy", json!({}))).0, "HOOK_REJECTED");
}

#[test]
fn the_default_limit_is_ten_seconds_of_the_hosts_clock() {
    let stage = with("{'tools/call?direction=request': policy/m}", vec![("m", slow(Duration::from_millis(9_999), json!({})))]);
    stage.call("shop", "buy", json!({})).unwrap();
    let stage = with("{'tools/call?direction=request': policy/m}", vec![("m", slow(Duration::from_hours(1), json!({})))]);
    refused(stage.call("shop", "buy", json!({})));
    let at = stage.events().iter().find(|event| matches!(event.kind, EventKind::Hook { .. })).unwrap().vt;
    assert_eq!(at, 10_000_000_000, "and it is over at exactly that time");
}

#[test]
fn an_audit_hook_is_heard_and_changes_nothing() {
    let hooks = "{'tools/call?mode=audit': [policy/fix, '!mutate:policy/no', policy/bad]}";
    let natives = vec![("fix", fixes("n", json!(2))), ("no", returns(json!({"accept": false}))), ("bad", throws("boom"))];
    let stage = with(hooks, natives);
    let output = stage.call("shop", "buy", json!({"n": 1})).unwrap();
    assert_eq!(reached(&stage), json!({"n": 1}));
    assert_eq!(texts(&output.value), ["sold"]);
    assert!(output.value.get("_meta").is_none());
    let verdicts: Vec<HookVerdict> = stage.verdicts().into_iter().map(|(_, verdict)| verdict).take(3).collect();
    assert_eq!(verdicts, [HookVerdict::Mutated, HookVerdict::Error, HookVerdict::Rejected], "mutators first");
}

#[test]
fn what_changed_is_told_to_the_caller() {
    let hooks = "{'tools/call?direction=request': policy/fix, 'tools/call?direction=response': policy/mask}";
    let mask = pure(|args| {
        let mut envelope = args[0].clone();
        assert_eq!(envelope["message"]["params"]["arguments"], json!({"n": 2}), "the response side sees what was sent");
        envelope["message"]["result"]["content"] = json!([{"type": "text", "text": "***"}]);
        envelope["mutated"] = json!(true);
        envelope["reason"] = json!("private");
        Some(envelope)
    });
    let stage = with(hooks, vec![("fix", fixes("n", json!(2))), ("mask", mask)]);
    let output = stage.call("shop", "buy", json!({"n": 1})).unwrap();
    assert_eq!(
        texts(&output.value),
        [
            "MCP request was mutated by hooks. Reasons: n was wrong",
            "***",
            "MCP response was mutated by hooks. Reasons: private",
        ]
    );
    let record = &output.value["_meta"]["ai.nanobot.hooks/mutations"];
    assert_eq!(record["request"]["mutated"], json!(true));
    assert_eq!(record["request"]["hooks"][0]["patch"], json!([{"op": "replace", "path": "/params/arguments/n", "value": 2}]));
    assert_eq!(record["response"]["reasons"], json!(["private"]));
    let written: Value = serde_json::from_str(output.raw.unwrap().get()).unwrap();
    assert_eq!(written, output.value, "what is passed on says the same");
}

const REFUSING: &str = r"
tools: [{name: buy}]
calls: [{when: {tool: buy}, repeat: 9, error: {code: -32050, message: sold out, data: {sku: 7}}}]
";

fn refusing(key: &str, native: Native) -> Stage {
    Set::new(&format!("mcpServers:\n  shop: {{hooks: {{'{key}': policy/r}}}}\n  policy: {{script: policy.js}}\n"))
        .mcp("shop", REFUSING)
        .native("policy", "r", native)
        .build()
}

#[test]
fn a_response_hook_may_turn_an_error_into_a_result() {
    let native = pure(|args| {
        assert_eq!(args[0]["message"]["error"], json!({"code": -32050, "message": "sold out", "data": {"sku": 7}}));
        let message = json!({"result": {"content": [{"type": "text", "text": "try tomorrow"}]}});
        Some(json!({"accept": true, "mutated": true, "message": message}))
    });
    let stage = refusing("tools/call?direction=response&callOnError=true", native);
    let output = stage.call("shop", "buy", json!({})).unwrap();
    assert_eq!(texts(&output.value), ["try tomorrow", "MCP response was mutated by hooks."]);
    assert_eq!(stage.unanswered(), Vec::<String>::new());
}

#[test_case("tools/call?direction=response&callOnError=true", 1; "wants errors")]
#[test_case("tools/call?direction=response&callOnError=false", 0; "wants results")]
#[test_case("tools/call?direction=response", 1; "wants both")]
fn call_on_error_chooses_by_the_kind_of_answer(key: &str, asked: usize) {
    let stage = refusing(key, returns(json!({"accept": true})));
    let error = stage.call("shop", "buy", json!({})).unwrap_err();
    let CallError::Rpc { error, .. } = error else { panic!("{error}") };
    assert_eq!((error.code, error.data.unwrap().get()), (-32050, r#"{"sku":7}"#), "the error stays whole");
    assert_eq!(stage.verdicts().len(), asked);
}

#[test]
fn a_message_with_result_and_error_is_refused() {
    let message = json!({"result": {"content": []}, "error": {"code": 1, "message": "x"}});
    let native = returns(json!({"accept": true, "mutated": true, "message": message}));
    let stage = refusing("tools/call?direction=response", native);
    let (code, message) = refused(stage.call("shop", "buy", json!({})));
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("HOOK_MALFORMED", "hook policy/r: the new message must have exactly one of `result` and `error`")
    );
}

#[test]
fn a_hook_on_its_own_server_does_not_set_itself_off() {
    let hooks = "{'*': policy/look}";
    let stage = Set::new(&format!("mcpServers:\n  policy: {{script: policy.js, hooks: {hooks}}}\n"))
        .native("policy", "look", returns(json!({"accept": true})))
        .native("policy", "work", returns(json!({"done": true})))
        .build();
    let output = stage.call("policy", "work", json!({})).unwrap();
    assert_eq!(output.value["structuredContent"], json!({"done": true}));
    assert_eq!(stage.verdicts().len(), 2, "once per side");
}

#[test]
fn two_hooks_on_each_others_server_end() {
    let stage = Set::new(
        "mcpServers:\n  a: {script: a.js, hooks: {'*?direction=request': b/look}}\n  \
         b: {script: b.js, hooks: {'*?direction=request': a/look}}\n",
    )
    .native("a", "look", returns(json!({"accept": true})))
    .native("b", "look", returns(json!({"accept": true})))
    .build();
    stage.call("a", "look", json!({})).unwrap();
    let verdicts: Vec<String> = stage.verdicts().into_iter().map(|(hook, _)| hook).collect();
    assert_eq!(verdicts, ["a/look", "b/look"], "b/look is watched by a/look, which is not watched again");
}

#[test]
fn a_long_chain_of_hooks_on_hooks_is_cut_with_its_path() {
    let server = |i: usize| format!("  s{i}: {{script: s{i}.js, hooks: {{'tools/call?direction=request': s{}/f}}}}\n", i + 1);
    let servers = (0..12).map(server).collect::<Vec<_>>().concat();
    let set = Set::new(&format!("mcpServers:\n{servers}  s12: {{script: s12.js}}\n"));
    let stage = (0..13).fold(set, |set, i| set.native(&format!("s{i}"), "f", returns(json!({"accept": true})))).build();
    let (code, message) = refused(stage.call("s0", "f", json!({})));
    assert_eq!(code, "HOOK_DEPTH");
    assert!(
        message.ends_with(
            "hooks call each other 9 deep: s1/f > s2/f > s3/f > s4/f > s5/f > s6/f > s7/f > s8/f > s9/f; remove the loop"
        ),
        "{message}"
    );
}

#[test]
fn hooks_run_on_built_in_servers_like_on_any() {
    let stage = Set::new(
        "agents: {desk: {description: a}}\nmcpServers:\n  nanobot.meta: {hooks: {'tools/call?name=list_agents': '!mutate:policy/no'}}\n  policy: {script: policy.js}\n",
    )
    .native("policy", "no", returns(json!({"accept": false, "reason": "private"})))
    .build();
    let (_, message) = refused(stage.call("nanobot.meta", "list_agents", json!({})));
    assert_eq!(message, "hook policy/no rejected message: private");
}

/// C18, path 3: a script's numbers cannot hold every digit; what it did not touch keeps them.
#[test]
fn c18_untouched_numbers_keep_their_digits() {
    let rounds = pure(|args| {
        let mut envelope = args[0].clone();
        let arguments = json!({"id": 9_007_199_254_740_992_u64, "one": 1, "list": [9_007_199_254_740_992_u64], "n": 2});
        envelope["message"]["params"]["arguments"] = arguments;
        envelope["mutated"] = json!(true);
        Some(envelope)
    });
    let stage = with("{'tools/call?direction=request': policy/m}", vec![("m", rounds)]);
    let arguments = json!({"id": 9_007_199_254_740_993_u64, "one": 1.0, "list": [9_007_199_254_740_993_u64], "n": 1});
    let output = stage.call("shop", "buy", arguments).unwrap();
    assert_eq!(reached(&stage).to_string(), r#"{"id":9007199254740993,"one":1.0,"list":[9007199254740993],"n":2}"#);
    let patch = &output.value["_meta"]["ai.nanobot.hooks/mutations"]["request"]["hooks"][0]["patch"];
    assert_eq!(*patch, json!([{"op": "replace", "path": "/params/arguments/n", "value": 2}]));
}

/// C22: one order, whatever spelling the file has.
#[test]
fn c22_the_order_is_the_same_in_yaml_and_json() {
    let yaml = "{'*': [policy/a, policy/b], 'tools/call?priority=5': [policy/c, policy/d], 'tools/call?priority=-1&direction=request': policy/e, 'tools/call?name=buy': ['!mutate:policy/f', policy/g]}";
    let json = yaml.replace('\'', "\"");
    let json = ["a", "b", "c", "d", "e", "g"]
        .iter()
        .fold(json, |text, name| text.replace(&format!("policy/{name}"), &format!("\"policy/{name}\"")));
    let order = |hooks: &str| {
        let natives = ["a", "b", "c", "d", "e", "f", "g"].map(|name| (name, returns(json!({"accept": true}))));
        let stage = with(hooks, natives.into_iter().collect());
        stage.call("shop", "buy", json!({})).unwrap();
        stage.verdicts().into_iter().map(|(hook, _)| hook.replace("policy/", "")).collect::<String>()
    };
    assert_eq!(order(yaml), "eabgcdfabgcdf");
    assert_eq!(order(&json), order(yaml));
}

/// A value nested deeper than any reader takes: its text passes on the wire, and no hook can look into it.
fn abyss() -> String {
    format!("{}{}", "[".repeat(200), "]".repeat(200))
}

/// A hook that makes its answer unreadable has not let the message pass.
#[test_case("policy/m", "SCRIPT_RESULT"; "a mutator")]
#[test_case("'!mutate:policy/m'", "SCRIPT_RESULT"; "a validator")]
fn a_hook_whose_answer_cannot_be_read_has_failed(target: &str, code: &str) {
    let unreadable: Native = Box::new(|_| {
        let raw = serde_json::value::RawValue::from_string(format!(r#"{{"accept":true,"x":{}}}"#, abyss())).unwrap();
        Box::pin(async move { Ok(greenroom_boundary::isolate::CallValue::Json(raw)) })
    });
    let stage = with(&format!("{{'tools/call?direction=request': {target}}}"), vec![("m", unreadable)]);
    assert_eq!(refused(stage.call("shop", "buy", json!({}))).0, code);
    assert!(stage.sent("shop", "tools/call").is_empty());
}

/// A server cannot get an answer past its hooks by writing it so that they see nothing.
#[test]
fn an_answer_that_hooks_cannot_read_is_held_back() {
    let deep = |method: &str, _: &Value| match method {
        "tools/call" => vec![format!(r#"{{"jsonrpc":"2.0","id":$id,"result":{{"content":[],"x":{}}}}}"#, abyss())],
        _ => vec![],
    };
    let hooks = "mcpServers:\n  deep: {hooks: {'tools/call?direction=response': '!mutate:policy/v'}}\n  open: {}\n  policy: {script: policy.js}\n";
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = asked.clone();
    let validator = pure(move |_| {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Some(json!({"accept": true}))
    });
    let stage = Set::new(hooks).raw("deep", deep).raw("open", deep).native("policy", "v", validator).build();
    assert_eq!(refused(stage.call("deep", "dig", json!({}))).0, "CALL_UNREADABLE");
    assert_eq!(asked.load(std::sync::atomic::Ordering::SeqCst), 0);
    assert!(stage.call("open", "dig", json!({})).unwrap().raw.is_some(), "where no hook looks, the bytes pass");
}

/// The overrides of a server are an allow-list for hooks, too.
#[test]
fn a_hook_cannot_reach_a_tool_that_the_overrides_hide() {
    let stage = Set::new(
        "mcpServers:\n  shop: {toolOverrides: {buy: {}}, hooks: {'tools/call?direction=request': policy/m}}\n  policy: {script: policy.js}\n",
    )
    .mcp("shop", SHOP)
    .native(
        "policy",
        "m",
        pure(|args| {
            let mut envelope = args[0].clone();
            envelope["message"]["params"]["name"] = json!("sell");
            envelope["mutated"] = json!(true);
            Some(envelope)
        }),
    )
    .build();
    assert_eq!(refused(stage.call("shop", "buy", json!({}))).0, "CALL_UNKNOWN_TOOL");
    assert!(stage.sent("shop", "tools/call").is_empty());
}
