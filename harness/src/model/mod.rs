//! The scenario model: typed, with a published JSON Schema.
//!
//! Invariant: one type per thing that a scenario can say, each refusing what it does not know.

mod address;
mod drivers;
mod expect;
mod faults;
mod host_spec;
mod invariants;
mod located;
mod names;
mod scenario;
mod scripts;
mod steps;

pub use address::{Phase, Where};
pub use drivers::{
    CliDriver, ClockDriver, DriversSpec, EgressDriver, IdsDriver, IsolateDriver, Live, LlmDriver, McpDriver, NoOptions, OnMiss,
    Record, Replay, SearchDriver, Unused, VirtualClockSpec,
};
pub use expect::{Budget, Check, CountBound, CountCheck, Expectation, HooksCheck, ReplyCheck, TimeBound, TraceMode};
pub use faults::{Fault, FaultAction, FaultError};
pub use greenroom_mocks::duration::Duration;
pub use greenroom_mocks::pattern::Pattern;
pub use host_spec::*;
pub use invariants::Invariant;
pub use located::Located;
pub use names::{BoundaryGlob, Format1, NameError, ScenarioId, Tag, True, glob};
pub use scenario::{KnownFailing, Limits, Scenario, schema};
pub use scripts::{CliScript, ClientScript, EgressScript, IsolateScript, LlmScript, McpScript, SearchScript};
pub use steps::{Call, Send, Step, Tell};

/// Checks that exactly one of the named parts is given.
fn exactly_one(what: &str, parts: &[(&str, bool)]) -> Result<(), String> {
    let names = |names: Vec<&str>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let given: Vec<&str> = parts.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    match given.len() {
        1 => Ok(()),
        0 => Err(format!("{what} needs one of {}", names(parts.iter().map(|(name, _)| *name).collect()))),
        _ => Err(format!("{what} takes only one of {}", names(given))),
    }
}
