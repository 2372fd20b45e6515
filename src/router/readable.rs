//! A server's bytes as a value, as far as there is one.
//!
//! Invariant: a number that no value can hold is `null` in its place, and all around it can be read: nobody hides a text
//! from hooks by writing such a number beside it. Deliberately `None` for what is nested deeper than readers go.

use greenroom_boundary::RawJson;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::RawParams;

/// How deep a value may be nested: as deep as the JSON reader goes.
const MAX_DEPTH: usize = 127;

/// The value, and whether a number in it could not be held.
pub(crate) fn readable(raw: &RawJson) -> Option<(Value, bool)> {
    match serde_json::from_str(raw.get()) {
        Ok(value) => Some((value, false)),
        Err(_) => part(raw, MAX_DEPTH).map(|value| (value, true)),
    }
}

fn part(raw: &RawValue, depth: usize) -> Option<Value> {
    let text = raw.get();
    match text.as_bytes().first()? {
        b'{' | b'[' if depth == 0 => None,
        b'{' => {
            let fields: RawParams = serde_json::from_str(text).ok()?;
            let parts = fields.into_fields().map(|(key, raw)| Some((key, part(&raw, depth - 1)?)));
            parts.collect::<Option<Map<_, _>>>().map(Value::Object)
        }
        b'[' => {
            let items: Vec<RawJson> = serde_json::from_str(text).ok()?;
            items.iter().map(|raw| part(raw, depth - 1)).collect::<Option<Vec<_>>>().map(Value::Array)
        }
        b'-' | b'0'..=b'9' => Some(serde_json::from_str(text).unwrap_or_default()),
        _ => serde_json::from_str(text).ok(),
    }
}
