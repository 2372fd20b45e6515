//! Servers that fail, start slowly, or belong to sessions that end; and what of a call must survive on its way.

use std::sync::{Arc, Mutex};

use greenroom::config::{Variables, load_text};
use greenroom::router::{CallContext, ProgressUpdate, ServerState};
use greenroom_boundary::ServerName;
use serde_json::{Value, json};
use test_case::test_case;

use crate::support::{Set, Stage, result};

const SHOP: &str = "tools: [{name: buy}, {name: boom}, {name: hang}]\ncalls:\n  \
    - {when: {tool: buy}, repeat: 100000, result: {content: []}}\n  \
    - {when: {tool: boom}, repeat: 100000, crash: true}\n  \
    - {when: {tool: hang}, repeat: 100000, hang: true}\n";

fn shop() -> ServerName {
    ServerName::new("shop")
}

/// Crashes and hangs in the mix; each session uses two servers and ends.
#[test]
fn two_thousand_sessions_leave_nothing() {
    let stage = Set::new("mcpServers: {shop: {}, market: {}}\npolicy: {tool_timeout: 1s}")
        .mcp("shop", SHOP)
        .mcp("market", SHOP)
        .build();
    let core = stage.host.core();
    stage.run(async {
        for number in 0..2000_u32 {
            let root = core.begin_session();
            let mut cx = stage.caller();
            cx.root = root.clone();
            let odd = ["buy", "boom", "hang"][number as usize % 3];
            for (server, tool) in [("shop", "buy"), ("shop", odd), ("market", "buy")] {
                let _ = core.router.call(&cx, &ServerName::new(server), tool, json!({})).await;
            }
            core.end_session(&root, &format!("s{number}")).await;
        }
    });
    assert_eq!((core.router.external_instances(), core.router.open_connections()), (0, 0));
    assert_eq!(stage.clock.pending_timers(), 0);
}

#[test]
fn a_session_that_has_ended_gets_no_server() {
    let stage = Set::new("mcpServers: {shop: {}}").mcp("shop", SHOP).build();
    let core = stage.host.core();
    let mut cx = stage.caller();
    cx.root = core.begin_session();
    let error = stage.run(async {
        core.end_session(&cx.root, "s1").await;
        core.router.call(&cx, &shop(), "buy", json!({})).await.unwrap_err()
    });
    assert_eq!(error.code(), "SESSION_ENDED");
    assert_eq!(core.router.external_instances(), 0);
}

/// Both calls wait for the one handshake, and a list that gave it up does not end it.
#[test]
fn calls_side_by_side_share_a_handshake() {
    let stage = Set::new("mcpServers: {shop: {}}").mcp("shop", &format!("{SHOP}initialize: {{after: 5s}}\n")).build();
    let (core, cx, shop) = (stage.host.core(), stage.caller(), shop());
    stage.run(async {
        let call = || core.router.call(&cx, &shop, "buy", json!({}));
        let (one, two) = tokio::join!(call(), call());
        one.unwrap();
        two.unwrap();
    });
    assert_eq!(stage.sent("shop", "initialize").len(), 1);
    assert_eq!(core.router.health(cx.root.id).into_iter().find(|(name, _)| *name == shop).unwrap().1, ServerState::Ready);
}

#[test]
fn a_hook_on_the_handshake_that_calls_its_own_server_fails_it() {
    let stage = Set::new("mcpServers: {shop: {hooks: {initialize: shop/buy}}}").mcp("shop", SHOP).build();
    let error = stage.call("shop", "buy", json!({})).unwrap_err();
    assert_eq!(error.code(), "MCP_CONNECTING", "{error}");
    assert!(error.to_string().contains("a hook on its handshake calls it"), "{error}");
    assert!(stage.sent("shop", "initialize").is_empty(), "nothing was sent before its hook had agreed");
}

#[test]
fn a_servers_lists_are_asked_for_side_by_side_and_a_slow_one_is_left_out() {
    let stage = Set::new("mcpServers: {shop: {}, slow: {}}\npolicy: {list_timeout: 4s}")
        .mcp("shop", "tools: [{name: buy}]\ninitialize: {after: 3s}")
        .mcp("slow", "tools: [{name: buy}]\ninitialize: {after: 20s}")
        .build();
    let (core, cx) = (stage.host.core(), stage.caller());
    let servers = [ServerName::new("slow"), shop(), shop()];
    let lists = stage.run(core.router.list_each(&cx, &servers, "tools/list"));
    assert_eq!(lists.len(), 2);
    assert_eq!(lists[&shop()].as_ref().unwrap().len(), 1);
    assert_eq!(lists[&servers[0]].as_ref().unwrap_err().code(), "CALL_TIMEOUT");
    assert_eq!(stage.sent("shop", "tools/list").len(), 1, "a server that is named twice is asked once");
}

