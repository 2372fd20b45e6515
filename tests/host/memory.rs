//! `ctx.memory`: types, ranges, wildcards.

use proptest::prelude::*;
use serde_json::{Value, json};
use test_case::test_case;

use crate::support::{Native, Set, json_value, op, run_ops};

/// Runs operations one after the other in one turn; `$` stands for `memory.chat.`.
fn run(steps: &[(&str, Value)]) -> Vec<Value> {
    let steps: Vec<(String, Vec<Value>)> =
        steps.iter().map(|(name, args)| (name.replace('$', "memory.chat."), args.as_array().unwrap().clone())).collect();
    run_ops(steps).0
}

fn last(steps: &[(&str, Value)]) -> Value {
    run(steps).pop().unwrap()
}

#[test]
fn values_come_back_as_they_were_put() {
    for value in [json!({"a": [1, 2.5, null]}), json!("x"), json!(false), json!(9_007_199_254_740_993_u64)] {
        assert_eq!(last(&[("$Set", json!(["k", value])), ("$Get", json!(["k"]))]), json!({"ok": value}));
    }
    assert_eq!(last(&[("$Get", json!(["none"]))]), json!({"ok": null}));
    let answers = run(&[
        ("$Set", json!(["__proto__", 1])),
        ("$GetDel", json!(["__proto__"])),
        ("$Has", json!(["__proto__"])),
        ("$Len", json!([])),
    ]);
    assert_eq!(answers[1..], [json!({"ok": 1}), json!({"ok": false}), json!({"ok": 0})]);
}

#[test_case("a*", &["b", "ba"]; "prefix")]
#[test_case("*a", &["ab", "abc", "b"]; "suffix")]
#[test_case("*", &[]; "all")]
#[test_case("a*c", &["a", "ab", "b", "ba"]; "both ends")]
#[test_case("**b**", &["a"]; "several stars")]
#[test_case("a", &["ab", "abc", "b", "ba"]; "one key")]
#[test_case("A", &["a", "ab", "abc", "b", "ba"]; "case counts")]
fn a_star_stands_for_any_text(pattern: &str, left: &[&str]) {
    let mut steps: Vec<(&str, Value)> = ["a", "ab", "abc", "b", "ba"].map(|key| ("$Set", json!([key, 1]))).to_vec();
    steps.extend([("$Del", json!([pattern])), ("$Keys", json!([]))]);
    assert_eq!(last(&steps), json!({"ok": left}));
}

#[test_case(json!(["n", "x"]), "ctx.memory.chat.Incr: delta must be a whole number, not \"x\""; "text")]
#[test_case(json!(["n", 0.5]), "ctx.memory.chat.Incr: delta must be a whole number, not 0.5"; "fraction")]
#[test_case(json!(["n", 9_007_199_254_740_992_i64]), "ctx.memory.chat.Incr: delta must be a whole number, not 9007199254740992"; "not exact")]
#[test_case(json!(["n", i64::MIN]), "ctx.memory.chat.Incr: delta must be a whole number, not -9223372036854775808"; "smallest integer")]
#[test_case(json!(["n", 1e300]), "ctx.memory.chat.Incr: delta must be a whole number, not 1e+300"; "huge")]
#[test_case(json!(["n", true]), "ctx.memory.chat.Incr: delta must be a whole number, not true"; "boolean")]
#[test_case(json!([7]), "ctx.memory.chat.Incr: key must be a string, not 7"; "key is a number")]
#[test_case(json!([null]), "ctx.memory.chat.Incr: key must be a string, not null"; "no key")]
fn c32_a_wrong_argument_is_a_type_error(args: Value, message: &str) {
    let answers = run(&[("$Incr", args), ("$Get", json!(["n"]))]);
    assert_eq!(answers[0]["error"], json!({"code": "ERR_ARGUMENT", "class": "TypeError", "message": message}));
    assert_eq!(answers[1], json!({"ok": null}), "nothing was counted");
}

#[test]
fn counters_stay_exact_to_the_end_of_their_range() {
    let max = (1_i64 << 53) - 1;
    let answers = run(&[
        ("$Incr", json!(["n"])),
        ("$Incr", json!(["n", 2.0])),
        ("$Decr", json!(["n", 4])),
        ("$Set", json!(["n", max])),
        ("$Incr", json!(["n"])),
        ("$Get", json!(["n"])),
        ("$Set", json!(["text", "5"])),
        ("$Incr", json!(["text"])),
    ]);
    assert_eq!(answers[..3], [json!({"ok": 1}), json!({"ok": 3}), json!({"ok": -1})]);
    assert_eq!(answers[4]["error"]["code"], "ERR_COUNTER_RANGE");
    assert_eq!(answers[5], json!({"ok": max}));
    assert_eq!(answers[7]["error"]["message"], "ctx.memory.chat.Incr: \"text\" holds \"5\", which is no counter");
}

#[test]
fn too_few_arguments_are_named() {
    let answer = last(&[("$Set", json!(["k"]))]);
    assert_eq!(answer["error"]["message"], "ctx.memory.chat.Set needs 2 arguments, 1 given");
}

#[test]
fn the_chat_remembers_and_the_turn_forgets() {
    let count: Native = Box::new(|call| {
        Box::pin(async move {
            let chat = op(&call, "memory.chat.Incr", vec![json!("n")]).await;
            let turn = op(&call, "memory.context.Incr", vec![json!("n")]).await;
            Ok(json_value(&json!({"data": {"chat": chat["ok"], "turn": turn["ok"]}})))
        })
    });
    let stage = Set::new("agents: {desk: {script: desk.js}}").native("desk", "Next", count).build();
    assert_eq!(stage.turn("desk", "go").data, json!({"chat": 1, "turn": 1}));
    assert_eq!(stage.turn("desk", "go").data, json!({"chat": 2, "turn": 1}));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_pattern_without_stars_removes_that_key_alone(keys in prop::collection::btree_set("[ab]{1,3}", 1..6), at in 0..6_usize) {
        let keys: Vec<String> = keys.into_iter().collect();
        let gone = keys[at % keys.len()].clone();
        let mut steps: Vec<(&str, Value)> = keys.iter().map(|key| ("$Set", json!([key, 1]))).collect();
        steps.extend([("$Del", json!([gone])), ("$Keys", json!([]))]);
        let left: Vec<&String> = keys.iter().filter(|key| **key != gone).collect();
        prop_assert_eq!(last(&steps), json!({"ok": left}));
    }

    #[test]
    fn counting_up_and_down_is_addition(deltas in prop::collection::vec(-1_000_000_i64..1_000_000, 1..12)) {
        let steps: Vec<(&str, Value)> = deltas.iter().map(|d| if *d < 0 { ("$Decr", json!(["n", -d])) } else { ("$Incr", json!(["n", d])) }).collect();
        prop_assert_eq!(last(&steps), json!({"ok": deltas.iter().sum::<i64>()}));
    }
}
