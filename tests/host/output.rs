//! `ctx.Send` and its kin: what is kept of a message is what a client shows that applied every delta.

use proptest::prelude::*;
use serde_json::{Value, json};
use test_case::test_case;

use crate::support::run_ops;

fn ops(steps: &[(&str, Value)]) -> (Vec<Value>, Vec<Value>) {
    run_ops(steps.iter().map(|(path, args)| ((*path).to_owned(), args.as_array().unwrap().clone())).collect())
}

fn events<'a>(stream: &'a [Value], name: &str) -> Vec<&'a Value> {
    stream.iter().filter(|message| message["props"]["event"] == name).map(|message| &message["props"]["data"]).collect()
}

/// What the last `message_end` says was stored.
fn stored(stream: &[Value]) -> Value {
    events(stream, "message_end").last().unwrap()["extra"]["content"].clone()
}

#[test]
fn a_whole_message_opens_and_ends() {
    let (answers, stream) =
        ops(&[("Send", json!(["hi", "B7"])), ("Send", json!([{"type": "event", "props": {"event": "x"}}]))]);
    assert_eq!(answers, [json!({"ok": "M1"}), json!({"ok": ""})]);
    let kinds: Vec<&str> =
        stream.iter().map(|m| m["props"]["event"].as_str().unwrap_or_else(|| m["type"].as_str().unwrap())).collect();
    assert_eq!(kinds, ["block_start", "message_start", "text", "message_end", "x"]);
    assert_eq!(stream[2]["props"], json!({"content": "hi"}));
    assert_eq!(stored(&stream), "hi");
}

#[test]
fn ending_twice_is_ending_once() {
    let (answers, stream) = ops(&[
        ("SendStream", json!(["a"])),
        ("Append", json!(["M1", "b"])),
        ("End", json!(["M1", "c"])),
        ("End", json!(["M1"])),
        ("End", json!(["M1", "d"])),
    ]);
    assert_eq!(answers[3], json!({"ok": "M1"}));
    assert_eq!(answers[4]["error"]["code"], "ERR_MESSAGE_ENDED");
    assert_eq!(events(&stream, "message_end").len(), 1);
    assert_eq!(stored(&stream), "abc");
    assert_eq!(events(&stream, "message_end")[0]["chunk_count"], 3);
}

#[test_case("Append", json!(["M9", "x"]), "ERR_UNKNOWN_MESSAGE", "no message has the id \"M9\""; "unknown id")]
#[test_case("End", json!(["M9"]), "ERR_UNKNOWN_MESSAGE", "no message has the id \"M9\""; "end of an unknown id")]
#[test_case("Append", json!([9, "x"]), "ERR_ARGUMENT", "messageId must be a string"; "id is a number")]
#[test_case("Send", json!([5]), "ERR_ARGUMENT", "message must be a string, or an object with a string `type`"; "a number is no message")]
#[test_case("Send", json!([{"props": {}}]), "ERR_ARGUMENT", "message must be a string, or an object with a string `type`"; "no type")]
#[test_case("Append", json!(["M1", null]), "ERR_ARGUMENT", "content must be a string, or an object with a string `type`"; "no content")]
#[test_case("Set", json!(["M1", {"type": "text", "props": {}}, ""]), "ERR_EMPTY_PATH", "path cannot be empty for Set operation"; "set without a path")]
#[test_case("Set", json!(["M1", "x", 3]), "ERR_ARGUMENT", "path must be a string"; "path is a number")]
#[test_case("Send", json!(["x", 3]), "ERR_ARGUMENT", "blockId must be a string"; "block is a number")]
#[test_case("Append", json!(["M1", "x", 3]), "ERR_ARGUMENT", "path must be a string"; "append path is a number")]
#[test_case("End", json!(["M1", 3]), "ERR_ARGUMENT", "finalContent must be a string"; "last text is a number")]
fn a_wrong_argument_is_an_error_and_sends_nothing(path: &str, args: Value, code: &str, message: &str) {
    let (answers, stream) = ops(&[("SendStream", json!(["a"])), (path, args)]);
    assert_eq!(answers[1]["error"]["code"], code, "{}", answers[1]);
    assert!(answers[1]["error"]["message"].as_str().unwrap().contains(message), "{}", answers[1]);
    assert_eq!(stream.len(), 2, "the opened message and its start alone: {stream:?}");
}

