//! Rewriting in place changes what it says and nothing else.

use greenroom_wire::splice::{Edits, params_with_token, progress_params, progress_token_of, splice};
use greenroom_wire::{Envelope, Frame, Message, RequestId};
use proptest::prelude::*;
use serde_json::{Value, json};
use test_case::test_case;

use crate::support::{frame, raw};

fn token(frame_text: &str, token: &RequestId) -> String {
    match splice(&frame(frame_text), &Edits { progress_token: Some(token), ..Edits::default() }) {
        Ok(frame) => frame.to_text(),
        Err(error) => error.code().to_owned(),
    }
}

#[test_case(r#"{"id":1,"params":{"_meta":{"a":1, "progressToken" : "x" }, "b":2}}"# => r#"{"id":1,"params":{"_meta":{"a":1, "progressToken" : 0 }, "b":2}}"#; "replaced")]
#[test_case(r#"{"id":1,"params":{"_meta":{"a":1} , "b":2}}"# => r#"{"id":1,"params":{"_meta":{"a":1,"progressToken":0} , "b":2}}"#; "added to meta")]
#[test_case(r#"{"id":1,"params":{"_meta":{ }}}"# => r#"{"id":1,"params":{"_meta":{ "progressToken":0}}}"#; "added to empty meta")]
#[test_case(r#"{"id":1,"params":{"b":"}"} }"# => r#"{"id":1,"params":{"b":"}","_meta":{"progressToken":0}} }"#; "meta added")]
#[test_case(r#"{"id":1,"params":{}}"# => r#"{"id":1,"params":{"_meta":{"progressToken":0}}}"#; "meta added to empty params")]
#[test_case(r#"{"id":1,"params":{"_meta":null}}"# => r#"{"id":1,"params":{"_meta":{"progressToken":0}}}"#; "null meta")]
#[test_case(r#"{"id":1}"# => r#"{"id":1,"params":{"_meta":{"progressToken":0}}}"#; "params added")]
#[test_case(r#"{"id":1,"params":null}"# => r#"{"id":1,"params":{"_meta":{"progressToken":0}}}"#; "null params")]
#[test_case(r#"{"id":1,"params":{"_meta":{"progressToken":0}}}"# => r#"{"id":1,"params":{"_meta":{"progressToken":0}}}"#; "the same already")]
#[test_case(r#"{"id":1,"params":[1]}"# => "WIRE_BAD_PARAMS"; "params no object")]
#[test_case(r#"{"id":1,"params":{"_meta":7}}"# => "WIRE_BAD_PARAMS"; "meta no object")]
#[test_case(r#"{"id":1,"params":{"_meta":{},"_meta":{}}}"# => "WIRE_DUPLICATE_KEY"; "meta twice")]
fn a_token_is_put_in(text: &str) -> String {
    token(text, &RequestId::Number(0))
}

