//! Deltas of messages, applied as Yao's client applies them; paths are relative to `props`.
//!
//! Invariant: a delta that cannot be applied changes nothing. Keys are data, `__proto__` included. Deliberately pure.

use serde_json::{Map, Value, json};

/// How a delta is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeltaAction {
    Append,
    Replace,
    Merge,
    Set,
}

impl DeltaAction {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Replace => "replace",
            Self::Merge => "merge",
            Self::Set => "set",
        }
    }
}

/// Furthest that a path may reach beyond the end of an array.
const MAX_ARRAY_GAP: usize = 1024;

/// Deepest path.
const MAX_DEPTH: usize = 64;

/// A path below `props`; a leading `props` is dropped.
pub(super) fn below_props(path: &str) -> &str {
    if path == "props" { "" } else { path.strip_prefix("props.").unwrap_or(path) }
}

/// Objects around a value, so that it is found at a path.
pub(super) fn nested(path: &str, value: Value) -> Value {
    if path.split('.').count() > MAX_DEPTH {
        return Value::Null;
    }
    path.rsplit('.').fold(value, |inner, key| {
        let mut object = Map::new();
        object.insert(key.to_owned(), inner);
        Value::Object(object)
    })
}

/// Applies a delta; `None` if there is no such place, in the message or in the delta.
pub(super) fn apply(props: &mut Value, delta: &Value, action: DeltaAction, path: &str) -> Option<()> {
    if path.is_empty() {
        whole(props, delta, action);
        return Some(());
    }
    if path.split('.').count() > MAX_DEPTH {
        return None;
    }
    let value = path.split('.').try_fold(delta, |at, segment| match at {
        Value::Object(map) => map.get(segment),
        Value::Array(items) => items.get(segment.parse::<usize>().ok()?),
        _ => None,
    })?;
    let slot = slot_at(props, path)?;
    match action {
        DeltaAction::Append => append(slot, value),
        DeltaAction::Replace | DeltaAction::Set => *slot = value.clone(),
        DeltaAction::Merge => merge(slot, value),
    }
    Some(())
}

fn whole(props: &mut Value, delta: &Value, action: DeltaAction) {
    match action {
        DeltaAction::Replace => *props = delta.clone(),
        DeltaAction::Merge => merge(props, delta),
        DeltaAction::Append | DeltaAction::Set => {
            if !props.is_object() {
                *props = json!({});
            }
            let (Value::Object(props), Value::Object(delta)) = (props, delta) else { return };
            for (key, value) in delta {
                let slot = props.entry(key.clone()).or_insert(Value::Null);
                if action == DeltaAction::Append { append(slot, value) } else { *slot = value.clone() }
            }
        }
    }
}

/// The value at a dotted path, with missing parents made; `None` if an index is far beyond the end.
fn slot_at<'a>(props: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut slot = props;
    for segment in path.split('.') {
        if let (true, Ok(index)) = (slot.is_array(), segment.parse::<usize>()) {
            let items = slot.as_array_mut()?;
            if index > items.len() + MAX_ARRAY_GAP {
                return None;
            }
            if items.len() <= index {
                items.resize(index + 1, Value::Null);
            }
            slot = items.get_mut(index)?;
        } else {
            if !slot.is_object() {
                *slot = json!({});
            }
            slot = slot.as_object_mut()?.entry(segment).or_insert(Value::Null);
        }
    }
    Some(slot)
}

fn append(slot: &mut Value, value: &Value) {
    match (slot, value) {
        (Value::String(text), Value::String(more)) => text.push_str(more),
        (Value::Array(items), Value::Array(more)) => items.extend(more.iter().cloned()),
        (Value::Array(items), more) => items.push(more.clone()),
        (slot, value) => *slot = value.clone(),
    }
}

fn merge(slot: &mut Value, value: &Value) {
    match (slot, value) {
        (Value::Object(target), Value::Object(source)) => {
            for (key, value) in source {
                merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        (slot, value) => *slot = value.clone(),
    }
}
