//! The address of an event: what `at`, `await`, `trace`, `never`, `count` and `hooks.for` share.
//!
//! Invariant: every key that is given must hold; `nth` counts among the events for which all the others hold.
//! Deliberately no evaluation here beyond the kind of an event: expectations, faults and waits share one evaluator.

use std::num::NonZeroU32;

use greenroom_boundary::trace::{EventKind, Outcome};
use greenroom_mocks::pattern::Pattern;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::BoundaryGlob;

/// Which events are meant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Where {
    /// Where it happened: `mcp.weather`, `llm.*`, `host`.
    pub boundary: BoundaryGlob,
    /// `tools/call`, `notifications/cancelled`, … or a warning's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Kind of event. Absent means the start of something, not a chunk, an answer, a hook or a fault; in `never`, every kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The agent that acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assistant: Option<String>,
    /// The hook that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// Only the n-th such event, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<NonZeroU32>,
    /// What its body must look like.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub body: Option<Pattern>,
    /// How the exchange ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "outcome_schema")]
    pub outcome: Option<Outcome>,
}

/// The schema of [`Outcome`], whose crate knows no schemas.
pub(super) fn outcome_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["ok", "error", "cancelled", "timeout", "lost"] })
}

/// Kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The host starts an exchange, after every request hook.
    Request,
    /// An exchange ends, before any response hook.
    Response,
    /// A piece of a streamed answer.
    Chunk,
    /// A one-way message.
    Notification,
    /// A hook decided.
    Hook,
    /// The host noticed something that no caller hears of.
    Warning,
    /// Something from outside reached the host.
    Stimulus,
    /// The host answered it.
    StimulusEnd,
    /// Work went to another agent.
    Delegate,
    /// A message for the client's stream.
    Output,
    /// A line that a script wrote to its console.
    Console,
    /// An injected fault fired.
    Fault,
}

impl Phase {
    /// The kind of an event.
    pub fn of(event: &EventKind) -> Self {
        match event {
            EventKind::Stimulus { .. } => Self::Stimulus,
            EventKind::StimulusEnd { .. } => Self::StimulusEnd,
            EventKind::Request { .. } => Self::Request,
            EventKind::Chunk { .. } => Self::Chunk,
            EventKind::Response { .. } => Self::Response,
            EventKind::Notification { .. } => Self::Notification,
            EventKind::Hook { .. } => Self::Hook,
            EventKind::Delegate { .. } => Self::Delegate,
            EventKind::Output { .. } => Self::Output,
            EventKind::Console { .. } => Self::Console,
            EventKind::Fault { .. } => Self::Fault,
            EventKind::Warning { .. } => Self::Warning,
        }
    }
}
