//! The names of the laws that a scenario can ask for.
//!
//! Invariant: the list is closed; a name stands here only if there is a judge for it.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A law that holds for every run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Invariant {
    /// Each request ends exactly once: answered, cancelled, timed out or lost.
    EveryRequestAnswered,
    /// The model sees tool results in the order of its calls, one for each.
    ToolResultsInCallOrder,
    /// Every scripted answer was used.
    ScriptFullyConsumed,
    /// Every recorded exchange was used.
    CassetteFullyConsumed,
    /// No exchange is open when the run ends.
    SpansClosed,
    /// A tool that is not idempotent is not called again with the same arguments for the same tool call.
    SideEffectsAtMostOnce,
    /// An agent calls only the tools that it was given.
    DelegateSeesOnlyItsOwnTools,
    /// No chain of delegation comes back to an agent that is in it.
    DelegationAcyclic,
    /// The host has no task, connection or handle left after its shutdown.
    NothingLeftOver,
}

impl Invariant {
    /// Every law.
    pub const ALL: [Self; 9] = [
        Self::EveryRequestAnswered,
        Self::ToolResultsInCallOrder,
        Self::ScriptFullyConsumed,
        Self::CassetteFullyConsumed,
        Self::SpansClosed,
        Self::SideEffectsAtMostOnce,
        Self::DelegateSeesOnlyItsOwnTools,
        Self::DelegationAcyclic,
        Self::NothingLeftOver,
    ];

    /// The name in a scenario.
    pub fn name(self) -> &'static str {
        match self {
            Self::EveryRequestAnswered => "every-request-answered",
            Self::ToolResultsInCallOrder => "tool-results-in-call-order",
            Self::ScriptFullyConsumed => "script-fully-consumed",
            Self::CassetteFullyConsumed => "cassette-fully-consumed",
            Self::SpansClosed => "spans-closed",
            Self::SideEffectsAtMostOnce => "side-effects-at-most-once",
            Self::DelegateSeesOnlyItsOwnTools => "delegate-sees-only-its-own-tools",
            Self::DelegationAcyclic => "delegation-acyclic",
            Self::NothingLeftOver => "nothing-left-over",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
