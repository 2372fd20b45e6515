//! The published schema is the model's.

use std::path::Path;

use greenroom_harness::load::load_scenario;
use greenroom_harness::model::{Invariant, Phase, schema};
use proptest::prelude::*;
use serde_json::Value;

#[test]
fn the_committed_schema_is_made_from_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/scenario.schema.json");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    let made = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    assert!(
        committed.replace("\r\n", "\n") == made,
        "scenarios/scenario.schema.json is out of date; run `greenroom schema > scenarios/scenario.schema.json`"
    );
}

#[test]
fn outcomes_in_the_schema_are_those_of_the_trace() {
    let schema = schema();
    let listed = schema.pointer("/$defs/Where/properties/outcome/enum").and_then(|names| names.as_array()).unwrap();
    for name in listed {
        serde_json::from_value::<greenroom_boundary::trace::Outcome>(name.clone()).unwrap();
    }
    assert_eq!(listed.len(), 5);
}

#[test]
fn invariants_print_as_they_are_written() {
    for invariant in Invariant::ALL {
        assert_eq!(serde_json::to_value(invariant).unwrap(), invariant.name());
    }
}

#[test]
fn phases_are_the_names_of_events() {
    let event = greenroom_boundary::trace::EventKind::Console { level: "log".into(), text: String::new() };
    let phase = serde_json::to_value(Phase::of(&event)).unwrap();
    assert_eq!(Some(&phase), serde_json::to_value(&event).unwrap().get("event"));
}

/// Renames or replaces one of the places of a value.
fn damage(value: &mut Value, place: usize, with: &Value) -> Option<usize> {
    if place == 0 {
        *value = with.clone();
        return None;
    }
    let mut left = place - 1;
    match value {
        Value::Array(items) => {
            for item in items {
                left = damage(item, left, with)?;
            }
        }
        Value::Object(object) => {
            for (_, value) in object.iter_mut() {
                left = damage(value, left, with)?;
            }
        }
        _ => {}
    }
    Some(left)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// An editor that knows the schema marks nothing in a file that loads.
    #[test]
    fn what_loads_fits_the_schema(place in 0_usize..150, with in prop::sample::select(vec![
        serde_json::json!(null), serde_json::json!(1), serde_json::json!("x"), serde_json::json!({}), serde_json::json!([]),
        serde_json::json!({ "delay": "1s" }), serde_json::json!(true), serde_json::json!(-1), serde_json::json!("3s"),
    ])) {
        let text = include_str!("good/delegation-timeout.yaml");
        let case = load_scenario(Path::new("a.yaml"), text).unwrap().remove(0);
        let mut value = serde_json::to_value(&case.scenario).unwrap();
        damage(&mut value, place, &with);
        let fits = jsonschema::is_valid(&schema(), &value);
        let loaded = load_scenario(Path::new("a.json"), &value.to_string());
        prop_assert!(fits || loaded.is_err(), "{value}");
    }
}
