//! The grammar of hook declarations.

use std::time::Duration;

use greenroom::hooks::{HookForm, HookKey, HookOptions, HookTarget, Side};
use greenroom_boundary::trace::HookMode;
use proptest::prelude::*;
use test_case::test_case;

#[test_case("", "\"\" names no method; write `tools/call`, `tools/call?direction=request` or `*`"; "nothing")]
#[test_case("?direction=request", "\"?direction=request\" names no method; write `tools/call`, `tools/call?direction=request` or `*`"; "no method")]
#[test_case("tools/call?dir=request", "unknown parameter \"dir\"; known are name, direction, callOnError, method, priority, timeout, failOpen, mode"; "unknown parameter")]
#[test_case("tools/call?priority=1&priority=2", "parameter \"priority\" is given twice"; "twice")]
#[test_case("tools/call?direction=both", "parameter direction cannot be \"both\""; "bad direction")]
#[test_case("tools/call?direction", "parameter direction cannot be \"\""; "no value")]
#[test_case("tools/call?priority=high", "parameter priority cannot be \"high\""; "priority no number")]
#[test_case("tools/call?priority=2147483648", "parameter priority cannot be \"2147483648\""; "priority too large")]
#[test_case("tools/call?timeout=10", "parameter timeout cannot be \"10\""; "timeout without unit")]
#[test_case("tools/call?timeout=-1s", "parameter timeout cannot be \"-1s\""; "timeout negative")]
#[test_case("tools/call?failOpen=yes", "parameter failOpen cannot be \"yes\""; "flag no boolean")]
#[test_case("tools/call?callOnError=1", "parameter callOnError cannot be \"1\""; "number is no flag")]
#[test_case("tools/call?mode=dry", "parameter mode cannot be \"dry\""; "bad mode")]
#[test_case("tools/call?Mode=audit", "unknown parameter \"Mode\"; known are name, direction, callOnError, method, priority, timeout, failOpen, mode"; "case counts")]
fn a_bad_key_says_what_is_wrong(key: &str, message: &str) {
    let error = HookKey::parse(key).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.code()), (message, "HOOK_KEY"));
}

#[test_case("tool/call", "no revision of MCP has a method \"tool/call\"; did you mean \"tools/call\"?"; "misspelt")]
#[test_case("tool/*", "no revision of MCP has a method \"tool/*\""; "a glob that fits no method")]
#[test_case("*?method=tools/cal", "no revision of MCP has a method \"tools/cal\"; did you mean \"tools/call\"?"; "misspelt parameter")]
#[test_case("ping", "hooks do not see \"ping\": it carries nothing, and each connection answers it itself"; "ping")]
#[test_case("notifications/cancelled", "hooks do not see \"notifications/cancelled\": a cancellation must reach the far end as it is"; "a cancellation")]
#[test_case("notifications/canc*", "hooks do not see \"notifications/canc*\": a cancellation must reach the far end as it is"; "a glob for cancellations only")]
#[test_case("tasks/get", "hooks do not see \"tasks/get\": this host does not exchange it yet"; "a method that is not spoken yet")]
#[test_case("notifications/message?direction=response", "\"notifications/message\" has no answer; write direction=request or leave it out"; "the answer of a notification")]
#[test_case("prompts/*?method=tools/call", "\"prompts/*\" never fits method=\"tools/call\"; write the method as the key"; "a method outside of the key")]
fn a_message_that_no_hook_can_see_is_refused(key: &str, message: &str) {
    assert_eq!(HookKey::parse(key).unwrap_err().to_string(), message);
}

#[test_case("initialize", "initialize", true)]
#[test_case("tools/list", "tools/list", true)]
#[test_case("resources/*", "resources/templates/list", true)]
#[test_case("completion/complete", "completion/complete", true)]
#[test_case("logging/setLevel", "logging/setLevel", true)]
#[test_case("sampling/createMessage", "sampling/createMessage", true)]
#[test_case("elicitation/create", "elicitation/create", true)]
#[test_case("roots/list", "roots/list", true)]
#[test_case("notifications/*", "notifications/tools/list_changed", true)]
#[test_case("notifications/*", "notifications/cancelled", false; "no pattern reaches a cancellation")]
#[test_case("*", "ping", false; "no pattern reaches a ping")]
#[test_case("*", "x/custom", true; "a method of nobody's revision")]
#[test_case("*?method=tools/call", "tools/call", true; "the method as a parameter")]
#[test_case("*?method=tools/call", "tools/list", false; "another method than the parameter")]
#[test_case("tools/*?method=tools/call", "tools/list", false; "a parameter narrows a pattern")]
fn every_method_can_be_named(key: &str, method: &str, fits: bool) {
    let target = HookTarget::parse("policy/check").unwrap();
    let bindings = HookKey::parse(key).unwrap().bindings(&target, HookOptions::default(), 0);
    assert!(bindings.iter().all(|binding| binding.matcher.matches(method, "") == fits));
}

#[test]
fn a_notification_has_one_side() {
    let target = HookTarget::parse("policy/check").unwrap();
    let bindings = HookKey::parse("notifications/message").unwrap().bindings(&target, HookOptions::default(), 0);
    assert_eq!(bindings.iter().map(|binding| binding.side).collect::<Vec<_>>(), [Side::Request]);
}

