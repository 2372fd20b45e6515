//! Lists of `ctx.memory` against a plain list.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::run_ops;

/// Runs operations one after the other in one turn.
pub(crate) fn run(steps: Vec<(String, Vec<Value>)>) -> Vec<Value> {
    run_ops(steps).0
}

fn memory(verb: &str) -> String {
    format!("memory.context.{verb}")
}

#[derive(Clone, Debug)]
enum Step {
    Push(Vec<u8>),
    Pop(bool),
    Pull(u8),
    PullAll(Vec<u8>),
    AddToSet(Vec<u8>),
    Set(i64, u8),
    Slice(usize, usize),
    Page(usize, usize),
    Get(i64),
    Len,
}

fn step() -> impl Strategy<Value = Step> {
    let values = || prop::collection::vec(0..4_u8, 0..4);
    prop_oneof![
        values().prop_map(Step::Push),
        any::<bool>().prop_map(Step::Pop),
        (0..4_u8).prop_map(Step::Pull),
        values().prop_map(Step::PullAll),
        values().prop_map(Step::AddToSet),
        (-3..4_i64, 0..4_u8).prop_map(|(at, value)| Step::Set(at, value)),
        (0..5_usize, 0..5_usize).prop_map(|(skip, limit)| Step::Slice(skip, limit)),
        (1..4_usize, 1..4_usize).prop_map(|(page, size)| Step::Page(page, size)),
        (-3..4_i64).prop_map(Step::Get),
        Just(Step::Len),
    ]
}

fn place(at: i64, length: usize) -> Option<usize> {
    let at = if at < 0 { at + i64::try_from(length).unwrap() } else { at };
    usize::try_from(at).ok().filter(|at| *at < length)
}

impl Step {
    fn op(&self) -> (String, Vec<Value>) {
        let (verb, args) = match self {
            Self::Push(values) => ("Push", vec![json!(values)]),
            Self::Pop(first) => ("Pop", vec![json!(if *first { -1 } else { 1 })]),
            Self::Pull(value) => ("Pull", vec![json!(value)]),
            Self::PullAll(values) => ("PullAll", vec![json!(values)]),
            Self::AddToSet(values) => ("AddToSet", vec![json!(values)]),
            Self::Set(at, value) => ("ArraySet", vec![json!(at), json!(value)]),
            Self::Slice(skip, limit) => ("ArraySlice", vec![json!(skip), json!(limit)]),
            Self::Page(page, size) => ("ArrayPage", vec![json!(page), json!(size)]),
            Self::Get(at) => ("ArrayGet", vec![json!(at)]),
            Self::Len => ("ArrayLen", vec![]),
        };
        (memory(verb), [vec![json!("l")], args].concat())
    }

    /// What a plain list answers.
    fn plain(&self, list: &mut Vec<u8>) -> Value {
        let ok = |value: Value| json!({"ok": value});
        let before = list.len();
        match self {
            Self::Push(values) => {
                list.extend(values);
                ok(json!(list.len()))
            }
            Self::Pop(first) if *first && !list.is_empty() => ok(json!(list.remove(0))),
            Self::Pop(_) => ok(json!(list.pop())),
            Self::Pull(value) => {
                list.retain(|item| item != value);
                ok(json!(before - list.len()))
            }
            Self::PullAll(values) => {
                list.retain(|item| !values.contains(item));
                ok(json!(before - list.len()))
            }
            Self::AddToSet(values) => {
                for value in values {
                    if !list.contains(value) {
                        list.push(*value);
                    }
                }
                ok(json!(list.len() - before))
            }
            Self::Set(at, value) => match place(*at, before) {
                Some(at) => {
                    list[at] = *value;
                    ok(Value::Null)
                }
                None => json!({"error": {"code": "ERR_INDEX", "class": "RangeError",
                    "message": format!("ctx.memory.context.ArraySet: \"l\" has {before} items, there is none at {at}")}}),
            },
            Self::Slice(skip, limit) => ok(json!(list.iter().skip(*skip).take(*limit).collect::<Vec<_>>())),
            Self::Page(page, size) => ok(json!(list.chunks(*size).nth(page - 1).unwrap_or_default())),
            Self::Get(at) => ok(json!(place(*at, before).map(|at| list[at]))),
            Self::Len => ok(json!(before)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_list_is_a_list(steps in prop::collection::vec(step(), 1..20)) {
        let mut ops: Vec<_> = steps.iter().map(Step::op).collect();
        ops.push((memory("ArrayAll"), vec![json!("l")]));
        let mut list = Vec::new();
        let mut wanted: Vec<Value> = steps.iter().map(|step| step.plain(&mut list)).collect();
        wanted.push(json!({"ok": list}));
        prop_assert_eq!(run(ops), wanted);
    }
}

#[test]
fn equal_is_equal_as_json() {
    let ops = vec![
        (memory("Push"), vec![json!("l"), json!([1.0, {"a": 1, "b": [2]}, 9_007_199_254_740_993_u64, "1", null])]),
        (memory("AddToSet"), vec![json!("l"), json!([1, {"b": [2.0], "a": 1}, null])]),
        (memory("Pull"), vec![json!("l"), json!(9_007_199_254_740_992_u64)]),
        (memory("Pull"), vec![json!("l"), json!(1)]),
        (memory("ArrayLen"), vec![json!("l")]),
    ];
    let answers = run(ops);
    assert_eq!(answers[1..], [json!({"ok": 0}), json!({"ok": 0}), json!({"ok": 1}), json!({"ok": 4})]);
}
