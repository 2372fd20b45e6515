//! Patterns: each operator, the messages, and the laws.

#![expect(clippy::unwrap_used, reason = "a test says what it expects, and fails where it is wrong")]

use greenroom_mocks::pattern::{Pattern, matches, nearest, validate};
use proptest::prelude::*;
use serde_json::{Value, json};
use test_case::test_case;

#[test_case(json!({ "a": 1 }), json!({ "a": 1, "b": 2 }), true; "objects match partially")]
#[test_case(json!({ "a": 1 }), json!({ "b": 2 }), false; "listed keys must be there")]
#[test_case(json!({ "a": null }), json!({}), false; "null is not absence")]
#[test_case(json!({}), json!({ "a": 1 }), true; "an empty object matches any object")]
#[test_case(json!({}), json!([]), false; "but nothing else")]
#[test_case(json!([1, 2]), json!([1, 2]), true; "arrays match by position")]
#[test_case(json!([1]), json!([1, 2]), false; "and length")]
#[test_case(json!([{ "a": 1 }]), json!([{ "a": 1, "b": 2 }]), true; "partially inside arrays")]
#[test_case(json!(1), json!(1.0), true; "numbers by value")]
#[test_case(json!(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64), false; "large integers exactly")]
#[test_case(json!("1"), json!(1), false; "no coercion")]
#[test_case(json!({ "$re": "14 °C.*31" }), json!("Oslo 14 °C, Rome 31 °C."), true; "re")]
#[test_case(json!({ "$re": "^x$" }), json!("axb"), false; "re is anchored only on request")]
#[test_case(json!({ "$re": "1" }), json!(1), false; "re wants a string")]
#[test_case(json!({ "$contains": "Oslo" }), json!("to Oslo today"), true; "contains a substring")]
#[test_case(json!({ "$contains": "Oslo" }), json!(["Rome", "Oslo"]), true; "contains an element")]
#[test_case(json!({ "$contains": { "name": "f" } }), json!([{ "name": "g" }, { "name": "f", "x": 1 }]), true; "contains a matching element")]
#[test_case(json!({ "$contains": "o" }), json!(["Oslo"]), false; "elements are whole")]
#[test_case(json!({ "$last": { "role": "user" } }), json!([{ "role": "system" }, { "role": "user" }]), true; "last")]
#[test_case(json!({ "$last": 1 }), json!([]), false; "an empty array has no last")]
#[test_case(json!({ "$len": 2 }), json!(["a", "b"]), true; "len of an array")]
#[test_case(json!({ "$len": 2 }), json!("é☂"), true; "len of a text in characters")]
#[test_case(json!({ "$len": { "$range": { "min": 3 } } }), json!({ "a": 1 }), false; "len is a pattern")]
#[test_case(json!({ "$range": { "min": 1, "max": 2 } }), json!(2), true; "range with both ends")]
#[test_case(json!({ "$range": { "max": 2 } }), json!(2.5), false; "range above")]
#[test_case(json!({ "a": { "$any": true } }), json!({ "a": null }), true; "any is what is there")]
#[test_case(json!({ "a": { "$any": true } }), json!({}), false; "any is not absence")]
#[test_case(json!({ "a": { "$absent": true } }), json!({}), true; "absent")]
#[test_case(json!({ "a": { "$absent": true } }), json!({ "a": null }), false; "null is present")]
#[test_case(json!({ "a": { "$not": "x" } }), json!({ "a": "y" }), true; "not")]
#[test_case(json!({ "a": { "$not": "x" } }), json!({}), true; "not includes absence")]
#[test_case(json!({ "$all": [{ "$contains": "a" }, { "$not": "ab" }] }), json!("abc"), true; "all")]
#[test_case(json!({ "$one_of": ["a", { "$re": "^b" }] }), json!("bc"), true; "one of")]
#[test_case(json!({ "$one_of": ["a", "b"] }), json!("c"), false; "none of")]
#[test_case(json!({ "$$ref": "x" }), json!({ "$ref": "x" }), true; "an escaped key")]
#[test_case(json!({ "$$$x": 1 }), json!({ "$$x": 1 }), true; "a key with two signs")]
fn operators(pattern: Value, value: Value, expected: bool) {
    validate(&pattern).unwrap();
    assert_eq!(matches(&pattern, Some(&value)).is_ok(), expected);
}

