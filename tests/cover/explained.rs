//! Which hooks look at a call, and why others do not.

use std::path::Path;

use greenroom::config::{HostConfig, Variables, load_file};
use greenroom::hooks::explain::{Call, explain};
use test_case::test_case;

fn config() -> HostConfig {
    load_file(Path::new("tests/cover/config/greenroom.yaml"), &Variables::default()).unwrap()
}

#[test]
fn every_declared_hook_is_asked_or_has_its_reason() {
    let config = config();
    let call = Call::parse(&config, "shop/buy").unwrap();
    assert_eq!(call.upstream, "order");
    insta::assert_json_snapshot!(explain(&config, &call));
}

#[test_case("shop", "EXPLAIN_CALL"; "no tool")]
#[test_case("shp/buy", "CALL_UNKNOWN_SERVER"; "unknown server")]
#[test_case("shop/order", "CALL_UNKNOWN_TOOL"; "a name that the overrides hide")]
fn a_call_that_nobody_can_make_is_refused(text: &str, code: &str) {
    assert_eq!(Call::parse(&config(), text).unwrap_err().code(), code);
}

#[test_case("clerk/chat-with-clerk", "agent.clerk")]
#[test_case("rules/cap", "server.rules")]
#[test_case("nanobot.system/bash", "server.nanobot.system")]
#[test_case("depot/anything", "mcp.depot")]
fn a_call_crosses_the_boundary_of_its_server(text: &str, boundary: &str) {
    let config = config();
    assert_eq!(Call::parse(&config, text).unwrap().boundary(&config), boundary);
}

fn hooked() -> HostConfig {
    let text = "hooks: {session: rules/s, 'request?method=tools/*': rules/r, response: '!mutate:rules/v'}\nmcpServers:\n  shop: {url: 'http://x', hooks: {'tools/list': rules/l, 'tools/call': rules/c}}\n  rules: {script: rules.js}\nagents:\n  clerk: {script: clerk.js, hooks: {config: rules/a, 'request?priority=3': [rules/late, {target: rules/early, priority: 1}], 'tools/call?direction=request': rules/m}}\n";
    greenroom::config::load_text("greenroom.yaml", text, Path::new(""), &Variables::default()).unwrap()
}

fn order(list: &[greenroom::hooks::explain::Asked]) -> Vec<&str> {
    list.iter().map(|asked| asked.hook.as_str()).collect()
}

#[test_case("initialize", "", &["rules/s"], &[], &["rules/v"]; "a handshake")]
#[test_case("tools/call", "buy", &[], &["rules/r"], &["rules/v"]; "a call")]
#[test_case("resources/list", "", &[], &[], &["rules/v"]; "a list")]
fn messages_of_outside_clients_are_explained(method: &str, name: &str, before: &[&str], request: &[&str], response: &[&str]) {
    let explained = explain(&hooked(), &Call::to_host(method, name).unwrap());
    assert_eq!(explained.boundary, "host");
    assert_eq!((order(&explained.before), order(&explained.request)), (before.to_vec(), request.to_vec()));
    assert_eq!(order(&explained.response), response);
    let reasons: Vec<&str> =
        explained.not_asked.iter().filter(|not| not.hook == "rules/c").map(|not| not.why.as_str()).collect();
    assert_eq!(reasons, ["it looks at messages of shop"]);
}

#[test]
fn other_messages_of_a_server_are_explained() {
    let config = hooked();
    let explained = explain(&config, &Call::to_server(&config, "shop", "tools/list", "").unwrap());
    assert_eq!((order(&explained.request), order(&explained.response)), (vec!["rules/l"], vec!["rules/l"]));
    assert!(explained.not_asked.iter().any(|not| not.hook == "rules/c" && not.why == "it looks at tools/call"));
    assert_eq!(Call::to_server(&config, "shop", "ping", "").unwrap_err().code(), "HOOK_KEY");
    assert_eq!(Call::to_host("tool/list", "").unwrap_err().code(), "HOOK_KEY");
}

#[test]
fn the_turns_of_an_agent_are_explained() {
    let config = hooked();
    let explained = greenroom::hooks::explain::explain_turns(&config, "clerk").unwrap();
    assert_eq!(order(&explained.before), ["rules/a"]);
    assert_eq!(order(&explained.request), ["rules/early", "rules/late"]);
    assert!(explained.not_asked.iter().any(|not| not.hook == "rules/m"));
    assert_eq!(greenroom::hooks::explain::explain_turns(&config, "clrk").unwrap_err().code(), "CALL_UNKNOWN_SERVER");
}
