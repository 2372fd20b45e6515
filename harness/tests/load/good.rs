//! What loads, and what it becomes.

use std::path::{Path, PathBuf};

use greenroom_harness::load::{LoadOptions, ScenarioCase, load_file, load_scenario, load_scenario_with};
use greenroom_harness::model::{
    Check, ClockDriver, Duration, FaultAction, Invariant, LlmDriver, McpDriver, Step, TraceMode, Unused,
};
use serde_json::json;
use test_case::test_case;

fn good(name: &str) -> Vec<ScenarioCase> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/load/good").join(name);
    load_file(&path, LoadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn load(text: &str) -> Vec<ScenarioCase> {
    load_scenario(Path::new("a.yaml"), text).unwrap_or_else(|error| panic!("{error}"))
}

const REST: &str = "
run:
  - send: { assistant: desk, user: Hello }
  - send: { assistant: desk, user: Again, wait: false }
  - as: third
    send: { assistant: desk, user: Last }
expect:
  - invariant: spans-closed
";

#[test]
fn the_hook_example_has_a_case_for_each_value_of_its_matrix() {
    let cases = good("hook-mutation.yaml");
    let ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["hooks/metric-only[spec=2025-11-25]", "hooks/metric-only[spec=2026-07-28]"]);
    let second = &cases[1];
    assert_eq!(second.values.get("spec"), Some(&json!("2026-07-28")));
    let policy = second.scenario.host.policy.as_ref().unwrap();
    assert_eq!(policy.spec.as_deref(), Some("2026-07-28"));
    let hook = &second.scenario.host.hooks[1];
    assert!(hook.js.contains("`city ${a.city} / units ${a.units}`"), "code is not touched: {}", hook.js);
    assert!(matches!(second.scenario.drivers.llm("main"), Some(LlmDriver::Script(_))));
    assert!(second.scenario.drivers.mcp("other").is_none());
    let Check::Trace { events, mode } = &second.scenario.expect[1].value.check else { panic!("a trace") };
    assert_eq!((events.len(), *mode), (4, TraceMode::Subsequence));
    assert_eq!(second.scenario.expect[1].value.id.as_deref(), Some("wire-shows-mutation"));
}

#[test]
fn the_delegation_example_keeps_times_and_places() {
    let cases = good("delegation-timeout.yaml");
    let [case] = cases.as_slice() else { panic!("one case") };
    let scenario = &case.scenario;
    assert_eq!(scenario.seed, 7);
    assert_eq!(scenario.limits.r#virtual, "10m".parse::<Duration>().unwrap());
    let fault = &scenario.faults[0].value;
    assert_eq!(fault.action, FaultAction::Delay("43s".parse().unwrap()));
    assert_eq!(fault.unused, Unused::Fail);
    let Step::Await { event, within } = &scenario.run[1].value else { panic!("a wait") };
    assert!(event.boundary.matches("mcp.ledger"));
    assert_eq!(*within, Some("1s".parse().unwrap()));
    assert!(matches!(&scenario.run[3].value, Step::Expect(expect) if expect.check.kind() == "count"));
    let text = std::fs::read_to_string(&case.file).unwrap();
    let line_of = |what: &str| text.lines().position(|line| line.contains(what)).unwrap() + 1;
    assert_eq!(scenario.run[2].line as usize, line_of("- advance: 29999ms"));
    assert_eq!(scenario.expect[2].line as usize, line_of("- id: stale-answer-is-dropped"));
    assert!(case.place(&scenario.expect[2]).ends_with(&format!("delegation-timeout.yaml:{}", scenario.expect[2].line)));
}

#[test]
fn the_replay_example_has_globs_and_names() {
    let case = &good("replay.yaml")[0];
    let drivers = &case.scenario.drivers;
    assert!(matches!(&drivers.clock, ClockDriver::Virtual(clock) if clock.start.is_some()));
    assert!(matches!(drivers.llm("main"), Some(LlmDriver::Replay(replay)) if replay.cassette == "cassettes/refund.cas"));
    assert!(matches!(drivers.mcp("shop"), Some(McpDriver::Replay(_))));
    assert!(matches!(drivers.mcp("clock"), Some(McpDriver::Record(record)) if record.live.command.is_some()));
    let Check::Invariant(names) = &case.scenario.expect[1].value.check else { panic!("an invariant") };
    assert_eq!(names, &[Invariant::CassetteFullyConsumed]);
}

#[test]
fn turns_are_named_by_as_or_by_place() {
    let cases = load(&format!("scenario: 1\nid: a{REST}"));
    assert_eq!(cases[0].scenario.turn_names(), ["t1", "t2", "third"]);
    assert_eq!(cases[0].id, "a");
}

#[test]
fn the_matrix_is_cartesian_and_its_last_key_turns_fastest() {
    let cases = load(&format!("scenario: 1\nid: a\nmatrix: {{ x: [1, two], b: [true, false] }}{REST}"));
    let ids: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, ["a[x=1,b=true]", "a[x=1,b=false]", "a[x=two,b=true]", "a[x=two,b=false]"]);
}

#[test_case("\"${matrix.v}\"", &json!([7, { "a": null }]); "a whole scalar keeps its type")]
#[test_case("\"v is ${matrix.v}!\"", &json!("v is [7,{\"a\":null}]!"); "inside a text it is text")]
#[test_case("\"seed ${seed}\"", &json!("seed 5"); "the seed")]
#[test_case("\"${seed}\"", &json!(5); "the seed alone is a number")]
#[test_case("\"${HOME} ${a.b} ${\"", &json!("${HOME} ${a.b} ${"); "anything else is text")]
fn references(written: &str, read: &serde_json::Value) {
    let text = format!(
        "scenario: 1\nid: a\nseed: 5\nmatrix: {{ v: [[7, {{ a: null }}]] }}\nhost: {{ inline: {{ x: {written} }} }}{REST}"
    );
    assert_eq!(load(&text)[0].scenario.host.inline.get("x"), Some(read));
}

#[test]
fn a_seed_of_the_caller_replaces_the_files() {
    let text = format!("scenario: 1\nid: a\nseed: 5\nhost: {{ inline: {{ x: \"${{seed}}\" }} }}{REST}");
    let cases = load_scenario_with(&PathBuf::from("a.yaml"), &text, LoadOptions { seed: Some(9) }).unwrap();
    assert_eq!(cases[0].scenario.seed, 9);
    assert_eq!(cases[0].scenario.host.inline.get("x"), Some(&json!(9)));
}

#[test]
fn what_is_not_listed_is_denied_virtual_or_seeded() {
    let scenario = &load(&format!("scenario: 1\nid: a{REST}"))[0].scenario;
    assert_eq!(
        serde_json::to_value(&scenario.drivers).unwrap(),
        json!({
            "clock": { "virtual": {} }, "ids": { "seeded": {} }, "egress": { "deny": true }, "isolate": { "builtin": {} }
        })
    );
}

#[test]
fn a_tab_inside_code_is_content() {
    let text = format!(
        "scenario: 1\nid: a\nhost:\n  assistants:\n    desk:\n      script_inline: |\n        function Next() {{\n        \treturn {{}};\n        }}{REST}"
    );
    let scenario = &load(&text)[0].scenario;
    let script = scenario.host.assistants["desk"].script_inline.as_deref().unwrap();
    assert!(script.contains("\n\treturn"), "{script}");
}
