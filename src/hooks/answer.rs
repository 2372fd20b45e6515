//! Reading a hook's answer.
//!
//! Invariant: a wrong type or a missing verdict of a validator is a refusal, never a pass. A message that is not marked
//! as mutated changes nothing. Deliberately no partial merge: a mutated message replaces the current one whole.

use serde_json::Value;

use super::cascade::Message;
use super::key::{HookForm, Side};

/// What an answer means.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// No objection, no change.
    Pass,
    /// The new message, and why.
    Mutate { message: Box<Message>, reason: Option<String> },
    /// Refused, and why.
    Reject { reason: String },
    /// Not an answer.
    Malformed { message: String },
}

/// Reads the value that a hook returned; `None` means that it returned nothing.
pub(super) fn read(form: HookForm, side: Side, current: &Message, value: Option<Value>) -> Answer {
    match (form, value) {
        (HookForm::Envelope { .. } | HookForm::Mutate, None) => Answer::Pass,
        (HookForm::Validate, None) => malformed("a validator must return {valid, reason?}, it returned nothing"),
        (HookForm::Envelope { may_mutate }, Some(Value::Object(answer))) => read_envelope(may_mutate, side, current, &answer),
        (HookForm::Mutate, Some(value @ Value::Object(_))) => read_message(side, current, &value, None),
        (HookForm::Validate, Some(Value::Object(answer))) => match answer.get("valid") {
            Some(Value::Bool(true)) => Answer::Pass,
            Some(Value::Bool(false)) => Answer::Reject { reason: reason_of(&answer).unwrap_or_default() },
            _ => malformed("a validator must return `valid` as a boolean"),
        },
        (_, Some(other)) => malformed(&format!("a hook must return an object, it returned {}", type_of(&other))),
    }
}

fn read_envelope(may_mutate: bool, side: Side, current: &Message, answer: &serde_json::Map<String, Value>) -> Answer {
    let reason = reason_of(answer);
    match answer.get("accept") {
        Some(Value::Bool(true)) => {}
        Some(Value::Bool(false)) => return Answer::Reject { reason: reason.unwrap_or_default() },
        None if may_mutate => {}
        None => return malformed("a validator (`!mutate:`) must return `accept`"),
        Some(_) => return malformed("`accept` must be a boolean"),
    }
    match answer.get("mutated") {
        None | Some(Value::Bool(false)) => Answer::Pass,
        Some(Value::Bool(true)) if !may_mutate => {
            Answer::Reject { reason: join(reason, "mutation not allowed by hook configuration, implicit rejection") }
        }
        Some(Value::Bool(true)) => match answer.get("message") {
            Some(message @ Value::Object(_)) => read_message(side, current, message, reason),
            _ => malformed("`mutated` is true, but `message` is no object"),
        },
        Some(_) => malformed("`mutated` must be a boolean"),
    }
}

fn read_message(side: Side, current: &Message, value: &Value, reason: Option<String>) -> Answer {
    let mut message = current.clone();
    match side {
        Side::Request => match value.get("params") {
            Some(params @ Value::Object(_)) => message.params = params.clone(),
            _ => return malformed("the new message has no object `params`"),
        },
        Side::Response => {
            message.result = value.get("result").filter(|result| !result.is_null()).cloned();
            message.error = value.get("error").filter(|error| !error.is_null()).cloned();
            if message.result.is_none() == message.error.is_none() {
                return malformed("the new message must have exactly one of `result` and `error`");
            }
        }
    }
    keep_digits(&current.params, &mut message.params);
    for (before, after) in [(&current.result, &mut message.result), (&current.error, &mut message.error)] {
        if let (Some(before), Some(after)) = (before, after) {
            keep_digits(before, after);
        }
    }
    if let Err(problem) = message.check() {
        return malformed(&problem);
    }
    if message == *current { Answer::Pass } else { Answer::Mutate { message: Box::new(message), reason } }
}

/// Numbers that a hook left alone keep their spelling, though a script's numbers cannot hold every digit of it.
fn keep_digits(before: &Value, after: &mut Value) {
    match (before, after) {
        (Value::Number(old), Value::Number(new)) if old.as_f64() == new.as_f64() => new.clone_from(old),
        (Value::Array(old), Value::Array(new)) => old.iter().zip(new).for_each(|(old, new)| keep_digits(old, new)),
        (Value::Object(old), Value::Object(new)) => {
            for (key, value) in new {
                if let Some(old) = old.get(key) {
                    keep_digits(old, value);
                }
            }
        }
        _ => {}
    }
}

fn reason_of(answer: &serde_json::Map<String, Value>) -> Option<String> {
    answer.get("reason").and_then(Value::as_str).filter(|reason| !reason.is_empty()).map(str::to_owned)
}

fn join(reason: Option<String>, text: &str) -> String {
    match reason {
        Some(reason) => format!("{reason}; {text}"),
        None => text.to_owned(),
    }
}

fn malformed(message: &str) -> Answer {
    Answer::Malformed { message: message.to_owned() }
}

/// A value's type in words, `a number`.
pub(crate) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
