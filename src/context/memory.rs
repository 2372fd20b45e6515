//! A key-value space for scripts, with times to live on the host's clock.
//!
//! Invariant: a value whose time has come is gone for every operation. Deliberately in memory only, and no background
//! sweep: expired values leave when the space is next used.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom_boundary::clock::MonoNanos;
use serde_json::Value;

/// A key-value space. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    entries: Arc<Mutex<Entries>>,
    /// How long a value stays if nobody says.
    default_ttl: Option<Duration>,
}

/// A value and its end.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) value: Value,
    pub(super) until: Option<MonoNanos>,
}

/// What a space holds.
#[derive(Debug, Default)]
pub(super) struct Entries {
    pub(super) by_key: BTreeMap<String, Entry>,
    soonest: Option<MonoNanos>,
    /// The end of a value that is written now without a time to live.
    pub(super) default_until: Option<MonoNanos>,
}

impl Memory {
    /// A space whose values leave after `default_ttl` if nobody says otherwise.
    pub fn lasting(default_ttl: Duration) -> Self {
        Self { default_ttl: Some(default_ttl), ..Self::default() }
    }

    /// Writes a value that stays.
    pub fn keep(&self, now: MonoNanos, key: impl Into<String>, value: Value) {
        self.with(now, |entries| entries.put(key.into(), value, None));
    }

    /// What it holds at `now`, each value with its end.
    pub fn contents(&self, now: MonoNanos) -> BTreeMap<String, (Value, Option<MonoNanos>)> {
        self.with(now, |entries| {
            entries.by_key.iter().map(|(key, entry)| (key.clone(), (entry.value.clone(), entry.until))).collect()
        })
    }

    /// Runs `work` on what is alive at `now`.
    pub(super) fn with<T>(&self, now: MonoNanos, work: impl FnOnce(&mut Entries) -> T) -> T {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.expire(now);
        entries.default_until = self.default_ttl.map(|ttl| now.after(ttl));
        work(&mut entries)
    }
}

impl Entries {
    fn expire(&mut self, now: MonoNanos) {
        if self.soonest.is_none_or(|soonest| now < soonest) {
            return;
        }
        self.by_key.retain(|_, entry| entry.until.is_none_or(|until| now < until));
        self.soonest = self.by_key.values().filter_map(|entry| entry.until).min();
    }

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.by_key.get(key).map(|entry| &entry.value)
    }

    /// Writes a value; without an end it stays.
    pub(super) fn put(&mut self, key: String, value: Value, until: Option<MonoNanos>) -> Option<Value> {
        if let Some(until) = until {
            self.soonest = Some(self.soonest.map_or(until, |soonest| soonest.min(until)));
        }
        self.by_key.insert(key, Entry { value, until }).map(|old| old.value)
    }

    /// The place of a value, which keeps its end; a new one holds `first`.
    pub(super) fn slot(&mut self, key: &str, first: Value) -> &mut Value {
        let until = self.default_until;
        if let (false, Some(until)) = (self.by_key.contains_key(key), until) {
            self.soonest = Some(self.soonest.map_or(until, |soonest| soonest.min(until)));
        }
        &mut self.by_key.entry(key.to_owned()).or_insert(Entry { value: first, until }).value
    }
}
