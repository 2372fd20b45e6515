//! The grammar of hook declarations.

use std::time::Duration;

use greenroom::hooks::{HookForm, HookKey, HookOptions, HookTarget, Side};
use greenroom_boundary::trace::HookMode;
use proptest::prelude::*;
use test_case::test_case;

#[test_case("", "\"\" names no method; write `tools/call`, `tools/call?direction=request` or `*`"; "nothing")]
#[test_case("?direction=request", "\"?direction=request\" names no method; write `tools/call`, `tools/call?direction=request` or `*`"; "no method")]
#[test_case("tools/call?dir=request", "unknown parameter \"dir\"; known are name, direction, callOnError, priority, timeout, failOpen, mode"; "unknown parameter")]
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
#[test_case("tools/call?Mode=audit", "unknown parameter \"Mode\"; known are name, direction, callOnError, priority, timeout, failOpen, mode"; "case counts")]
fn a_bad_key_says_what_is_wrong(key: &str, message: &str) {
    let error = HookKey::parse(key).unwrap_err();
    assert_eq!((error.to_string().as_str(), error.code()), (message, "HOOK_KEY"));
}

#[test_case("tool/call"; "misspelt")]
#[test_case("tool/*"; "a glob that fits no method")]
#[test_case("tools/lists"; "not a method")]
fn a_method_that_no_hook_can_see_is_refused(key: &str) {
    let message = HookKey::parse(key).unwrap_err().to_string();
    assert_eq!(
        message,
        format!(
            "hooks do not see {key:?}; they see tools/call, prompts/get, resources/read, the lists and the handshake, or `*` for all of them"
        )
    );
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
fn stars_match_any_text(key: &str, method: &str, name: &str, fits: bool) {
    let target = HookTarget::parse("policy/check").unwrap();
    let bindings = HookKey::parse(key).unwrap().bindings(&target, HookOptions::default(), 0);
    assert_eq!(bindings[0].matcher.matches(method, name), fits);
}
