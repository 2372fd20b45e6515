//! What hooks changed, written beside the bytes of what they left alone.
//!
//! Invariant: a part that reads the same as before keeps its bytes, so that digits and spelling of numbers beside a change survive,
//! those that hooks saw rounded included. Deliberately no deeper than a few levels: what is changed below those is written anew.

use std::collections::BTreeMap;

use greenroom_boundary::RawJson;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// How deep a change is looked for: each level is read again.
const MAX_DEPTH: usize = 16;

/// `now` as text, where `raw` is the text of `was`. It must have no key twice in an object.
pub(crate) fn write_back(raw: &RawValue, was: &Value, now: &Value) -> Option<RawJson> {
    to_raw_value(&WrittenBack::new(raw, was, now)).ok()
}

/// The same, to be written into something larger.
pub(crate) struct WrittenBack<'a> {
    raw: &'a RawValue,
    was: &'a Value,
    now: &'a Value,
    depth: usize,
}

impl<'a> WrittenBack<'a> {
    pub(crate) fn new(raw: &'a RawValue, was: &'a Value, now: &'a Value) -> Self {
        Self { raw, was, now, depth: MAX_DEPTH }
    }

    fn below(&self, raw: &'a RawValue, was: &'a Value, now: &'a Value) -> Self {
        Self { raw, was, now, depth: self.depth - 1 }
    }

    fn object<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields: BTreeMap<String, &RawValue> = serde_json::from_str(self.raw.get()).unwrap_or_default();
        let now = self.now.as_object().into_iter().flatten();
        let mut map = serializer.serialize_map(Some(now.clone().count()))?;
        for (key, now) in now {
            match (fields.get(key), self.was.get(key)) {
                (Some(raw), Some(was)) => map.serialize_entry(key, &self.below(raw, was, now))?,
                _ => map.serialize_entry(key, now)?,
            }
        }
        map.end()
    }

    /// Items keep their bytes from the beginning up to the first change, and from the last change on; what lies between is
    /// taken one for one if there are as many as before.
    fn array<S: Serializer>(&self, serializer: S, was: &'a [Value], now: &'a [Value]) -> Result<S::Ok, S::Error> {
        let raw: Vec<&RawValue> = serde_json::from_str(self.raw.get()).unwrap_or_default();
        let raw = if raw.len() == was.len() { raw } else { Vec::new() };
        let shorter = was.len().min(now.len());
        let first = was.iter().zip(now).take_while(|(was, now)| was == now).count();
        let last = was.iter().rev().zip(now.iter().rev()).take(shorter - first).take_while(|(was, now)| was == now).count();
        let mut seq = serializer.serialize_seq(Some(now.len()))?;
        for (at, item) in now.iter().enumerate() {
            let before = match at {
                at if at < first || was.len() == now.len() => Some(at),
                at if at >= now.len() - last => Some(was.len() - (now.len() - at)),
                _ => None,
            };
            match before.and_then(|before| Some((*raw.get(before)?, was.get(before)?))) {
                Some((raw, was)) => seq.serialize_element(&self.below(raw, was, item))?,
                None => seq.serialize_element(item)?,
            }
        }
        seq.end()
    }
}

impl Serialize for WrittenBack<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self.was, self.now) {
            (was, now) if was == now => self.raw.serialize(serializer),
            (_, now) if self.depth == 0 => now.serialize(serializer),
            (Value::Object(_), Value::Object(_)) => self.object(serializer),
            (Value::Array(was), Value::Array(now)) => self.array(serializer, was, now),
            (_, now) => now.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use test_case::test_case;

    use super::*;

    fn written(text: &str, change: impl FnOnce(&mut Value)) -> String {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        let was: Value = serde_json::from_str(text).unwrap();
        let mut now = was.clone();
        change(&mut now);
        write_back(&raw, &was, &now).unwrap().get().to_owned()
    }

    #[test_case(|_| (), r#"{"a": 12345678901234567890123, "b": {"c": [1.10, 1e2], "d": 1}}"#; "nothing")]
    #[test_case(|v| v["b"]["d"] = json!(2), r#"{"a":12345678901234567890123,"b":{"c":[1.10, 1e2],"d":2}}"#; "beside and below")]
    #[test_case(|v| v["b"]["c"][1] = json!("x"), r#"{"a":12345678901234567890123,"b":{"c":[1.10,"x"],"d":1}}"#; "an item")]
    #[test_case(|v| v["b"]["c"].as_array_mut().unwrap().insert(0, json!(7)), r#"{"a":12345678901234567890123,"b":{"c":[7,1.10,1e2],"d":1}}"#; "an item before the others")]
    #[test_case(|v| drop(v["b"]["c"].as_array_mut().unwrap().remove(0)), r#"{"a":12345678901234567890123,"b":{"c":[1e2],"d":1}}"#; "an item less")]
    #[test_case(|v| *v = json!({"n": v["a"]}), r#"{"n":1.2345678901234568e+22}"#; "moved elsewhere")]
    #[test_case(|v| v["b"] = json!([1]), r#"{"a":12345678901234567890123,"b":[1]}"#; "another kind")]
    fn what_was_left_alone_keeps_its_bytes(change: fn(&mut Value), expected: &str) {
        assert_eq!(written(r#"{"a": 12345678901234567890123, "b": {"c": [1.10, 1e2], "d": 1}}"#, change), expected);
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-c]{0,2}".prop_map(Value::from)
        ];
        leaf.prop_recursive(5, 40, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec(("[a-e]", inner), 0..5).prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn it_reads_as_what_hooks_made_of_it(was in json_value(), now in json_value()) {
            let raw = RawValue::from_string(serde_json::to_string_pretty(&was).unwrap()).unwrap();
            let written = write_back(&raw, &was, &now).unwrap();
            let read: Value = serde_json::from_str(written.get()).unwrap();
            prop_assert_eq!(&read, &now);
            // Keys stand where hooks put them.
            prop_assert_eq!(read.to_string(), now.to_string());
            let unchanged = write_back(&raw, &was, &was).unwrap();
            prop_assert_eq!(unchanged.get(), raw.get());
        }
    }
}
