//! `ctx.memory`: key-value spaces for scripts.
//!
//! Invariant: counters are exact over the whole range of 64-bit integers; a wrong type is an error, never a silent zero.
//! Deliberately no TTL and no lists yet.

use greenroom_boundary::isolate::OpError;
use serde_json::{Value, json};

use super::table::MemoryVerb;
use crate::agents::Memory;

/// Largest integer that JavaScript numbers hold exactly.
const MAX_SAFE: i64 = (1 << 53) - 1;

pub(super) fn run(memory: &Memory, verb: MemoryVerb, path: &str, args: &[Value]) -> Result<Value, OpError> {
    let key = || match args.first() {
        Some(Value::String(key)) => Ok(key.clone()),
        other => Err(OpError::bad_argument(format!("ctx.{path}: key must be a string, not {}", other.unwrap_or(&Value::Null)))),
    };
    match verb {
        MemoryVerb::Get => {
            let key = key()?;
            Ok(memory.with(|entries| entries.get(&key).cloned()).unwrap_or_default())
        }
        MemoryVerb::Set => {
            let key = key()?;
            memory.with(|entries| entries.insert(key, args.get(1).cloned().unwrap_or_default()));
            Ok(Value::Null)
        }
        MemoryVerb::Del => {
            let key = key()?;
            memory.with(|entries| entries.retain(|name, _| !wildcard(&key, name)));
            Ok(Value::Null)
        }
        MemoryVerb::Has => {
            let key = key()?;
            Ok(json!(memory.with(|entries| entries.contains_key(&key))))
        }
        MemoryVerb::Keys => Ok(json!(memory.with(|entries| entries.keys().cloned().collect::<Vec<_>>()))),
        MemoryVerb::Len => Ok(json!(memory.with(|entries| entries.len()))),
        MemoryVerb::Clear => {
            memory.with(std::collections::BTreeMap::clear);
            Ok(Value::Null)
        }
        MemoryVerb::Incr => count(memory, path, &key()?, delta(path, args)?),
        MemoryVerb::Decr => count(memory, path, &key()?, -delta(path, args)?),
        MemoryVerb::GetDel => {
            let key = key()?;
            Ok(memory.with(|entries| entries.remove(&key)).unwrap_or_default())
        }
    }
}

fn delta(path: &str, args: &[Value]) -> Result<i64, OpError> {
    match args.get(1) {
        None | Some(Value::Null) => Ok(1),
        Some(value) => integer(value)
            .ok_or_else(|| OpError::bad_argument(format!("ctx.{path}: delta must be a whole number, not {value}"))),
    }
}

/// A whole number of JavaScript's safe range; `3.0` is one.
fn integer(value: &Value) -> Option<i64> {
    let whole = value
        .as_i64()
        .or_else(|| value.as_f64().filter(|f| f.fract() == 0.0 && f.abs() <= MAX_SAFE as f64).map(|f| f as i64))?;
    (whole.abs() <= MAX_SAFE).then_some(whole)
}

fn count(memory: &Memory, path: &str, key: &str, delta: i64) -> Result<Value, OpError> {
    memory.with(|entries| {
        let current = match entries.get(key) {
            None | Some(Value::Null) => 0,
            Some(value) => integer(value)
                .ok_or_else(|| OpError::bad_argument(format!("ctx.{path}: {key:?} holds {value}, which is no counter")))?,
        };
        let next = current.checked_add(delta).filter(|next| next.abs() <= MAX_SAFE).ok_or_else(|| {
            OpError::new("ERR_COUNTER_RANGE", format!("ctx.{path}: {key:?} would leave the range of exact numbers"))
        })?;
        entries.insert(key.to_owned(), json!(next));
        Ok(json!(next))
    })
}

/// Whether `name` matches a key in which `*` stands for any text.
fn wildcard(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
