//! Times to live in `ctx.memory`, on virtual time.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use test_case::test_case;

use crate::lists::run;
use crate::support::{Native, Set, json_value, op};

/// What is left of values with these times to live (milliseconds) after that long.
fn left(ttls: &[f64], wait: Duration) -> Vec<Value> {
    let ttls = ttls.to_vec();
    let next: Native = Box::new(move |call| {
        let ttls = ttls.clone();
        Box::pin(async move {
            for (index, ttl) in ttls.iter().enumerate() {
                op(&call, "memory.chat.Set", vec![json!(index.to_string()), json!(index), json!(ttl)]).await;
            }
            call.ctx.wall_deadline(wait).await;
            let keys = op(&call, "memory.chat.Keys", vec![]).await["ok"].clone();
            assert_eq!(op(&call, "memory.chat.Len", vec![]).await["ok"], json!(keys.as_array().unwrap().len()));
            let mut values = Vec::new();
            for index in 0..ttls.len() {
                values.push(op(&call, "memory.chat.Get", vec![json!(index.to_string())]).await["ok"].clone());
            }
            Ok(json_value(&json!({"data": values})))
        })
    });
    let stage = Set::new("agents: {desk: {script: desk.js}}").native("desk", "Next", next).build();
    stage.turn("desk", "go").data.as_array().unwrap().clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_value_lives_as_long_as_it_may(ttls in prop::collection::vec(-1..40_i32, 1..8), wait in 0..40_u64) {
        let ttls: Vec<f64> = ttls.into_iter().map(f64::from).collect();
        let wanted: Vec<Value> = ttls
            .iter()
            .enumerate()
            .map(|(index, ttl)| if *ttl <= 0.0 || *ttl > wait as f64 { json!(index) } else { Value::Null })
            .collect();
        prop_assert_eq!(left(&ttls, Duration::from_millis(wait)), wanted);
    }
}

#[test_case(1e300; "for ever")]
#[test_case(1e15; "thirty thousand years")]
fn a_long_time_to_live_is_long(ttl: f64) {
    assert_eq!(left(&[ttl], Duration::from_secs(20)), [json!(0)]);
}

#[test_case("Incr", json!(["k"]), true; "a counter keeps it")]
#[test_case("ArraySet", json!(["list", 0, 2]), true; "a list keeps it")]
#[test_case("Set", json!(["k", 2]), false; "a new value has none")]
#[test_case("GetSet", json!(["k", 2]), false; "an exchanged value has none")]
fn who_keeps_a_time_to_live(verb: &'static str, args: Value, keeps: bool) {
    let next: Native = Box::new(move |call| {
        let args = args.as_array().unwrap().clone();
        Box::pin(async move {
            op(&call, "memory.chat.Set", vec![json!("k"), json!(1), json!(10)]).await;
            op(&call, "memory.chat.Set", vec![json!("list"), json!([1]), json!(10)]).await;
            let key = args[0].clone();
            op(&call, &format!("memory.chat.{verb}"), args).await;
            call.ctx.wall_deadline(Duration::from_millis(10)).await;
            Ok(json_value(&json!({"data": op(&call, "memory.chat.Has", vec![key]).await["ok"]})))
        })
    });
    let stage = Set::new("agents: {desk: {script: desk.js}}").native("desk", "Next", next).build();
    assert_eq!(stage.turn("desk", "go").data, json!(!keeps));
}

#[test_case(json!("1000"); "text")]
#[test_case(json!(true); "boolean")]
#[test_case(json!([]); "list")]
fn a_time_to_live_is_a_number(ttl: Value) {
    let path = |verb: &str| format!("memory.context.{verb}");
    let answers = run(vec![(path("Set"), vec![json!("k"), json!(1), ttl]), (path("Has"), vec![json!("k")])]);
    assert_eq!(answers[0]["error"]["class"], "TypeError");
    assert!(answers[0]["error"]["message"].as_str().unwrap().contains("ttlMs must be a number of milliseconds, not"));
    assert_eq!(answers[1], json!({"ok": false}));
}
