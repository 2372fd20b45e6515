//! Delegation: by hooks, by tools, by scripts; its limits, and what a failing delegate does.

use greenroom_boundary::trace::{DelegateVia, EventKind, Outcome};
use serde_json::{Value, json};
use test_case::test_case;

use crate::support::{Native, Set, Stage, op, pure, returns};

/// Work for another agent, as a hook returns it.
fn hands_to(agent: &str) -> Native {
    returns(json!({"delegate": {"agent_id": agent, "messages": [{"role": "user", "content": format!("for {agent}")}]}}))
}

fn chain(stage: &Stage) -> Vec<(String, u32, DelegateVia)> {
    let delegations = stage.events().into_iter().filter_map(|event| match event.kind {
        EventKind::Delegate { to, depth, via, .. } => Some((to.to_string(), depth, via)),
        _ => None,
    });
    delegations.collect()
}

fn failure(stage: &Stage, agent: &str) -> (String, String) {
    let reply = stage.turn(agent, "go");
    assert_eq!(reply.outcome, Outcome::Error);
    let error = reply.error.unwrap();
    (error.code, error.message)
}

const TWO: &str = "agents: {desk: {script: desk.js, connector: main}, billing: {connector: money}}\n";

#[test_case("Create", DelegateVia::Create, 0; "create: the model of the first is not asked")]
#[test_case("Next", DelegateVia::Next, 1; "next: it is")]
fn a_hook_hands_the_turn_over(function: &str, via: DelegateVia, asked: usize) {
    let stage = Set::new(TWO)
        .model("main", "- {id: a, reply: {text: mine}}")
        .model("money", "- {id: b, when: {messages: [{content: for billing}]}, reply: {text: paid}}")
        .native("desk", function, hands_to("billing"))
        .build();
    let reply = stage.turn("desk", "go");
    assert_eq!(reply.text, "paid", "{:?}", reply.error);
    assert_eq!(chain(&stage), [("billing".to_owned(), 1, via)]);
    assert_eq!(stage.requests("llm.main", "chat").len(), asked);
    let scopes: Vec<String> =
        stage.events().into_iter().map(|event| event.scope.to_string()).filter(|s| s.ends_with("billing")).collect();
    assert!(scopes.iter().all(|scope| scope == "t1/desk/billing"), "{scopes:?}");
}

#[test]
fn a_circle_is_refused_with_its_path() {
    let stage = Set::new("agents: {a: {script: a.js}, b: {script: b.js}}")
        .native("a", "Create", hands_to("b"))
        .native("b", "Create", hands_to("a"))
        .build();
    assert_eq!(failure(&stage, "a"), ("DELEGATION_CYCLE".to_owned(), "delegation goes in a circle: a > b > a".to_owned()));
}

#[test]
fn a_circle_that_is_allowed_ends_at_the_depth() {
    let stage = Set::new("agents: {a: {script: a.js}, b: {script: b.js}}\npolicy: {delegation: {max_depth: 3, cycles: allow}}")
        .native("a", "Create", hands_to("b"))
        .native("b", "Create", hands_to("a"))
        .build();
    let wanted = ("DELEGATION_DEPTH".to_owned(), "delegation is limited to 3 levels: a > b > a > b > a".to_owned());
    assert_eq!(failure(&stage, "a"), wanted);
    assert_eq!(chain(&stage).len(), 3);
}

#[test]
fn an_unknown_delegate_is_named_with_the_nearest() {
    let stage = Set::new("agents: {desk: {script: desk.js}, billing: {}}").native("desk", "Create", hands_to("biling")).build();
    let message = "no agent is named \"biling\"; did you mean \"billing\"?".to_owned();
    assert_eq!(failure(&stage, "desk"), ("DELEGATION_UNKNOWN_AGENT".to_owned(), message));
}

#[test]
fn the_model_calls_an_agent_as_a_tool() {
    let stage = Set::new("agents: {desk: {connector: main, agents: [billing]}, billing: {connector: money, description: Pays}}")
        .model(
            "main",
            "- id: ask\n  when: {tools: [{name: chat-with-billing, description: Pays}]}\n  reply: {tool_calls: [{name: chat-with-billing, arguments: {prompt: pay}}]}\n\
             - {id: end, when: {tool_results: [{of: chat-with-billing, text: paid}]}, reply: {text: done}}\n",
        )
        .model("money", "- {id: b, when: {messages: [{content: pay}]}, reply: {text: paid}}")
        .build();
    let reply = stage.turn("desk", "go");
    assert_eq!(reply.text, "done", "{:?}", reply.error);
    assert_eq!(chain(&stage), [("billing".to_owned(), 1, DelegateVia::Tool)]);
    assert_eq!(stage.unanswered(), Vec::<String>::new());
}

#[test]
fn a_failing_delegate_is_a_failed_tool() {
    let stage = Set::new("agents: {desk: {connector: main, agents: [billing]}, billing: {connector: money}}")
        .model(
            "main",
            "- {id: ask, reply: {tool_calls: [{name: chat-with-billing, arguments: {prompt: pay}}]}}\n\
             - {id: end, when: {tool_results: [{of: chat-with-billing, is_error: true}]}, reply: {text: sorry}}\n",
        )
        .model("money", "- {id: b, reply: {error: {status: 500, message: down}}}")
        .build();
    assert_eq!(stage.turn("desk", "go").text, "sorry");
}

