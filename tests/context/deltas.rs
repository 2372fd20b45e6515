//! Bare values in deltas: the same as the whole message that they stand for.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Native, Set, json_value, op};

/// What the message's end says after these operations.
fn stored(steps: Vec<(String, Vec<Value>)>) -> Value {
    let next: Native = Box::new(move |call| {
        let steps = steps.clone();
        Box::pin(async move {
            let open = json!({"type": "card", "props": {"content": {"text": "a", "list": [1], "deep": {"n": 1}}}});
            op(&call, "SendStream", vec![open]).await;
            let mut answers = Vec::new();
            for (path, args) in steps {
                answers.push(op(&call, &path, args).await);
            }
            op(&call, "End", vec![json!("M1")]).await;
            Ok(json_value(&json!({"data": answers})))
        })
    });
    let stage = Set::new("agents: {desk: {script: desk.js}}").native("desk", "Next", next).build();
    let answers = stage.turn("desk", "go").data;
    let end = stage.output().pop().unwrap();
    assert_eq!(end["props"]["data"]["type"], "card");
    json!({"content": end["props"]["data"]["extra"]["content"], "failed": answers.as_array().unwrap().iter().filter(|a| a.get("error").is_some()).count()})
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-c]{0,3}".prop_map(Value::from),
        Just(json!([2])),
        Just(json!({"a": {"b": 1}})),
        Just(json!(7)),
        Just(json!(false)),
        Just(Value::Null)
    ]
}

const PLACES: [&str; 6] = ["text", "list", "list.0", "list.2", "deep", "deep.new.er"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_bare_value_means_the_message_around_it(
        steps in prop::collection::vec((prop::sample::select(vec!["Set", "Merge", "Append"]), prop::sample::select(PLACES.to_vec()), value(), any::<bool>()), 1..6)
    ) {
        let bare = steps.iter().map(|(verb, place, value, prefix)| {
            let path = format!("{}content.{place}", if *prefix { "props." } else { "" });
            ((*verb).to_owned(), vec![json!("M1"), value.clone(), json!(path)])
        });
        let whole = steps.iter().map(|(verb, place, value, _)| {
            let path = format!("content.{place}");
            let props = path.rsplit('.').fold(value.clone(), |inner, key| json!({key: inner}));
            ((*verb).to_owned(), vec![json!("M1"), json!({"type": "card", "props": props}), json!(path)])
        });
        let (bare, whole) = (stored(bare.collect()), stored(whole.collect()));
        prop_assert_eq!(&bare["failed"], &json!(0));
        prop_assert_eq!(bare, whole);
    }
}

#[test]
fn a_delta_that_fails_changes_nothing() {
    let set = |value: Value, path: &str| ("Set".to_owned(), vec![json!("M1"), value, json!(path)]);
    let steps = vec![
        set(json!(1), "content.list.5000"),
        set(json!(1), &format!("content.{}", "a.".repeat(1000))),
        set(json!({"type": "card", "props": {"other": 1}}), "content.text"),
        set(json!(1), "props"),
        ("Replace".to_owned(), vec![json!("M1"), json!(5)]),
        ("Append".to_owned(), vec![json!("M1"), json!(5)]),
        ("Merge".to_owned(), vec![json!("M1"), json!([1])]),
    ];
    let untouched = json!({"text": "a", "list": [1], "deep": {"n": 1}});
    assert_eq!(stored(steps), json!({"content": untouched, "failed": 7}));
}
