//! Request ids and progress tokens.
//!
//! Invariant: the JSON type is part of the value, so `0`, `"0"` and absence are three things. Deliberately no floating
//! point: an id with a fraction or an exponent, and `null`, are refused.

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The id of a request: a whole number or a text.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestId {
    /// A JSON number without fraction.
    Number(i64),
    /// A JSON string.
    Text(String),
}

/// A progress token has the form of a request id.
pub type ProgressToken = RequestId;

impl RequestId {
    /// Reads an id from its JSON text; `None` if it is not a whole number in range and not a string.
    pub fn from_raw(raw: &RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }

    /// The id as JSON text.
    pub fn to_json(&self) -> String {
        match self {
            Self::Number(number) => number.to_string(),
            Self::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl From<i64> for RequestId {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for RequestId {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = RequestId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a whole number")
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<RequestId, E> {
        Ok(RequestId::Number(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<RequestId, E> {
        i64::try_from(value).map(RequestId::Number).map_err(|_| E::custom("id is beyond 2^63 - 1"))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<RequestId, E> {
        Ok(RequestId::from(value))
    }
}
