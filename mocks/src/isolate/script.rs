//! The script of the mock engine, as a scenario writes it under `isolate.script`.
//!
//! Invariant: unknown keys and a step with two outcomes are refused when it is read. Deliberately no computed outcomes;
//! those are native functions.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use greenroom_boundary::isolate::JsException;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// Outcomes by `SCRIPT#function` (`agents/travel.ts#Create`), each list used in order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct IsolateScript(pub BTreeMap<String, Vec<IsolateStep>>);

/// The outcome of one call. Without `returns`, `throws`, `timeout` and `heap` the function returns nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct IsolateStep {
    /// It returns this value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns: Option<Value>,
    /// It throws this error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throws: Option<ScriptedThrow>,
    /// It runs until its wall limit passes.
    #[serde(default, skip_serializing_if = "is_false")]
    pub timeout: bool,
    /// It uses more memory than its limit.
    #[serde(default, skip_serializing_if = "is_false")]
    pub heap: bool,
    /// How many calls it answers (default 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<NonZeroU32>,
}

/// An error that a scripted function throws.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedThrow {
    /// Its class (default `Error`).
    #[serde(default = "error_class")]
    pub class: String,
    /// Its message.
    pub message: String,
    /// Its `code`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

impl ScriptedThrow {
    /// The exception; it has no frames, for there is no code.
    pub(super) fn exception(&self) -> JsException {
        JsException {
            class: self.class.clone(),
            message: self.message.clone(),
            code: self.code.clone(),
            frames: Vec::new(),
            cause: None,
        }
    }
}

/// A step as it is written, before it is known to have at most one outcome.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepText {
    #[serde(default, deserialize_with = "present")]
    returns: Option<Value>,
    throws: Option<ScriptedThrow>,
    #[serde(default)]
    timeout: bool,
    #[serde(default)]
    heap: bool,
    repeat: Option<NonZeroU32>,
}

impl<'de> Deserialize<'de> for IsolateStep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = StepText::deserialize(deserializer)?;
        let outcomes = [text.returns.is_some(), text.throws.is_some(), text.timeout, text.heap];
        if outcomes.into_iter().filter(|given| *given).count() > 1 {
            return Err(D::Error::custom(
                "a step has one of `returns`, `throws`, `timeout` and `heap`; write one step for each call",
            ));
        }
        let StepText { returns, throws, timeout, heap, repeat } = text;
        Ok(Self { returns, throws, timeout, heap, repeat })
    }
}

/// Keeps `returns: null` apart from no `returns`.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

fn error_class() -> String {
    "Error".to_owned()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_false(given: &bool) -> bool {
    !given
}
