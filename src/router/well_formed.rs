//! Whether an answer of an external server is one.
//!
//! Invariant: what the protocol requires a type of has it, so that hooks, models and clients need not ask. Deliberately no schemas:
//! what is missing or unknown stays as it is, and structured content may be any JSON, as in the revision of 2026.

use serde_json::Value;

use super::CallError;

/// What must be what, where it is there at all.
fn shape(method: &str) -> &'static [(&'static str, Kind)] {
    match method {
        "tools/call" => &[("content", Kind::Array), ("isError", Kind::Boolean)],
        "tools/list" => &[("tools", Kind::Array)],
        "prompts/list" => &[("prompts", Kind::Array)],
        "prompts/get" => &[("messages", Kind::Array)],
        "resources/list" => &[("resources", Kind::Array)],
        "resources/templates/list" => &[("resourceTemplates", Kind::Array)],
        "resources/read" => &[("contents", Kind::Array)],
        "completion/complete" => &[("completion", Kind::Object)],
        _ => &[],
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Array,
    Object,
    Boolean,
}

impl Kind {
    fn is_of(self, value: &Value) -> bool {
        match self {
            Self::Array => value.is_array(),
            Self::Object => value.is_object(),
            Self::Boolean => value.is_boolean(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Array => "an array",
            Self::Object => "an object",
            Self::Boolean => "a boolean",
        }
    }
}

/// Refuses what is no answer to `method`. A field that is `null` counts as left out, as many servers write it so.
pub(super) fn well_formed(server: &str, method: &str, result: &Value) -> Result<(), CallError> {
    if shape(method).is_empty() {
        // Nothing is read of it.
        return Ok(());
    }
    let bad = |what: String| CallError::BadResult { server: server.to_owned(), method: method.to_owned(), what };
    let Value::Object(fields) = result else {
        return Err(bad(format!("{}, not with an object", told(result))));
    };
    for (field, kind) in shape(method) {
        if let Some(value) = fields.get(*field).filter(|value| !value.is_null() && !kind.is_of(value)) {
            return Err(bad(format!("a `{field}` that is {}, not {}", told(value), kind.name())));
        }
    }
    Ok(())
}

fn told(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
