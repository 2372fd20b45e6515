//! The parameters of a request as a server gets them.
//!
//! Invariant: they read the same in either form, and what many are asked is shared but never changed: who wants to change
//! it takes a copy. Deliberately no writing here.

use std::ops::{Deref, Index};
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value};

/// Parameters, as one value or as the name and arguments of a tool. In the second form `["name"]` and `["arguments"]` are
/// read in place; what asks for the whole value has it made.
#[derive(Clone, Debug)]
pub struct Params(Form);

#[derive(Clone, Debug)]
enum Form {
    Whole(Value),
    Call { name: Value, arguments: Arc<Value>, whole: OnceLock<Value> },
}

impl Params {
    /// Those of a call of `tool`.
    pub fn call(tool: &str, arguments: Arc<Value>) -> Self {
        Self(Form::Call { name: tool.into(), arguments, whole: OnceLock::new() })
    }

    /// The field `key`, if there is one.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match (&self.0, key) {
            (Form::Whole(value), _) => value.get(key),
            (Form::Call { name, .. }, "name") => Some(name),
            (Form::Call { arguments, .. }, "arguments") => Some(arguments),
            (Form::Call { .. }, _) => None,
        }
    }
}

/// The whole value of a call.
pub(super) fn call_params(tool: &str, arguments: Value) -> Value {
    let mut params = Map::with_capacity(2);
    params.insert("name".to_owned(), tool.into());
    params.insert("arguments".to_owned(), arguments);
    Value::Object(params)
}

impl From<Value> for Params {
    fn from(value: Value) -> Self {
        Self(Form::Whole(value))
    }
}

impl Deref for Params {
    type Target = Value;

    fn deref(&self) -> &Value {
        match &self.0 {
            Form::Whole(value) => value,
            Form::Call { name, arguments, whole } => {
                whole.get_or_init(|| call_params(name.as_str().unwrap_or_default(), Value::clone(arguments)))
            }
        }
    }
}

impl Index<&str> for Params {
    type Output = Value;

    /// The field `key`; `null` if there is none.
    fn index(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&Value::Null)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_forms_read_the_same() {
        let arguments = json!({"text": "hello"});
        let whole = Params::from(call_params("echo", arguments.clone()));
        let call = Params::call("echo", Arc::new(arguments));
        for key in ["name", "arguments", "_meta"] {
            assert_eq!(call.get(key), whole.get(key), "{key}");
            assert_eq!(call[key], whole[key], "{key}");
        }
        assert_eq!(*call, *whole);
        assert_eq!(call.to_string(), whole.to_string());
    }
}
