//! The hooks as functions of this process, twins of those in `policy.js`, and as tools of an external server.
//!
//! Invariant: whatever stands behind a hook, it does the same. Deliberately no knowledge of chains.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use greenroom_boundary::isolate::{CallValue, IsolateError, JsException};
use serde_json::{Value, json};

use super::plan::{Does, Hook, World};
use super::plan_text::wrong_value;
use crate::support::{Native, json_value, result};

enum Answer {
    Value(Value),
    Throws(String),
    Never,
}

/// Puts the hook's id behind the trail of a message.
fn leave_mark(message: &mut Value, id: usize) {
    let at = if message.get("result").is_some() {
        &mut message["result"]["structuredContent"]
    } else if message.get("error").is_some() {
        &mut message["error"]["data"]
    } else {
        &mut message["params"]["arguments"]
    };
    match at["trail"].as_array_mut() {
        Some(trail) => trail.push(json!(id)),
        None => at["trail"] = json!([id]),
    }
}

fn answer(hook: &Hook, mut envelope: Value) -> Answer {
    Answer::Value(match hook.does {
        Does::Accepts => json!({"accept": true}),
        Does::SaysEmpty => json!({}),
        Does::ChangesInSecret => {
            leave_mark(&mut envelope["message"], hook.id);
            envelope
        }
        Does::Mutates => {
            leave_mark(&mut envelope["message"], hook.id);
            envelope["mutated"] = json!(true);
            envelope["reason"] = json!(format!("h{}", hook.id));
            envelope
        }
        Does::Rejects => json!({"accept": false, "reason": "no"}),
        Does::Throws => return Answer::Throws(format!("boom {}", hook.id)),
        Does::Hangs => return Answer::Never,
        Does::Answers(which) => wrong_value(which),
    })
}

/// As a native function.
pub(super) fn native(hook: Hook) -> Native {
    Box::new(move |call| {
        let envelope: Value = serde_json::from_str(call.args[0].get()).unwrap();
        Box::pin(async move {
            call.ctx.wall_deadline(Duration::from_millis(hook.latency_ms)).await;
            match answer(&hook, envelope) {
                Answer::Value(value) => Ok(json_value(&value)),
                Answer::Throws(message) => Err(exception("RangeError", &message)),
                Answer::Never => pending().await,
            }
        })
    })
}

/// An exception of a class.
pub(super) fn exception(class: &str, message: &str) -> IsolateError {
    let (class, message) = (class.to_owned(), message.to_owned());
    IsolateError::Js(JsException { class, message, code: None, frames: Vec::new(), cause: None })
}

/// A function that returns this value.
pub(super) fn constant(value: Value) -> Native {
    Box::new(move |_| {
        let value: CallValue = json_value(&value);
        Box::pin(async move { Ok(value) })
    })
}

/// As tools of an external server: what it answers to a request, and after which wait.
pub(super) fn remote(world: &World) -> impl Fn(&str, &Value) -> (Duration, Vec<String>) + Send + Sync + 'static {
    let hooks: BTreeMap<String, Hook> = world.hooks.iter().map(|hook| (format!("h{}", hook.id), *hook)).collect();
    move |_, params| {
        let Some(hook) = params["name"].as_str().and_then(|name| hooks.get(name)) else {
            return (Duration::ZERO, vec![result(r#"{"tools":[]}"#)]);
        };
        let frames = match answer(hook, params["arguments"].clone()) {
            Answer::Value(value) => {
                let mut whole = json!({"content": [{"type": "text", "text": value.to_string()}]});
                if value.is_object() {
                    whole["structuredContent"] = value;
                }
                vec![result(&whole.to_string())]
            }
            Answer::Throws(message) => {
                let text = json!({"content": [{"type": "text", "text": format!("RangeError: {message}")}], "isError": true});
                vec![result(&text.to_string())]
            }
            Answer::Never => Vec::new(),
        };
        (Duration::from_millis(hook.latency_ms), frames)
    }
}