#[test]
fn several_edits_at_once() {
    let old = frame(r#"{ "params" : {"name":"x"}, "extra":1.00, "id" : 5 }"#);
    let (id, params) = (RequestId::from("z"), raw(r#"{"name": "y"}"#));
    let edits = Edits { id: Some(&id), params: Some(&params), progress_token: Some(&RequestId::Number(9)) };
    let new = splice(&old, &edits).unwrap().to_text();
    assert_eq!(new, r#"{ "params" : {"name": "y","_meta":{"progressToken":9}}, "extra":1.00, "id" : "z" }"#);
}

#[test]
fn tokens_keep_their_type() {
    let read = |text: &str| progress_token_of(Some(&raw(text)));
    assert_eq!(read(r#"{"_meta":{"progressToken":0}}"#), Some(RequestId::Number(0)));
    assert_eq!(read(r#"{"_meta":{"progressToken":"0"}}"#), Some(RequestId::from("0")));
    assert_eq!(read(r#"{"_meta":{"progressToken":""}}"#), Some(RequestId::from("")));
    assert_eq!(read(r#"{"_meta":{"progressToken":null}}"#), None);
    assert_eq!(read(r#"{"_meta":{"progressToken":0.5}}"#), None);
    assert_eq!(read("[]"), None);
    let note = progress_params(&raw(r#"{"progressToken":1,"progress":1.0 ,"x":[]}"#), &RequestId::from("0")).unwrap();
    assert_eq!(note.get(), r#"{"progressToken":"0","progress":1.0 ,"x":[]}"#);
    assert_eq!(params_with_token(None, &RequestId::Number(3)).unwrap().get(), r#"{"_meta":{"progressToken":3}}"#);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        "[{}\\[\\]\",:\\\\ ]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((".{0,6}", inner), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn any_id() -> impl Strategy<Value = RequestId> {
    prop_oneof![any::<i64>().prop_map(RequestId::Number), ".{0,10}".prop_map(RequestId::Text)]
}

const ID: &str = "\"@@the id@@\"";
const TOKEN: &str = "\"@@the token@@\"";

/// The text of a request, in some member order, compact or spread over lines, with marks for its id and its token.
fn any_request() -> impl Strategy<Value = String> {
    let meta = prop::option::of((any_json(), any::<bool>()));
    let parts = (any_json(), any_json(), meta, any::<bool>(), 0..4usize);
    parts.prop_map(|(argument, extra, meta, pretty, turn)| {
        let mut params = json!({"name": "tool", "arguments": argument});
        if let Some((other, has_token)) = meta {
            params["_meta"] = json!({"other": other});
            if has_token {
                params["_meta"]["progressToken"] = json!(TOKEN.trim_matches('"'));
            }
        }
        let mut members = vec![
            ("jsonrpc", json!("2.0")),
            ("id", json!(ID.trim_matches('"'))),
            ("method", json!("tools/call")),
            ("params", params),
            ("x-extra", extra),
        ];
        members.rotate_left(turn);
        let value = Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect());
        if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() }
    })
}

/// Whether `new` is `old` with `added` put in somewhere.
fn is_addition(old: &str, new: &str, added: &str) -> bool {
    new.match_indices(added).any(|(at, _)| format!("{}{}", &new[..at], &new[at + added.len()..]) == old)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_new_id_changes_only_the_id(text in any_request(), old in any_id(), new in any_id()) {
        let frame = Frame::from(text.replace(ID, &old.to_json()));
        let there = splice(&frame, &Edits { id: Some(&new), ..Edits::default() }).unwrap();
        prop_assert_eq!(there.to_text(), text.replace(ID, &new.to_json()));
        let is_request = matches!(Message::parse(&there), Ok(Message::Request { id, .. }) if id == new);
        prop_assert!(is_request);
        prop_assert_eq!(splice(&there, &Edits { id: Some(&old), ..Edits::default() }).unwrap(), frame);
    }

    #[test]
    fn a_new_token_changes_only_the_token(text in any_request(), old in any_id(), new in any_id()) {
        let frame = Frame::from(text.replace(TOKEN, &old.to_json()));
        let there = splice(&frame, &Edits { progress_token: Some(&new), ..Edits::default() }).unwrap();
        if text.contains(TOKEN) {
            prop_assert_eq!(there.to_text(), text.replace(TOKEN, &new.to_json()));
        } else {
            let member = format!(",\"progressToken\":{new}");
            let meta = format!(",\"_meta\":{{\"progressToken\":{new}}}");
            let added = if text.contains("_meta") { member } else { meta };
            prop_assert!(is_addition(&frame.to_text(), &there.to_text(), &added), "{:?}", there);
        }
        let params = serde_json::from_slice::<Value>(&there.0).unwrap()["params"].clone();
        prop_assert_eq!(progress_token_of(Some(&raw(&params.to_string()))), Some(new));
    }

    #[test]
    fn new_params_change_only_the_params(text in any_request(), params in any_json()) {
        let params = raw(&params.to_string());
        let frame = Frame::from(text);
        let there = splice(&frame, &Edits { params: Some(&params), ..Edits::default() }).unwrap();
        let (old, new) = (Envelope::parse(&frame).unwrap(), Envelope::parse(&there).unwrap());
        prop_assert_eq!(new.params.unwrap().get(), params.get());
        let back = raw(old.params.unwrap().get());
        prop_assert_eq!(splice(&there, &Edits { params: Some(&back), ..Edits::default() }).unwrap(), frame);
    }
}
