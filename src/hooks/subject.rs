//! What hooks look at, whatever it is, and reading their answers about it.
//!
//! Invariant: a wrong type or a missing verdict of a validator is a refusal, never a pass; the rules are one for messages,
//! turns and sessions. Deliberately no running of hooks here.

use serde_json::{Map, Value};

use super::binding::{HookForm, Side};

/// What an answer means.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer<S> {
    /// No objection, no change.
    Pass,
    /// The new value, and why.
    Mutate { value: Box<S>, reason: Option<String> },
    /// Refused, and why.
    Reject { reason: String },
    /// Not an answer.
    Malformed { message: String },
}

/// Something that a chain of hooks looks at.
pub(crate) trait Subject: Clone + Send + Sync {
    /// What it is called in a refusal: `message`, `turn`, `session`.
    fn noun(&self) -> &'static str;

    /// The method of its exchange.
    fn method(&self) -> &str;

    /// As JSON: what hooks of the plain forms get, and what patches are about.
    fn to_value(&self) -> Value;

    /// Whether it is an error, for `callOnError`.
    fn is_error(&self) -> bool {
        false
    }

    /// What a hook of nanobot's form gets.
    fn question(&self) -> Value;

    /// Whether an answer of nanobot's form may have this field beside `accept`, `mutated` and `reason`.
    fn knows(&self, field: &str) -> bool;

    /// What is wrong with the types of an accepting answer's own fields.
    fn check_types(&self, answer: &Map<String, Value>) -> Result<(), String> {
        let _ = answer;
        Ok(())
    }

    /// The value that an accepting answer of nanobot's form asks for: `Ok(None)` is no change, an error no answer. An answer
    /// that says `mutated: false` does not come here.
    fn asked_for(&self, side: Side, answer: &Map<String, Value>) -> Result<Option<Self>, String>;

    /// The new value as a hook of the plain form returns it.
    fn replaced(&self, side: Side, value: &Value) -> Result<Self, String>;

    /// Whether nothing changed.
    fn is_same(&self, other: &Self) -> bool;
}

/// The fields of every answer of nanobot's form.
const ENVELOPE: [&str; 3] = ["accept", "mutated", "reason"];

/// Reads the value that a hook returned; `None` means that it returned nothing.
pub(super) fn read<S: Subject>(form: HookForm, side: Side, current: &S, value: Option<Value>) -> Answer<S> {
    match (form, value) {
        (HookForm::Envelope { may_mutate: true } | HookForm::Mutate, None) => Answer::Pass,
        (HookForm::Envelope { may_mutate: false }, None) => {
            malformed("a validator (`!mutate:`) must return `accept`, it returned nothing")
        }
        (HookForm::Validate, None) => malformed("a validator must return {valid, reason?}, it returned nothing"),
        (HookForm::Envelope { may_mutate }, Some(Value::Object(answer))) => read_envelope(may_mutate, side, current, &answer),
        (HookForm::Mutate, Some(value @ Value::Object(_))) => changed(current, current.replaced(side, &value), None),
        (HookForm::Validate, Some(Value::Object(answer))) => match answer.get("valid") {
            Some(Value::Bool(true)) => Answer::Pass,
            Some(Value::Bool(false)) => Answer::Reject { reason: reason_of(&answer).unwrap_or_default() },
            _ => malformed("a validator must return `valid` as a boolean"),
        },
        (_, Some(other)) => malformed(&format!("a hook must return an object, it returned {}", type_of(&other))),
    }
}

fn read_envelope<S: Subject>(may_mutate: bool, side: Side, current: &S, answer: &Map<String, Value>) -> Answer<S> {
    match answer.get("accept") {
        Some(Value::Bool(true)) => {}
        Some(Value::Bool(false)) => return Answer::Reject { reason: reason_of(answer).unwrap_or_default() },
        // A misspelt `accept` must not pass for consent.
        None if may_mutate => match answer.keys().find(|field| !ENVELOPE.contains(&field.as_str()) && !current.knows(field)) {
            None => {}
            Some(field) => return malformed(&format!("it has no `accept`, and a field that hooks do not answer: {field:?}")),
        },
        None => return malformed("a validator (`!mutate:`) must return `accept`"),
        Some(_) => return malformed("`accept` must be a boolean"),
    }
    if answer.get("reason").is_some_and(|reason| !reason.is_string() && !reason.is_null()) {
        return malformed("`reason` must be text");
    }
    if let Err(problem) = current.check_types(answer) {
        return malformed(&problem);
    }
    match answer.get("mutated") {
        Some(Value::Bool(false)) => return Answer::Pass,
        None | Some(Value::Bool(true)) => {}
        Some(_) => return malformed("`mutated` must be a boolean"),
    }
    let reason = reason_of(answer);
    match current.asked_for(side, answer) {
        Ok(None) => Answer::Pass,
        // What a validator may not change at all is a refusal, well written or not.
        Ok(Some(_)) | Err(_) if !may_mutate => {
            Answer::Reject { reason: join(reason, "mutation not allowed by hook configuration, implicit rejection") }
        }
        Ok(Some(value)) => changed(current, Ok(value), reason),
        Err(problem) => malformed(&problem),
    }
}

fn changed<S: Subject>(current: &S, value: Result<S, String>, reason: Option<String>) -> Answer<S> {
    match value {
        Ok(value) if value.is_same(current) => Answer::Pass,
        Ok(value) => Answer::Mutate { value: Box::new(value), reason },
        Err(problem) => malformed(&problem),
    }
}

/// Numbers that a hook left alone keep their spelling, though a script's numbers cannot hold every digit of it.
pub(super) fn keep_digits(before: &Value, after: &mut Value) {
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

fn reason_of(answer: &Map<String, Value>) -> Option<String> {
    answer.get("reason").and_then(Value::as_str).filter(|reason| !reason.is_empty()).map(str::to_owned)
}

fn join(reason: Option<String>, text: &str) -> String {
    match reason {
        Some(reason) => format!("{reason}; {text}"),
        None => text.to_owned(),
    }
}

fn malformed<S>(message: &str) -> Answer<S> {
    Answer::Malformed { message: message.to_owned() }
}

/// A value's type in words, `a number`.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