#[test_case("5", None; "within reach")]
#[test_case("1025", None; "at the limit")]
#[test_case("1026", Some("ERR_PATH"); "beyond it")]
#[test_case("18446744073709551615", Some("ERR_PATH"); "far beyond it")]
fn a_hole_in_a_list_has_a_limit(index: &str, code: Option<&str>) {
    let open = json!([{"type": "list", "props": {"content": [1]}}]);
    let mut delta = json!({"type": "list", "props": {"content": {}}});
    delta["props"]["content"][index] = json!("x");
    let (answers, stream) =
        ops(&[("SendStream", open), ("Set", json!(["M1", delta, format!("content.{index}")])), ("End", json!(["M1"]))]);
    assert_eq!(answers[1]["error"]["code"].as_str(), code, "{}", answers[1]);
    let stored = stored(&stream);
    match code {
        None => assert_eq!(stored.as_array().unwrap().last().unwrap(), "x"),
        Some(_) => assert_eq!(stored, json!([1])),
    }
}

#[test]
fn a_key_with_dots_is_a_key() {
    let deep = format!("content{}", ".a".repeat(100_000));
    let mut props = json!({"content": "kept"});
    props[&deep] = json!("x");
    let (answers, stream) = ops(&[
        ("SendStream", json!(["kept"])),
        ("Append", json!(["M1", {"type": "text", "props": props}])),
        ("End", json!(["M1"])),
    ]);
    assert_eq!(answers[1], json!({"ok": "M1"}));
    assert_eq!(stored(&stream), "keptkept");
}

#[test]
fn replace_mends_a_message_that_has_ended() {
    let (answers, _) = ops(&[("Send", json!(["a"])), ("Replace", json!(["M1", "b"])), ("Append", json!(["M1", "c"]))]);
    assert_eq!(answers[1], json!({"ok": "M1"}));
    assert_eq!(answers[2]["error"]["code"], "ERR_MESSAGE_ENDED");
}

#[test]
fn ids_are_fresh_and_blocks_end_once() {
    let (answers, stream) = ops(&[
        ("MessageID", json!([])),
        ("MessageID", json!([])),
        ("BlockID", json!([])),
        ("ThreadID", json!([])),
        ("Send", json!(["a", "B1"])),
        ("Send", json!(["b", "B1"])),
        ("EndBlock", json!(["B1"])),
        ("EndBlock", json!(["B1"])),
        ("EndBlock", json!(["unknown"])),
    ]);
    let ids: Vec<&Value> = answers[..6].iter().map(|answer| &answer["ok"]).collect();
    assert_eq!(ids, ["M1", "M2", "B1", "T1", "M3", "M4"]);
    assert_eq!(events(&stream, "block_start").len(), 1);
    let ends = events(&stream, "block_end");
    assert_eq!((ends.len(), &ends[0]["message_count"]), (1, &json!(2)));
}

/// A client that applies deltas to `props.content`: text grows, lists grow, objects merge.
fn client(stream: &[Value], id: &str) -> Value {
    let mut content = Value::Null;
    for message in stream.iter().filter(|message| message["message_id"] == id) {
        let Some(new) = message["props"].get("content") else { continue };
        match message["delta_action"].as_str() {
            Some("append") => match (&mut content, new) {
                (Value::String(text), Value::String(more)) => text.push_str(more),
                (Value::Array(items), Value::Array(more)) => items.extend(more.clone()),
                (Value::Array(items), more) => items.push(more.clone()),
                (content, new) => *content = new.clone(),
            },
            Some("merge") => merge(&mut content, new),
            _ => content = new.clone(),
        }
    }
    content
}

fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            from.iter().for_each(|(key, value)| merge(into.entry(key.clone()).or_insert(Value::Null), value));
        }
        (_, Value::Null) => {}
        (into, from) => *into = from.clone(),
    }
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-c]{0,3}".prop_map(Value::from),
        Just(json!([1])),
        Just(json!({"a": 1})),
        Just(json!({"b": {"c": null}})),
        Just(json!(7)),
        Just(Value::Null),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_stored_is_what_the_client_shows(first in value(), deltas in prop::collection::vec((0..4_usize, value()), 0..8)) {
        let message = |content: Value| json!({"type": "text", "props": {"content": content}});
        let mut steps = vec![("SendStream".to_owned(), vec![message(first)])];
        for (verb, content) in deltas {
            let mut args = vec![json!("M1"), message(content)];
            let verb = ["Append", "Replace", "Merge", "Set"][verb];
            if verb == "Set" {
                args.push(json!("content"));
            }
            steps.push((verb.to_owned(), args));
        }
        steps.push(("End".to_owned(), vec![json!("M1")]));
        let (answers, stream) = run_ops(steps);
        prop_assert!(answers.iter().all(|answer| answer.get("ok").is_some()), "{answers:?}");
        prop_assert_eq!(stored(&stream), client(&stream, "M1"));
    }
}