#[test]
fn progress_keeps_its_meta_and_unknown_fields() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":$id,"progress":1,"total":2,"message":"m","x":{"big":9007199254740993},"_meta":{"a/b":1}}}"#;
    let stage =
        Set::new("mcpServers: {shop: {}}").raw("shop", move |_, _| vec![note.to_owned(), result(r#"{"content":[]}"#)]).build();
    let heard: Arc<Mutex<Vec<ProgressUpdate>>> = Arc::default();
    let (mut cx, listener) = (stage.caller(), heard.clone());
    cx.progress = Some(Arc::new(move |step| listener.lock().unwrap().push(step.clone())));
    stage.run(stage.host.core().router.call(&cx, &shop(), "buy", json!({}))).unwrap();
    let heard = heard.lock().unwrap();
    assert_eq!((heard[0].progress, heard[0].total, heard[0].message.as_deref()), (1.0, Some(2.0), Some("m")));
    assert_eq!(Value::Object(heard[0].further.clone()), json!({"x": {"big": 9_007_199_254_740_993_u64}, "_meta": {"a/b": 1}}));
}

fn structure(tool: &str, asks: bool) -> Option<Value> {
    let stage = Set::new("mcpServers: {shop: {}}")
        .mcp(
            "shop",
            "tools: [{name: plain}, {name: declared, outputSchema: {type: object}}]\n\
             calls: [{when: {tool: {$re: '.*'}}, repeat: 9, result: {content: [{type: text, text: '{\"a\": 1}'}]}}]",
        )
        .build();
    let cx = CallContext { wants_structure: asks, ..stage.caller() };
    let output = stage.run(stage.host.core().router.call(&cx, &shop(), tool, json!({}))).unwrap();
    output.value.get("structuredContent").cloned()
}

#[test_case("plain", true, Some(json!({"a": 1})); "asked for and not declared")]
#[test_case("plain", false, None; "not asked for")]
#[test_case("declared", true, None; "the tool says what its structure is")]
fn a_text_that_is_an_object_is_structure_only(tool: &str, asks: bool, expected: Option<Value>) {
    assert_eq!(structure(tool, asks), expected);
}

#[test]
fn params_of_prompts_and_resources_reach_the_server_whole() {
    let stage = Set::new("mcpServers: {shop: {}}").raw("shop", |_, _| vec![result("{}")]).build();
    let (core, cx) = (stage.host.core(), stage.caller());
    stage.run(async {
        let params = json!({"name": "shown", "arguments": {}, "x": 1, "_meta": {"a/b": 2}});
        core.router.get_prompt(&cx, &shop(), "real", params, None).await.unwrap();
        let params = json!({"uri": "x://y", "x": 1, "_meta": {"a/b": 2}});
        core.router.read_resource(&cx, &shop(), params, None).await.unwrap();
    });
    let prompt = &stage.sent("shop", "prompts/get")[0]["params"];
    assert_eq!((&prompt["name"], &prompt["x"], &prompt["_meta"]["a/b"]), (&json!("real"), &json!(1), &json!(2)));
    let resource = &stage.sent("shop", "resources/read")[0]["params"];
    assert_eq!((&resource["uri"], &resource["x"], &resource["_meta"]["a/b"]), (&json!("x://y"), &json!(1), &json!(2)));
}

#[test_case("mcpServers: {shop: {}}\npublish: {tools: ['shop:all']}", Some("publish"); "a whole server")]
#[test_case("mcpServers: {shop: {}}\nagents: {desk: {tools: ['shop:all']}}", Some("agents.desk.tools"); "a whole server for an agent")]
#[test_case("mcpServers: {shop: {}}\npublish: {tools: ['shop/buy:all']}", None; "one tool")]
#[test_case("mcpServers: {shop: {toolOverrides: {buy: {}}}}\npublish: {tools: ['shop:all']}", None; "a server with one tool left")]
#[test_case("agents: {desk: {}, boss: {tools: ['desk:clerk']}}", None; "an agent")]
fn an_alias_names_one_tool(config: &str, refused_at: Option<&str>) {
    let loaded = load_text("scenario:host", config, std::path::Path::new("."), &Variables::default());
    match (loaded, refused_at) {
        (Ok(_), None) => {}
        (Err(error), Some(at)) => {
            let message = error.to_string();
            assert!(
                message.contains(at) && message.contains("would give every tool of shop the one name \"all\""),
                "{message}"
            );
        }
        (other, _) => panic!("{other:?}"),
    }
}

/// A server that keeps failing rests; the pause is told, and ends.
#[test]
fn a_server_that_cannot_be_started_is_not_tried_again_at_once() {
    let stage: Stage = Set::new("mcpServers: {shop: {}}")
        .mcp("shop", "tools: [{name: buy}]\ninitialize: {error: {code: -32000, message: not today}}")
        .build();
    let codes: Vec<String> = (0..4).map(|_| stage.call("shop", "buy", json!({})).unwrap_err().code().to_owned()).collect();
    assert_eq!(codes, ["MCP_UNREACHABLE", "MCP_UNREACHABLE", "MCP_BACKOFF", "MCP_BACKOFF"]);
    assert_eq!(stage.sent("shop", "initialize").len(), 2);
    let told: Vec<String> = stage.warnings().into_iter().map(|(code, _)| code).collect();
    assert_eq!(told.iter().filter(|code| *code == "server_degraded").count(), 1);
}
