//! JSON is the twin of YAML, and a loaded scenario can be written down again.

use std::path::Path;

use greenroom_harness::load::{ScenarioCase, load_scenario};
use proptest::prelude::*;
use serde_json::{Value, json};
use test_case::test_case;

fn load(name: &str, text: &str) -> Vec<ScenarioCase> {
    load_scenario(Path::new(name), text).unwrap_or_else(|error| panic!("{error}"))
}

#[test_case("delegation-timeout.yaml")]
#[test_case("hook-mutation.yaml")]
#[test_case("replay.yaml")]
fn a_scenario_written_as_json_is_the_same(name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/load/good").join(name);
    for case in load("a.yaml", &std::fs::read_to_string(path).unwrap()) {
        let mut scenario = case.scenario;
        scenario.matrix.clear();
        let text = serde_json::to_string_pretty(&scenario).unwrap();
        let twin = load("a.json", &text).remove(0);
        assert_eq!(twin.scenario, scenario);
        assert!(twin.scenario.run.iter().all(|step| step.line > 1), "places are kept in JSON too");
        assert_eq!(load("a.yaml", &text).remove(0).scenario, scenario, "JSON text is YAML text");
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "[ -~é☂\u{1f600}\n\t\"\\\\]{0,12}".prop_map(|text| Value::from(text.replace("${", "$ {"))),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z<\"\\\\/é]{0,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_json_comes_through(value in json_value(), pretty in any::<bool>()) {
        let scenario = json!({
            "scenario": 1, "id": "a",
            "host": { "inline": { "x": value } },
            "run": [{ "send": { "assistant": "desk", "user": "Hello" } }],
            "expect": [{ "invariant": "spans-closed" }],
        });
        let text = if pretty { serde_json::to_string_pretty(&scenario) } else { serde_json::to_string(&scenario) }.unwrap();
        let loaded = load("a.json", &text).remove(0).scenario;
        prop_assert_eq!(loaded.host.inline.get("x"), scenario.pointer("/host/inline/x"));
    }

    #[test]
    fn no_text_makes_it_panic(text in "[ -~\n\t]{0,80}", json in any::<bool>()) {
        let _ = load_scenario(Path::new(if json { "a.json" } else { "a.yaml" }), &text);
    }

    #[test]
    fn no_broken_scenario_makes_it_panic(cut in any::<prop::sample::Index>(), put in "[ -~\n\té]{0,3}") {
        let text = include_str!("good/delegation-timeout.yaml");
        let at = cut.index(text.chars().count());
        let broken: String = text.chars().take(at).chain(put.chars()).chain(text.chars().skip(at + 2)).collect();
        if let Err(error) = load_scenario(Path::new("a.yaml"), &broken) {
            prop_assert!(error.to_string().lines().count() <= 12);
        }
    }
}
