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
