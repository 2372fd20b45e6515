//! Something of the host's own that hooks look at: an agent's turn, a session.
//!
//! Invariant: only the named fields can be changed; a field that an answer does not mention stays as it is, and what
//! replaces one is checked before it counts. Deliberately no flag `mutated`: what differs is the change (nanobot).

use serde_json::{Map, Value};

use super::binding::Side;
use super::subject::{Subject, keep_digits};

/// An object with fields that hooks may change.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    /// What it is called in a refusal.
    pub(crate) noun: &'static str,
    /// The method of its exchange.
    pub(crate) method: &'static str,
    /// The object.
    pub(crate) value: Value,
    /// The fields that hooks may change.
    pub(crate) open: &'static [&'static str],
    /// What is wrong with a new value.
    pub(crate) check: fn(&Value) -> Result<(), String>,
}

impl Subject for Fields {
    fn noun(&self) -> &'static str {
        self.noun
    }

    fn method(&self) -> &str {
        self.method
    }

    fn to_value(&self) -> Value {
        self.value.clone()
    }

    fn question(&self) -> Value {
        self.value.clone()
    }

    fn knows(&self, field: &str) -> bool {
        self.value.get(field).is_some() || self.open.contains(&field)
    }

    fn asked_for(&self, _: Side, answer: &Map<String, Value>) -> Result<Option<Self>, String> {
        let new = self.with(answer);
        if new.is_same(self) { Ok(None) } else { new.checked().map(Some) }
    }

    fn replaced(&self, _: Side, value: &Value) -> Result<Self, String> {
        match value {
            Value::Object(fields) => self.with(fields).checked(),
            _ => Err("it is no object".to_owned()),
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl Fields {
    fn with(&self, answer: &Map<String, Value>) -> Self {
        let mut new = self.clone();
        for field in self.open {
            if let Some(given) = answer.get(*field).filter(|given| !given.is_null()) {
                new.value[*field] = given.clone();
            }
        }
        keep_digits(&self.value, &mut new.value);
        new
    }

    fn checked(self) -> Result<Self, String> {
        (self.check)(&self.value).map(|()| self)
    }
}
