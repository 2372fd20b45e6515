//! Arguments of an operation, read by type.
//!
//! Invariant: a value of the wrong type is a TypeError that names operation, argument, expected type and what came; it is
//! never taken for "absent". `null` and `undefined` mean that an optional argument is absent. Deliberately no conversions.

use greenroom_boundary::isolate::{OpArgs, OpDecl, OpError};
use greenroom_boundary::llm::ChatMessage;
use serde_json::{Map, Value};

/// Largest integer that JavaScript numbers hold exactly.
pub(super) const MAX_SAFE: i64 = (1 << 53) - 1;

/// Longest text of a value that an error shows.
const SHOWN_CHARS: usize = 60;

/// The arguments of one call of an operation, or the keys of one request among several.
pub(super) struct Arguments {
    /// `ctx.mcp.CallTool`.
    pub(super) what: String,
    values: Vec<Value>,
}

impl Arguments {
    pub(super) fn read(decl: &OpDecl, args: &OpArgs) -> Result<Self, OpError> {
        let what = format!("ctx.{}", decl.path);
        let values = args
            .iter()
            .map(|raw| {
                serde_json::from_str(raw.get())
                    .map_err(|error| OpError::bad_argument(format!("{what}: an argument is no JSON: {error}")))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { what, values })
    }

    /// The argument; `null` if it is absent.
    pub(super) fn any(&self, index: usize) -> &Value {
        self.values.get(index).unwrap_or(&Value::Null)
    }

    /// A TypeError about a named value.
    pub(super) fn wrong(&self, name: &str, wanted: &str, found: &Value) -> OpError {
        OpError::bad_argument(format!("{}: {name} must be {wanted}, not {}", self.what, shown(found)))
    }

    pub(super) fn text(&self, index: usize, name: &str) -> Result<&str, OpError> {
        let value = self.any(index);
        value.as_str().ok_or_else(|| self.wrong(name, "a string", value))
    }

    pub(super) fn optional_text(&self, index: usize, name: &str) -> Result<Option<&str>, OpError> {
        if self.any(index).is_null() { Ok(None) } else { self.text(index, name).map(Some) }
    }

    pub(super) fn whole(&self, index: usize, name: &str) -> Result<i64, OpError> {
        let value = self.any(index);
        whole(value).ok_or_else(|| self.wrong(name, "a whole number", value))
    }

    pub(super) fn optional_whole(&self, index: usize, name: &str) -> Result<Option<i64>, OpError> {
        if self.any(index).is_null() { Ok(None) } else { self.whole(index, name).map(Some) }
    }

    pub(super) fn list(&self, index: usize, name: &str) -> Result<&[Value], OpError> {
        let value = self.any(index);
        value.as_array().map(Vec::as_slice).ok_or_else(|| self.wrong(name, "an array", value))
    }

    /// An object; empty if it is absent.
    pub(super) fn object(&self, index: usize, name: &str) -> Result<Map<String, Value>, OpError> {
        self.object_of(self.any(index), name)
    }

    pub(super) fn object_of(&self, value: &Value, name: &str) -> Result<Map<String, Value>, OpError> {
        match value {
            Value::Null => Ok(Map::new()),
            Value::Object(map) => Ok(map.clone()),
            other => Err(self.wrong(name, "an object", other)),
        }
    }

    pub(super) fn messages_of(&self, value: &Value, name: &str) -> Result<Vec<ChatMessage>, OpError> {
        let Value::Array(items) = value else { return Err(self.wrong(name, "an array of messages", value)) };
        let read = |(index, item): (usize, &Value)| {
            serde_json::from_value(item.clone()).map_err(|error| {
                OpError::bad_argument(format!("{}: {name}[{index}] must be a message {{ role, content }}: {error}", self.what))
            })
        };
        items.iter().enumerate().map(read).collect()
    }

    /// A key of an object that must be a string.
    pub(super) fn key_text<'v>(&self, of: &'v Map<String, Value>, at: &str, key: &str) -> Result<&'v str, OpError> {
        let value = of.get(key).unwrap_or(&Value::Null);
        value.as_str().ok_or_else(|| self.wrong(&format!("{at}{key}"), "a string", value))
    }

    /// A key of an object that may be absent.
    pub(super) fn key_optional_text<'v>(
        &self,
        of: &'v Map<String, Value>,
        at: &str,
        key: &str,
    ) -> Result<Option<&'v str>, OpError> {
        match of.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(_) => self.key_text(of, at, key).map(Some),
        }
    }

    /// The objects of a list of requests. None of them is skipped, so that results keep their places.
    pub(super) fn requests(&self, index: usize) -> Result<Vec<Map<String, Value>>, OpError> {
        let read = |(at, value): (usize, &Value)| match value {
            Value::Object(map) => Ok(map.clone()),
            other => Err(self.wrong(&format!("requests[{at}]"), "an object", other)),
        };
        self.list(index, "requests")?.iter().enumerate().map(read).collect()
    }
}

/// A whole number of JavaScript's safe range; `3.0` is one.
pub(super) fn whole(value: &Value) -> Option<i64> {
    let whole = value
        .as_i64()
        .or_else(|| value.as_f64().filter(|f| f.fract() == 0.0 && f.abs() <= MAX_SAFE as f64).map(|f| f as i64))?;
    whole.checked_abs().is_some_and(|size| size <= MAX_SAFE).then_some(whole)
}

/// A value as an error shows it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        other => {
            let text = other.to_string();
            match text.char_indices().nth(SHOWN_CHARS) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    }
}
