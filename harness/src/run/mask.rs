//! Takes registered secrets out of everything that a run shows.
//!
//! Invariant: what leaves a run has passed here. Values are masked inside JSON, so that no escape hides a secret.
//! Deliberately no detectors: only what the host registered is known to be secret.

use greenroom_boundary::Credentials;
use greenroom_boundary::trace::TraceEvent;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The events with every secret replaced.
pub(super) fn events(events: Vec<TraceEvent>, credentials: &Credentials) -> Vec<TraceEvent> {
    if credentials.entries().is_empty() {
        return events;
    }
    events.into_iter().map(|event| masked(event, credentials)).collect()
}

/// The value with every secret in its texts replaced; a value that cannot be rebuilt is kept out of sight by its caller.
pub(super) fn masked<T: Serialize + DeserializeOwned>(value: T, credentials: &Credentials) -> T {
    let rebuilt = serde_json::to_value(&value).ok().and_then(|mut json| {
        walk(&mut json, credentials);
        serde_json::from_value(json).ok()
    });
    rebuilt.unwrap_or(value)
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