#[test_case("tools/call", "the host has the hooks `session`, `request` and `response`, not \"tools/call\"; for one method write `request?method=tools/call`"; "a method")]
#[test_case("session?name=x", "unknown parameter \"name\"; known are priority, timeout, failOpen, mode"; "a session has no name")]
#[test_case("request?direction=request", "unknown parameter \"direction\"; known are name, method, priority, timeout, failOpen, mode"; "the direction is implied")]
#[test_case("request?callOnError=true", "unknown parameter \"callOnError\"; known are name, method, priority, timeout, failOpen, mode"; "a request is no error")]
#[test_case("request?method=ping", "hooks do not see \"ping\": it carries nothing, and each connection answers it itself"; "ping")]
fn a_bad_key_of_the_host_says_what_is_wrong(key: &str, message: &str) {
    assert_eq!(HookKey::parse_host(key).unwrap_err().to_string(), message);
}

#[test_case("config?name=x", "unknown parameter \"name\"; known are priority, timeout, failOpen, mode"; "a turn has no name")]
#[test_case("reqest", "no revision of MCP has a method \"reqest\""; "misspelt")]
fn a_bad_key_of_an_agent_says_what_is_wrong(key: &str, message: &str) {
    assert_eq!(HookKey::parse_agent(key).unwrap_err().to_string(), message);
}

#[test_case("server")]
#[test_case("/tool")]
#[test_case("server/")]
#[test_case("")]
#[test_case("!mutate:")]
#[test_case("!mutate:server")]
#[test_case("!mutated:server/tool")]
#[test_case("!server/tool")]
fn a_bad_target_is_shown(text: &str) {
    let error = HookTarget::parse(text).unwrap_err();
    assert_eq!(error.to_string(), format!("{text:?} is not a hook target; write `server/tool` or `!mutate:server/tool`"));
}

#[test]
fn a_key_without_parameters_has_documented_defaults() {
    let target = HookTarget::parse("policy/check").unwrap();
    let bindings = HookKey::parse("tools/call").unwrap().bindings(&target, HookOptions::default(), 3);
    assert_eq!(bindings.iter().map(|b| b.side).collect::<Vec<_>>(), [Side::Request, Side::Response]);
    for binding in bindings {
        assert_eq!((binding.priority, binding.declared, binding.fail_open), (0, 3, false));
        assert_eq!((binding.timeout, binding.mode), (Duration::from_secs(10), HookMode::Enforce));
        assert_eq!(binding.form, HookForm::Envelope { may_mutate: true });
        assert_eq!(binding.id, "policy/check");
    }
}

#[test]
fn every_parameter_arrives() {
    let key = "tools/call?name=buy&direction=response&callOnError=true&priority=-7&timeout=250ms&failOpen=true&mode=audit";
    let target = HookTarget::parse("!mutate:policy/a/b").unwrap();
    let bindings = HookKey::parse(key).unwrap().bindings(&target, HookOptions::default(), 0);
    let [binding] = bindings.as_slice() else { panic!("one side, not {bindings:?}") };
    assert_eq!(binding.side, Side::Response);
    assert_eq!(binding.target.tool.as_str(), "a/b");
    assert_eq!(binding.form, HookForm::Envelope { may_mutate: false });
    assert_eq!((binding.priority, binding.timeout), (-7, Duration::from_millis(250)));
    assert_eq!((binding.fail_open, binding.mode, binding.matcher.call_on_error), (true, HookMode::Audit, Some(true)));
    assert!(binding.matcher.matches("tools/call", "buy"));
    assert!(!binding.matcher.matches("tools/call", "buy2"));
    assert!(!binding.matcher.matches("prompts/get", "buy"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn no_text_makes_the_parsers_panic(text in "\\PC{0,40}", tail in "[?&=!/:a-zA-Z0-9*-]{0,40}") {
        let _ = HookKey::parse(&text);
        let _ = HookKey::parse(&format!("tools/call?{tail}"));
        let _ = HookKey::parse_host(&format!("response?{tail}"));
        let _ = HookKey::parse_agent(&format!("config?{tail}"));
        let _ = HookTarget::parse(&text);
        let _ = HookTarget::parse(&tail);
    }

    #[test]
    fn a_target_that_parses_is_written_back_the_same(server in "[a-z][a-z.]{0,8}", tool in "[a-z][a-z/_-]{0,8}") {
        let text = format!("{server}/{tool}");
        prop_assert_eq!(HookTarget::parse(&text).unwrap().to_string(), text);
    }
}

#[test_case("tools/*", "tools/call", "buy", true; "glob for the method")]
#[test_case("tools/call?name=shop_*", "tools/call", "shop_buy", true; "glob for the name")]
#[test_case("tools/call?name=shop_*", "tools/call", "bank_pay", false; "glob that does not fit")]
#[test_case("prompts/*", "tools/call", "buy", false; "glob for other methods")]
#[test_case("resources/read?name=x://a?b=1%26c=2", "resources/read", "x://a?b=1&c=2", true; "an ampersand in a name")]
#[test_case("resources/read?name=x://a%2526b", "resources/read", "x://a%26b", true; "an escape in a name")]
#[test_case("resources/read?name=x://a%20b", "resources/read", "x://a%20b", true; "other escapes are the name's own")]
fn stars_match_any_text(key: &str, method: &str, name: &str, fits: bool) {
    let target = HookTarget::parse("policy/check").unwrap();
    let bindings = HookKey::parse(key).unwrap().bindings(&target, HookOptions::default(), 0);
    assert_eq!(bindings[0].matcher.matches(method, name), fits);
}
