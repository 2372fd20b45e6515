//! A new config for a running host.

use std::path::Path;

use greenroom::config::{HostConfig, Variables, load_text};
use greenroom_boundary::isolate::CallValue;
use greenroom_boundary::{CancellationToken, ServerName};
use greenroom_harness::host::TurnRequest;
use serde_json::json;
use test_case::test_case;

use crate::support::{Set, Stage, op, returns};

const BEFORE: &str = "mcpServers: {kept: {}, other: {}}";
const SERVER: &str = "tools: [{name: buy}]\ncalls: [{when: {tool: buy}, repeat: 9, after: 10s, result: {content: []}}]";

fn config(text: &str) -> HostConfig {
    match load_text("scenario:host", text, Path::new("."), &Variables::default()) {
        Ok(config) => config,
        Err(error) => panic!("{error}"),
    }
}

fn stage() -> Stage {
    Set::new(BEFORE).mcp("kept", SERVER).mcp("other", SERVER).mcp("new", SERVER).build()
}

fn reload(stage: &Stage, text: &str) -> greenroom::host::Reloaded {
    let drivers = stage.host.core().drivers.clone();
    stage.host.reload(config(text), drivers)
}

#[test]
fn a_reload_says_what_it_changed() {
    let stage = stage();
    let said = stage.run(async { reload(&stage, "mcpServers: {kept: {}, other: {command: shop}, new: {}}") });
    assert_eq!((said.added, said.replaced, said.removed), (vec!["new".into()], vec!["other".into()], vec![]));
    let said = stage.run(async { reload(&stage, "mcpServers: {new: {}}") });
    assert_eq!(said.removed, [ServerName::new("kept"), ServerName::new("other")]);
}

#[test]
fn a_turn_ends_on_the_config_that_it_began_with() {
    let text = |script: &str| {
        format!("mcpServers: {{kept: {{}}, other: {{}}}}\nagents: {{desk: {{script: {script}.js, tools: [other]}}}}")
    };
    let stage = Set::new(&text("before"))
        .mcp("kept", SERVER)
        .mcp("other", SERVER)
        .native(
            "before",
            "Create",
            Box::new(|call| {
                Box::pin(async move {
                    op(&call, "mcp.CallTool", vec![json!("other"), json!("buy"), json!({})]).await;
                    Ok(CallValue::Undefined)
                })
            }),
        )
        .native("before", "Next", returns(json!({"data": {"config": "before"}})))
        .native("after", "Next", returns(json!({"data": {"config": "after"}})))
        .build();
    stage.run(async {
        let turn = |id: &str| TurnRequest {
            id: id.to_owned(),
            agent: "desk".to_owned(),
            user: "hi".to_owned(),
            ..TurnRequest::default()
        };
        let never = CancellationToken::new();
        let running = stage.host.turn(turn("t1"), &never);
        let after = async {
            while stage.host.core().router.open_connections() == 0 {
                tokio::task::yield_now().await;
            }
            let old = stage.host.core();
            let mut new = load_text("scenario:host", &text("after"), stage.folder(), &Variables::default()).unwrap();
            new.servers.remove(&ServerName::new("other"));
            new.agents.values_mut().for_each(|agent| agent.tools.clear());
            stage.host.reload(new, old.drivers.clone());
            let reply = stage.host.turn(turn("t2"), &never).await;
            assert_eq!(reply.data, json!({"config": "after"}));
            assert_eq!(old.router.open_connections(), 1, "the first turn still waits for its server");
            old
        };
        let (first, old) = tokio::join!(running, after);
        assert_eq!(first.data, json!({"config": "before"}));
        stage.clock.settle().await;
        assert_eq!(old.router.open_connections(), 0, "nobody uses the removed server any more");
    });
}

#[test]
fn servers_that_stay_the_same_keep_their_connections() {
    let stage = stage();
    for server in ["kept", "other"] {
        stage.call(server, "buy", json!({})).unwrap();
    }
    let old = stage.host.core();
    stage.run(async { reload(&stage, "mcpServers: {kept: {toolPrefix: my_}, other: {command: shop}}") });
    stage.run(stage.clock.settle());
    assert_eq!(old.router.open_connections(), 1, "the replaced server is closed");
    stage.call("kept", "my_buy", json!({})).unwrap();
    stage.call("other", "buy", json!({})).unwrap();
    assert_eq!(stage.sent("kept", "initialize").len(), 1);
    assert_eq!(stage.sent("other", "initialize").len(), 2);
    assert_eq!(stage.call("kept", "buy", json!({})).unwrap_err().code(), "CALL_UNKNOWN_TOOL", "the new prefix counts");
    assert_eq!(stage.end().connections, 0);
}

#[test_case("policy: {tool_timeout: 5s}\nmcpServers: {kept: {}}"; "of the policy")]
#[test_case("mcpServers: {kept: {timeout: 5s}}"; "of the server")]
fn a_new_deadline_counts_for_the_next_call(config: &str) {
    let stage = stage();
    stage.call("kept", "buy", json!({})).unwrap();
    stage.run(async { reload(&stage, config) });
    assert_eq!(stage.call("kept", "buy", json!({})).unwrap_err().code(), "CALL_TIMEOUT");
}

#[test]
fn conversations_outlive_their_config() {
    let agents = "agents: {desk: {connector: m}}";
    let stage = Set::new(agents).model("m", "- {id: a, reply: {text: one}}\n- {id: b, reply: {text: two}}").build();
    assert_eq!(stage.turn("desk", "first").text, "one");
    stage.run(async { reload(&stage, agents) });
    assert_eq!(stage.turn("desk", "second").text, "two");
    let asked = stage.requests("llm.m", "chat");
    let said = asked.last().unwrap().to_string();
    assert!(said.contains("first") && said.contains("second"), "{said}");
}

#[test]
fn shutting_down_closes_what_older_configs_still_hold() {
    let stage = stage();
    let cx = stage.caller();
    stage.run(async {
        let core = stage.host.core();
        let (_, in_use) = stage.host.enter();
        let other = ServerName::new("other");
        core.router.call(&cx, &other, "buy", json!({})).await.unwrap();
        stage.host.reload(config("mcpServers: {kept: {}}"), core.drivers.clone());
        stage.clock.settle().await;
        assert_eq!(core.router.open_connections(), 1);
        stage.host.shutdown().await;
        assert_eq!(core.router.open_connections(), 0);
        drop(in_use);
    });
}
