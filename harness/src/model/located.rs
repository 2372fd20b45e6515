//! A part of a scenario that remembers where it was written.
//!
//! Invariant: the place is for messages alone: two parts that differ in place only are equal, and it is not serialised.

use std::borrow::Cow;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};

/// A value with its line and column in the scenario file.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Located<T> {
    /// Line, from 1; 0 if it came from no file.
    #[serde(skip)]
    pub line: u32,
    /// Column, from 1; 0 if it came from no file.
    #[serde(skip)]
    pub column: u32,
    /// The value.
    pub value: T,
}

impl<T> From<T> for Located<T> {
    fn from(value: T) -> Self {
        Self { line: 0, column: 0, value }
    }
}

impl<T> Deref for Located<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: PartialEq> PartialEq for Located<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Located<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(Self::from)
    }
}

impl<T: JsonSchema> JsonSchema for Located<T> {
    fn inline_schema() -> bool {
        T::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        T::schema_id()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::json_schema(generator)
    }
}
