//! `ctx.memory`: values and counters.
//!
//! Invariant: counters are exact over the whole range of safe integers; a wrong type is an error, never a silent zero. An
//! operation that fails changes nothing. Times to live are milliseconds. Deliberately no sweep: what is over leaves when its space is next used.

use std::time::Duration;

use greenroom_boundary::clock::MonoNanos;
use greenroom_boundary::isolate::OpError;
use serde_json::{Value, json};

use super::arguments::{Arguments, MAX_SAFE, shown, whole};
use super::memory::{Entries, Memory};
use super::memory_lists;
use super::verbs::MemoryVerb;

pub(super) fn run(memory: &Memory, now: MonoNanos, verb: MemoryVerb, args: &Arguments) -> Result<Value, OpError> {
    match verb {
        MemoryVerb::Keys => Ok(json!(memory.with(now, |entries| entries.by_key.keys().cloned().collect::<Vec<_>>()))),
        MemoryVerb::Len => Ok(json!(memory.with(now, |entries| entries.by_key.len()))),
        MemoryVerb::Clear => {
            memory.with(now, |entries| entries.by_key.clear());
            Ok(Value::Null)
        }
        _ => {
            let key = args.text(0, "key")?;
            memory.with(now, |entries| at_key(entries, now, verb, key, args))
        }
    }
}

fn at_key(entries: &mut Entries, now: MonoNanos, verb: MemoryVerb, key: &str, args: &Arguments) -> Result<Value, OpError> {
    match verb {
        MemoryVerb::Get => Ok(entries.get(key).cloned().unwrap_or_default()),
        MemoryVerb::Set => {
            let until = time_to_live(args)?.map_or(entries.default_until, |ttl| Some(now.after(ttl)));
            entries.put(key.to_owned(), args.any(1).clone(), until);
            Ok(Value::Null)
        }
        MemoryVerb::Del => {
            entries.by_key.retain(|name, _| !wildcard(key, name));
            Ok(Value::Null)
        }
        MemoryVerb::Has => Ok(json!(entries.by_key.contains_key(key))),
        MemoryVerb::Incr => count(entries, args, key, delta(args)?),
        MemoryVerb::Decr => count(entries, args, key, -delta(args)?),
        MemoryVerb::GetDel => Ok(entries.by_key.remove(key).map(|entry| entry.value).unwrap_or_default()),
        MemoryVerb::GetSet => Ok(entries.put(key.to_owned(), args.any(1).clone(), entries.default_until).unwrap_or_default()),
        _ => memory_lists::run(entries, verb, key, args),
    }
}

/// Absent, zero and less mean the default of the space (Yao).
fn time_to_live(args: &Arguments) -> Result<Option<Duration>, OpError> {
    let value = args.any(2);
    if value.is_null() {
        return Ok(None);
    }
    let millis = value.as_f64().filter(|millis| millis.is_finite());
    let millis = millis.ok_or_else(|| args.wrong("ttlMs", "a number of milliseconds", value))?;
    Ok((millis > 0.0).then(|| Duration::try_from_secs_f64(millis / 1000.0).unwrap_or(Duration::MAX)))
}

fn delta(args: &Arguments) -> Result<i64, OpError> {
    Ok(args.optional_whole(1, "delta")?.unwrap_or(1))
}

fn count(entries: &mut Entries, args: &Arguments, key: &str, delta: i64) -> Result<Value, OpError> {
    let what = &args.what;
    let current = match entries.get(key) {
        None | Some(Value::Null) => 0,
        Some(value) => whole(value)
            .ok_or_else(|| OpError::bad_argument(format!("{what}: {key:?} holds {}, which is no counter", shown(value))))?,
    };
    let next = current
        .checked_add(delta)
        .filter(|next| next.abs() <= MAX_SAFE)
        .ok_or_else(|| OpError::new("ERR_COUNTER_RANGE", format!("{what}: {key:?} would leave the range of exact numbers")))?;
    *entries.slot(key, Value::Null) = json!(next);
    Ok(json!(next))
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
