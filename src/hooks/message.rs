//! A JSON-RPC message as hooks see it.
//!
//! Invariant: a message that is not marked as mutated changes nothing, and what replaces one is still a message of its
//! method. Deliberately no partial merge: a mutated message replaces the current one whole.

use serde_json::{Map, Value, json};

use super::binding::Side;
use super::subject::{Subject, keep_digits};

/// A JSON-RPC message as hooks see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// `tools/call`, …
    pub method: String,
    /// Parameters of the request, on both sides.
    pub params: Value,
    /// The result, on the response side.
    pub result: Option<Value>,
    /// The error, on the response side.
    pub error: Option<Value>,
}

impl Message {
    /// A request.
    pub fn request(method: &str, params: Value) -> Self {
        Self { method: method.to_owned(), params, result: None, error: None }
    }

    /// As JSON.
    pub fn to_value(&self) -> Value {
        let mut value = json!({"jsonrpc": "2.0", "method": self.method});
        if !self.params.is_null() {
            value["params"] = self.params.clone();
        }
        for (key, part) in [("result", &self.result), ("error", &self.error)] {
            if let Some(part) = part {
                value[key] = part.clone();
            }
        }
        value
    }

    /// What `name=` of a key is held against: the tool's or prompt's name, the resource's URI, else nothing.
    pub fn name(&self) -> &str {
        let at = match self.method.as_str() {
            "completion/complete" => ["/ref/name", "/ref/uri"],
            _ => ["/name", "/uri"],
        };
        at.iter().find_map(|path| self.params.pointer(path)?.as_str()).unwrap_or_default()
    }

    /// Whether it is still a message of its method.
    fn check(&self) -> Result<(), String> {
        let field = match self.method.as_str() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" | "resources/subscribe" | "resources/unsubscribe" => "uri",
            _ => return Ok(()),
        };
        if !self.params.get(field).is_some_and(Value::is_string) {
            return Err(format!("the new message is no valid {}: params.{field} is missing or no string", self.method));
        }
        if self.method == "tools/call" && self.params.get("arguments").is_some_and(|arguments| !arguments.is_object()) {
            return Err("the new message is no valid tools/call: params.arguments is no object".to_owned());
        }
        Ok(())
    }
}

impl Subject for Message {
    fn noun(&self) -> &'static str {
        "message"
    }

    fn method(&self) -> &str {
        &self.method
    }

    fn to_value(&self) -> Value {
        Self::to_value(self)
    }

    fn is_error(&self) -> bool {
        self.error.is_some()
    }

    fn question(&self) -> Value {
        json!({"accept": true, "mutated": false, "message": self.to_value(), "reason": ""})
    }

    fn asked_for(&self, side: Side, answer: &Map<String, Value>) -> Result<Option<Self>, String> {
        match (answer.get("mutated"), answer.get("message")) {
            (None, _) => Ok(None),
            (_, Some(message @ Value::Object(_))) => self.replaced(side, message).map(Some),
            _ => Err("`mutated` is true, but `message` is no object".to_owned()),
        }
    }

    fn replaced(&self, side: Side, value: &Value) -> Result<Self, String> {
        let mut message = self.clone();
        match side {
            Side::Request => match value.get("params") {
                Some(params @ Value::Object(_)) => message.params = params.clone(),
                // A message without parameters may be given back as it came.
                None | Some(Value::Null) if self.params.is_null() => {}
                _ => return Err("the new message has no object `params`".to_owned()),
            },
            Side::Response => {
                message.result = value.get("result").filter(|result| !result.is_null()).cloned();
                message.error = value.get("error").filter(|error| !error.is_null()).cloned();
                if message.result.is_none() == message.error.is_none() {
                    return Err("the new message must have exactly one of `result` and `error`".to_owned());
                }
            }
        }
        keep_digits(&self.params, &mut message.params);
        for (before, after) in [(&self.result, &mut message.result), (&self.error, &mut message.error)] {
            if let (Some(before), Some(after)) = (before, after) {
                keep_digits(before, after);
            }
        }
        message.check()?;
        Ok(message)
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }
}