/// C23: an agent's hook that starts the agent again.
#[test]
fn an_agent_hook_that_starts_its_agent_is_stopped() {
    let again: Native = Box::new(|call| {
        Box::pin(async move {
            let answer = op(&call, "mcp.CallTool", vec![json!("a"), json!("chat-with-a"), json!({"prompt": "again"})]).await;
            assert!(answer["error"]["message"].as_str().unwrap().contains("delegation goes in a circle: a > a"), "{answer}");
            Ok(greenroom_boundary::isolate::CallValue::Undefined)
        })
    });
    let stage =
        Set::new("agents: {a: {connector: main, hooks: {response: sum/summarise}}}\nmcpServers: {sum: {script: sum.js}}")
            .model("main", "- {id: a, repeat: 9, reply: {text: hello}}")
            .native("sum", "summarise", again)
            .build();
    assert_eq!(stage.turn("a", "go").text, "hello");
    assert_eq!(stage.requests("llm.main", "chat").len(), 1);
}

#[test]
fn metadata_and_connector_travel_with_the_work() {
    let hand = returns(json!({"delegate": {"agent_id": "billing", "messages": [{"role": "user", "content": "x"}],
        "options": {"connector": "other", "metadata": {"ticket": 7}}}}));
    let stage = Set::new("agents: {desk: {script: desk.js}, billing: {connector: money, script: billing.js}}")
        .native("desk", "Create", hand)
        .native(
            "billing",
            "Create",
            pure(|args| {
                assert_eq!(args[1]["metadata"], json!({"ticket": 7}));
                None
            }),
        )
        .model("other", "- {id: o, reply: {text: by other}}")
        .build();
    assert_eq!(stage.turn("desk", "go").text, "by other");
}

#[test]
fn ctx_agent_call_tells_failure_and_success() {
    let next: Native = Box::new(|call| {
        Box::pin(async move {
            let messages = json!([{"role": "user", "content": "x"}]);
            let good = op(&call, "agent.Call", vec![json!("billing"), messages.clone()]).await;
            let bad = op(&call, "agent.Call", vec![json!("nobody"), messages.clone()]).await;
            let wrong = op(&call, "agent.Call", vec![json!(7), messages]).await;
            Ok(crate::support::json_value(&json!({"data": {"good": good, "bad": bad, "wrong": wrong}})))
        })
    });
    let stage = Set::new("agents: {desk: {script: desk.js}, billing: {connector: money}}")
        .native("desk", "Next", next)
        .model("money", "- {id: b, reply: {text: paid}}")
        .build();
    let data = stage.turn("desk", "go").data;
    assert_eq!(data["good"]["ok"]["content"], "paid");
    assert_eq!(data["bad"]["ok"]["code"], "DELEGATION_UNKNOWN_AGENT");
    let wrong = &data["wrong"]["error"];
    assert_eq!((&wrong["code"], &wrong["class"]), (&json!("ERR_ARGUMENT"), &json!("TypeError")));
    assert!(wrong["message"].as_str().unwrap().contains("must be a string"), "{wrong}");
    assert_eq!(chain(&stage), [("billing".to_owned(), 1, DelegateVia::Script)]);
    assert_eq!(data["good"]["ok"]["response"]["next"], Value::Null);
}

/// What only hooks may say (`connector`, `messages`) a model cannot say in a tool's arguments.
#[test]
fn a_model_does_not_choose_another_agents_connector() {
    let stage = Set::new("agents: {desk: {connector: main, agents: [billing]}, billing: {connector: money}}")
        .model(
            "main",
            "- {id: ask, reply: {tool_calls: [{name: chat-with-billing, arguments: {prompt: pay, connector: main}}]}}\n\
             - {id: end, reply: {text: done}}\n",
        )
        .model("money", "- {id: b, reply: {text: paid}}")
        .build();
    stage.turn("desk", "go");
    assert_eq!(stage.requests("llm.money", "chat").len(), 1, "the agent's own connector is asked");
    assert_eq!(stage.requests("llm.main", "chat").len(), 2);
}

/// A hook on an agent sees and changes what its delegators get, as it does for everybody else.
#[test]
fn a_response_hook_on_an_agent_has_the_last_word_over_its_answer() {
    let redacts = pure(|args| {
        let mut envelope = args[0].clone();
        envelope["message"]["result"]["content"] = json!([{"type": "text", "text": "(withheld)"}]);
        envelope["mutated"] = json!(true);
        Some(envelope)
    });
    let stage = Set::new(&format!("{TWO}mcpServers:\n  policy: {{script: policy.js}}\n"))
        .model("money", "- {id: b, reply: {text: the card is 4111}}")
        .native("desk", "Create", hands_to("billing"))
        .native("policy", "redact", redacts)
        .hook_on("billing", "tools/call?direction=response", "policy/redact")
        .build();
    let reply = stage.turn("desk", "go");
    assert_eq!(reply.text, "(withheld)\nMCP response was mutated by hooks.", "{:?}", reply.error);
}
