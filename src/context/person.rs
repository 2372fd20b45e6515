//! Whom a turn is for: `ctx.authorized`, and the memory of the person and the team.
//!
//! Invariant: what a person keeps is reached by the person's id alone, from any conversation. Deliberately no proof of who it
//! is: whoever starts the turn vouches for it, and the host's own fronts take no such claim from a client.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};

use super::Memory;

/// The key of a turn's metadata that says whom it is for.
pub(crate) const AUTHORIZED: &str = "authorized";

/// Whom a turn is for.
#[derive(Clone, Debug, Default)]
pub struct Person {
    /// `ctx.authorized`: `user_id`, `team_id` and what else is known.
    pub authorized: Map<String, Value>,
    /// `ctx.memory.user`, if `user_id` is known.
    pub user_memory: Option<Memory>,
    /// `ctx.memory.team`, if `team_id` is known.
    pub team_memory: Option<Memory>,
}

/// Everyone's memory.
#[derive(Debug, Default)]
pub struct People(Mutex<BTreeMap<(&'static str, String), Memory>>);

impl People {
    /// The person that a turn's metadata names; what named it leaves the metadata.
    pub fn of(&self, metadata: &mut Map<String, Value>) -> Person {
        if !metadata.get(AUTHORIZED).is_some_and(Value::is_object) {
            return Person::default();
        }
        let Some(Value::Object(authorized)) = metadata.shift_remove(AUTHORIZED) else { return Person::default() };
        let memory = |kind: &'static str| {
            let id = authorized.get(kind)?.as_str().filter(|id| !id.is_empty())?;
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Some(known.entry((kind, id.to_owned())).or_default().clone())
        };
        Person { user_memory: memory("user_id"), team_memory: memory("team_id"), authorized }
    }
}