#[test]
fn a_mismatch_names_the_place() {
    let pattern = json!({ "a/b": [{ "x": 1 }, { "x": { "$range": { "min": 2 } } }] });
    let value = json!({ "a/b": [{ "x": 1 }, { "x": 1 }] });
    let mismatch = matches(&pattern, Some(&value)).unwrap_err();
    assert_eq!(mismatch.path, "/a~1b/1/x");
    insta::assert_snapshot!(mismatch, @r#"/a~1b/1/x: expected a number in {"min":2}, found 1"#);
    let mismatch = matches(&json!("x"), None).unwrap_err();
    insta::assert_snapshot!(mismatch, @r#"the value: expected "x", found nothing"#);
    let long = matches(&json!("x"), Some(&json!("é".repeat(500)))).unwrap_err();
    assert!(long.found.chars().count() < 130);
}

#[test_case(json!({ "a": { "$contian": 1 } }), "/a/$contian"; "unknown, one is near")]
#[test_case(json!({ "$regex": "a" }), "/$regex"; "unknown, none is near")]
#[test_case(json!([{ "$re": "(" }]), "/0/$re"; "bad expression")]
#[test_case(json!({ "$re": 1 }), "/$re"; "not an expression")]
#[test_case(json!({ "$any": false }), "/$any"; "any of false")]
#[test_case(json!({ "$absent": 1 }), "/$absent"; "absent of one")]
#[test_case(json!({ "$range": { "least": 1 } }), "/$range"; "bad range")]
#[test_case(json!({ "$range": {} }), "/$range"; "empty range")]
#[test_case(json!({ "$all": [] }), "/$all"; "all of nothing")]
#[test_case(json!({ "$one_of": "a" }), "/$one_of"; "one of no list")]
#[test_case(json!({ "$not": { "$x": 1 } }), "/$not/$x"; "inside an operator")]
#[test_case(json!({ "$any": true, "b": 1 }), "/$any"; "not alone")]
fn invalid(pattern: Value, path: &str) {
    let error = validate(&pattern).unwrap_err();
    assert_eq!((error.path(), error.code()), (path, "PATTERN_INVALID"));
    assert!(serde_json::from_value::<Pattern>(pattern).is_err());
}

#[test]
fn messages_of_invalid_patterns() {
    let patterns = [
        json!({ "$contian": 1 }),
        json!({ "$regex": "a" }),
        json!({ "$re": "(" }),
        json!({ "$re": 1 }),
        json!({ "$range": {} }),
        json!({ "$any": true, "b": 1 }),
    ];
    let messages: Vec<String> = patterns.iter().map(|pattern| validate(pattern).unwrap_err().to_string()).collect();
    insta::assert_snapshot!(messages.join("\n"), @r"
    unknown operator `$contian`, did you mean `$contains`?
    unknown operator `$regex`; a key of that name is written `$$regex`
    `$re` holds no valid regular expression: unclosed group
    `$re` needs a string: a regular expression
    `$range` needs `{ min: number, max: number }`, or one of the two
    `$any` must be the only key of its object; a key of that name is written `$$any`
    ");
}

#[test_case("expcet", Some("expect"))]
#[test_case("Expect", Some("expect"))]
#[test_case("fase", Some("phase"))]
#[test_case("colour", None)]
fn near(word: &str, expected: Option<&str>) {
    assert_eq!(nearest(word, ["expect", "phase", "run"]), expected);
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1.0e9..1.0e9_f64).prop_map(Value::from),
        "[a-c$é]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[$]{0,2}(a|b|any|re|not|len|/|~)?", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_value_matches_its_literal(value in json_value()) {
        let pattern = Pattern::literal(&value);
        prop_assert_eq!(validate(pattern.as_value()), Ok(()));
        prop_assert_eq!(pattern.matches(Some(&value)), Ok(()));
    }

    #[test]
    fn not_turns_a_verdict_around(pattern in json_value(), value in json_value()) {
        let not = json!({ "$not": pattern });
        prop_assert_ne!(matches(&pattern, Some(&value)).is_ok(), matches(&not, Some(&value)).is_ok());
    }

    #[test]
    fn more_keys_never_hurt_a_literal(value in json_value(), more in json_value()) {
        let pattern = Pattern::literal(&value);
        let mut larger = value.clone();
        if let Some(object) = larger.as_object_mut() {
            object.insert("zz".to_owned(), more);
        }
        prop_assert_eq!(pattern.matches(Some(&larger)), Ok(()));
    }

    #[test]
    fn a_mismatch_points_into_the_value_or_beside_it(pattern in json_value(), value in json_value()) {
        if let Err(mismatch) = matches(&pattern, Some(&value)) {
            let parent = mismatch.path.rsplit_once('/').map_or("", |(parent, _)| parent);
            prop_assert!(value.pointer(parent).is_some(), "{}", mismatch.path);
        }
    }

    #[test]
    fn one_of_its_own_is_enough(patterns in prop::collection::vec(json_value(), 1..4), value in json_value()) {
        let any = patterns.iter().any(|pattern| matches(pattern, Some(&value)).is_ok());
        prop_assert_eq!(matches(&json!({ "$one_of": patterns }), Some(&value)).is_ok(), any);
        let all = patterns.iter().all(|pattern| matches(pattern, Some(&value)).is_ok());
        prop_assert_eq!(matches(&json!({ "$all": patterns }), Some(&value)).is_ok(), all);
    }
}
