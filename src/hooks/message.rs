//! A JSON-RPC message as hooks see it.
//!
//! Invariant: a message that is not marked as mutated changes nothing, and what replaces one is still a message of its
//! method. Deliberately no partial merge: a mutated message replaces the current one whole.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::binding::Side;
use super::result;
use super::subject::{Subject, keep_digits};

/// A JSON-RPC message as hooks see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// `tools/call`, …
    pub method: Cow<'static, str>,
    /// Parameters of the request, on both sides.
    pub params: Value,
    /// The result, on the response side.
    pub result: Option<Value>,
    /// The error, on the response side.
    pub error: Option<Value>,
}

impl Message {
    /// A request.
    pub fn request(method: impl Into<Cow<'static, str>>, params: Value) -> Self {
        Self { method: method.into(), params, result: None, error: None }
    }

    /// As JSON.
    pub fn to_value(&self) -> Value {
        let mut fields = Map::with_capacity(5);
        fields.insert("jsonrpc".to_owned(), "2.0".into());
        fields.insert("method".to_owned(), self.method.as_ref().into());
        let params = Some(&self.params).filter(|params| !params.is_null());
        for (key, part) in [("params", params), ("result", self.result.as_ref()), ("error", self.error.as_ref())] {
            if let Some(part) = part {
                fields.insert(key.to_owned(), part.clone());
            }
        }
        Value::Object(fields)
    }

    /// What `name=` of a key is held against: the tool's or prompt's name, the resource's URI, else nothing.
    pub fn name(&self) -> &str {
        let about = match self.method.as_ref() {
            "completion/complete" => self.params.get("ref"),
            _ => Some(&self.params),
        };
        about.and_then(|about| ["name", "uri"].iter().find_map(|key| about.get(key)?.as_str())).unwrap_or_default()
    }

    /// Whether an answer speaks of a message, and of this one's method.
    fn is_about_this(&self, answer: &Map<String, Value>) -> Result<(), String> {
        match answer.get("message") {
            None | Some(Value::Null) => Ok(()),
            Some(Value::Object(message)) => match message.get("method") {
                None => Ok(()),
                Some(method) if *method == *self.method => Ok(()),
                Some(_) => Err(format!("a hook cannot change the method of a message, {}", self.method)),
            },
            Some(_) => Err("`message` must be an object".to_owned()),
        }
    }

    /// Whether it is still a message of its method.
    fn check(&self) -> Result<(), String> {
        let field = match self.method.as_ref() {
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
        // `json!` would copy the message once more.
        let mut fields = Map::with_capacity(4);
        fields.insert("accept".to_owned(), true.into());
        fields.insert("mutated".to_owned(), false.into());
        fields.insert("message".to_owned(), self.to_value());
        fields.insert("reason".to_owned(), "".into());
        Value::Object(fields)
    }

    fn knows(&self, field: &str) -> bool {
        field == "message"
    }

    fn check_types(&self, answer: &Map<String, Value>) -> Result<(), String> {
        self.is_about_this(answer)
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
        if message.result != self.result || message.error != self.error {
            result::check(&message.method, message.result.as_ref(), message.error.as_ref())?;
        }
        Ok(message)
    }

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }
}
