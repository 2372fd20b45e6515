//! Takes registered secrets out of everything that a run shows.
//!
//! Invariant: what leaves a run has passed here. Values are masked inside JSON, so that no escape hides a secret.
//! Deliberately no detectors: only what the host registered is known to be secret.

use greenroom_boundary::trace::{EventKind, Outcome, TraceEvent};
use greenroom_boundary::{Credentials, Scope};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::host::{TurnError, TurnReply};

/// The events with every secret replaced.
pub(super) fn events(events: Vec<TraceEvent>, credentials: &Credentials) -> Vec<TraceEvent> {
    if credentials.entries().is_empty() {
        return events;
    }
    events.into_iter().map(|event| masked(&event, credentials).unwrap_or_else(|| withheld(&event))).collect()
}

/// A turn's reply with every secret replaced.
pub(super) fn reply(reply: &TurnReply, credentials: &Credentials) -> TurnReply {
    masked(reply, credentials).unwrap_or_else(|| {
        let error = TurnError { code: WITHHELD.to_owned(), message: "a secret stands where it cannot be masked".to_owned() };
        TurnReply { outcome: Outcome::Error, text: String::new(), data: Value::Null, error: Some(error) }
    })
}

/// Stands for what cannot be shown.
const WITHHELD: &str = "MASK_WITHHELD";

/// The place of an event that has a secret where only certain words may stand, such as its phase.
fn withheld(event: &TraceEvent) -> TraceEvent {
    let kind = EventKind::Warning {
        boundary: "host".to_owned(),
        method: "event_withheld".to_owned(),
        body: json!({"code": WITHHELD}),
    };
    TraceEvent { seq: event.seq, vt: event.vt, scope: Scope::default(), agent: None, kind }
}

/// The value with every secret in its texts replaced; `None` if it is no such value any more.
fn masked<T: Serialize + DeserializeOwned>(value: &T, credentials: &Credentials) -> Option<T> {
    let mut json = serde_json::to_value(value).ok()?;
    walk(&mut json, credentials);
    serde_json::from_value(json).ok()
}

fn walk(value: &mut Value, credentials: &Credentials) {
    match value {
        Value::String(text) => *text = credentials.mask(text),
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, credentials)),
        Value::Object(map) => {
            *map = std::mem::take(map)
                .into_iter()
                .map(|(key, mut item)| {
                    walk(&mut item, credentials);
                    (credentials.mask(&key), item)
                })
                .collect();
        }
        _ => {}
    }
}
