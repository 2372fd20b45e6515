//! A caller's parameters as they were written.
//!
//! Invariant: a field that nothing changed leaves with the caller's own bytes, so that digits and spelling of numbers
//! survive, beside a change within a field as well. Deliberately no order of its own: that of the value counts.

use std::collections::HashMap;
use std::fmt;

use greenroom_boundary::RawJson;
use greenroom_wire::has_doubled_keys;
use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::readable;
use crate::hooks::WrittenBack;

/// The fields of a `params` object, in order, each as it was written.
#[derive(Clone, Debug, Default)]
pub struct RawParams(Vec<(String, RawJson)>);

impl RawParams {
    /// Reads a `params` object; `None` if it is none.
    pub fn read(raw: &RawJson) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }

    /// Without the fields that readers may understand in two ways: those are written anew, as hooks have seen them.
    #[must_use]
    pub(crate) fn unambiguous(self) -> Self {
        Self(self.0.into_iter().filter(|(_, raw)| !has_doubled_keys(raw)).collect())
    }

    pub(crate) fn into_fields(self) -> impl Iterator<Item = (String, RawJson)> {
        self.0.into_iter()
    }
}

impl<'de> Deserialize<'de> for RawParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = RawParams;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawParams, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(RawParams(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

/// Parameters to be written: those of `value`, with the bytes of `raw` for everything that is the same in both.
pub(super) struct Written<'a> {
    pub(super) value: &'a Value,
    pub(super) raw: Option<&'a RawParams>,
}

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (Value::Object(fields), Some(raw)) = (self.value, self.raw) else {
            return self.value.serialize(serializer);
        };
        let by_name: HashMap<&str, &RawJson> = raw.0.iter().map(|(name, raw)| (name.as_str(), raw)).collect();
        let mut map = serializer.serialize_map(Some(fields.len()))?;
        for (key, value) in fields {
            match by_name.get(key.as_str()).map(|raw| (*raw, readable(raw))) {
                Some((raw, Some((was, _)))) if was == *value => map.serialize_entry(key, raw)?,
                // Of a key that stands twice in it nobody knows which one the change is beside.
                Some((raw, Some((was, _)))) if !has_doubled_keys(raw) => {
                    map.serialize_entry(key, &WrittenBack::new(raw, &was, value))?;
                }
                _ => map.serialize_entry(key, value)?,
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn what_readers_understand_in_two_ways_is_written_anew() {
        let text = r#"{"name":"buy","arguments":{"x":"SECRET","x":"ok"},"n":[1.0,1e2]}"#;
        let raw = RawParams::read(&RawJson::from(serde_json::value::RawValue::from_string(text.to_owned()).unwrap())).unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        let written = |raw: &RawParams| to_raw_value(&Written { value: &value, raw: Some(raw) }).unwrap().get().to_owned();
        assert_eq!(written(&raw), text, "without a judge the bytes are the caller's own");
        let judged = raw.unambiguous();
        assert_eq!(written(&judged), r#"{"name":"buy","arguments":{"x":"ok"},"n":[1.0,1e2]}"#);
    }
}
