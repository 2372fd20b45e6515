//! The hooks `config`, `request` and `response` of an agent.

use std::time::Duration;

use greenroom_boundary::trace::{HookVerdict, Outcome};
use serde_json::{Value, json};
use test_case::test_case;

use crate::support::{Native, Set, Stage, pure, returns, slow, throws};

fn stage(hook: &str, target: &str, native: Native) -> Stage {
    Set::new(&format!(
        "agents: {{desk: {{connector: main, model: small, instructions: be kind, temperature: 1.0, hooks: {{{hook}: '{target}'}}}}}}\nmcpServers: {{policy: {{script: policy.js}}}}"
    ))
    .model("main", "- {id: a, repeat: 2, reply: {text: hello}}")
    .native("policy", "h", native)
    .build()
}

#[test]
fn config_may_change_the_instructions_and_the_model() {
    let native = pure(|args| {
        assert_eq!(
            args[0]["agent"],
            json!({"instructions": "be kind", "model": "small", "temperature": 1.0, "maxTokens": null})
        );
        let mut value = args[0].clone();
        value["agent"]["instructions"] = json!("be brief");
        value["agent"]["model"] = json!("large");
        value["agent"]["maxTokens"] = json!(9);
        Some(value)
    });
    let stage = stage("config", "policy/h", native);
    assert_eq!(stage.turn("desk", "go").text, "hello");
    let request = &stage.requests("llm.main", "chat")[0];
    assert_eq!(request["messages"][0], json!({"role": "system", "content": "be brief"}));
    assert_eq!((&request["model"], &request["max_tokens"], &request["temperature"]), (&json!("large"), &json!(9), &json!(1.0)));
    assert_eq!(stage.verdicts(), [("policy/h".to_owned(), HookVerdict::Mutated)]);
}

#[test]
fn request_may_change_what_the_model_is_asked() {
    let native = pure(|args| {
        let mut value = args[0].clone();
        value["request"]["messages"][1]["content"] = json!("***");
        Some(value)
    });
    let stage = stage("request", "policy/h", native);
    stage.turn("desk", "my password");
    assert_eq!(stage.requests("llm.main", "chat")[0]["messages"][1]["content"], "***");
}

#[test]
fn request_may_answer_in_the_models_place() {
    let native = returns(json!({"response": {"message": {"role": "assistant", "content": "from the cache"}}}));
    let stage = stage("request", "policy/h", native);
    assert_eq!(stage.turn("desk", "go").text, "from the cache");
    assert!(stage.requests("llm.main", "chat").is_empty());
}

#[test]
fn response_may_change_the_answer() {
    let native = pure(|args| {
        assert_eq!(args[0]["response"]["message"]["content"], "hello");
        Some(json!({"response": {"message": {"role": "assistant", "content": "good day"}}}))
    });
    let stage = stage("response", "policy/h", native);
    assert_eq!(stage.turn("desk", "go").text, "good day");
}

#[test_case("config"; "config")]
#[test_case("request"; "request")]
#[test_case("response"; "response")]
fn a_hook_that_says_nothing_changes_nothing(hook: &str) {
    let says = [
        ("policy/h", Value::Null),
        ("policy/h", json!({})),
        ("!mutate:policy/h", json!({"accept": true})),
        ("!mutate:policy/h", json!({"accept": true, "unknown": 1})),
    ];
    for (target, value) in says {
        let stage = stage(hook, target, returns(value));
        assert_eq!(stage.turn("desk", "go").text, "hello");
        assert_eq!(stage.verdicts(), [("policy/h".to_owned(), HookVerdict::Unchanged)]);
    }
}

#[test_case("config"; "config")]
#[test_case("request"; "request")]
#[test_case("response"; "response")]
fn a_validator_that_says_nothing_refuses(hook: &str) {
    for value in [Value::Null, json!({})] {
        let stage = stage(hook, "!mutate:policy/h", returns(value));
        assert_eq!(stage.turn("desk", "go").error.unwrap().code, "HOOK_MALFORMED");
    }
}

#[test]
fn mutate_is_forbidden_here_too() {
    let native = returns(json!({"accept": true, "response": {"message": {"role": "assistant", "content": "x"}}}));
    let reply = stage("request", "!mutate:policy/h", native).turn("desk", "go");
    let error = reply.error.unwrap();
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("HOOK_REJECTED", "hook policy/h rejected the turn: mutation not allowed by hook configuration, implicit rejection")
    );
}

#[test_case(throws("boom"), "HOOK_THREW", "hook policy/h failed: Error: boom", HookVerdict::Error; "throws")]
#[test_case(slow(Duration::from_mins(1), json!({})), "HOOK_TIMEOUT", "hook policy/h did not answer within 10000 ms", HookVerdict::Timeout; "late")]
#[test_case(returns(json!(5)), "HOOK_MALFORMED", "hook policy/h: a hook must return an object, it returned a number", HookVerdict::Error; "a number")]
#[test_case(returns(json!({"accept": false, "reason": "not today"})), "HOOK_REJECTED", "hook policy/h rejected the turn: not today", HookVerdict::Rejected; "refuses")]
fn a_failing_hook_fails_the_turn(native: Native, code: &str, message: &str, verdict: HookVerdict) {
    let stage = stage("request", "policy/h", native);
    let reply = stage.turn("desk", "go");
    assert_eq!(reply.outcome, Outcome::Error);
    let error = reply.error.unwrap();
    assert_eq!((error.code.as_str(), error.message.as_str()), (code, message));
    assert_eq!(stage.verdicts(), [("policy/h".to_owned(), verdict)]);
    assert!(stage.requests("llm.main", "chat").is_empty());
}

#[test]
fn an_unusable_request_is_said_to_be_the_hooks() {
    let reply =
        stage("request", "policy/h", returns(json!({"request": {"connector": "main", "messages": 7}}))).turn("desk", "go");
    let error = reply.error.unwrap();
    assert_eq!(error.code, "HOOK_MALFORMED");
    assert!(error.message.starts_with("hook policy/h: it made the request unusable: "), "{}", error.message);
}

/// What the trace calls a change is one: a value of a wrong type is not dropped behind its back.
#[test_case(json!({"temperature": "hot"}), "hook policy/h: it made the agent's temperature unusable: "; "a temperature")]
#[test_case(json!({"maxTokens": -1}), "hook policy/h: it made the agent's maxTokens unusable: "; "a limit")]
#[test_case(json!({"model": 5}), "hook policy/h: it made the agent's model unusable: "; "a model")]
#[test_case(json!(["be brief"]), "hook policy/h: it made the agent unusable: "; "no object")]
fn config_of_a_wrong_type_fails_the_turn(agent: Value, message: &str) {
    let stage = stage("config", "policy/h", returns(json!({"agent": agent})));
    let error = stage.turn("desk", "go").error.unwrap();
    assert_eq!(error.code, "HOOK_MALFORMED");
    assert!(error.message.starts_with(message), "{}", error.message);
    assert!(stage.requests("llm.main", "chat").is_empty());
}
