//! A scenario file, format 1.
//!
//! Invariant: the type is the format: what it does not name is an error, and the published JSON Schema is made from it.
//! Deliberately no reading here (`load`), and no defaults that depend on a run.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use greenroom_mocks::duration::Duration;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::drivers::is_default;
use super::{DriversSpec, Expectation, Fault, Format1, HostSpec, Located, ScenarioId, Step, Tag};

/// A scenario: a host, what stands around it, what happens to it, and what must be seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Version of the format.
    pub scenario: Format1,
    /// Its id, unique in a suite: `hooks/metric-only`.
    pub id: ScenarioId,
    /// What it shows, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Words to select it by.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Tag>,
    /// Seed of ids, random numbers and schedules (default 0).
    #[serde(default, skip_serializing_if = "is_default")]
    pub seed: u64,
    /// When to give up.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: Limits,
    /// One case for each combination of these values, used as `${matrix.NAME}`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "matrix_schema")]
    pub matrix: BTreeMap<String, Vec<Value>>,
    /// The host under test.
    #[serde(default)]
    pub host: HostSpec,
    /// What stands behind its boundaries.
    #[serde(default)]
    pub drivers: DriversSpec,
    /// What is made to go wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Located<Fault>>,
    /// What happens to the host, in order.
    #[schemars(length(min = 1))]
    pub run: Vec<Located<Step>>,
    /// What the trace must show at the end.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<Located<Expectation>>,
    /// The scenario is known to fail; that it passes is then a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_failing: Option<KnownFailing>,
}

fn matrix_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "additionalProperties": { "type": "array", "minItems": 1 }
    })
}

/// When to give a run up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Time on the scenario's clock (default `1h`).
    pub r#virtual: Duration,
    /// Real time (default `60s`).
    pub wall: Duration,
    /// Events in the trace (default 100000).
    pub events: NonZeroU64,
}

impl Default for Limits {
    fn default() -> Self {
        const EVENTS: NonZeroU64 = NonZeroU64::new(100_000).expect("the number is not zero");
        Self { r#virtual: Duration::from_nanos(3_600_000_000_000), wall: Duration::from_nanos(60_000_000_000), events: EVENTS }
    }
}

/// Why a scenario fails for now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KnownFailing {
    /// Why.
    pub reason: String,
    /// Where it is followed up.
    pub issue: String,
}

impl Scenario {
    /// Name of the turn (or call of a client) that a step of `run` starts, by the step's index: `as`, else `t1`, `t2`, … by
    /// its place among them. None if that step starts none.
    pub fn turn_name(&self, step: usize) -> Option<String> {
        let (Step::Send { name, .. } | Step::Call { name, .. }) = &self.run.get(step)?.value else { return None };
        let starts = |step: &&Located<Step>| matches!(step.value, Step::Send { .. } | Step::Call { .. });
        let place = self.run[..=step].iter().filter(starts).count();
        Some(name.clone().unwrap_or_else(|| format!("t{place}")))
    }

    /// Names of all its turns, in order.
    pub fn turn_names(&self) -> Vec<String> {
        (0..self.run.len()).filter_map(|step| self.turn_name(step)).collect()
    }
}

/// The JSON Schema of a scenario file, as `scenarios/scenario.schema.json` holds it.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().into_generator();
    let mut schema = generator.into_root_schema_for::<Scenario>();
    schema.insert("title".to_owned(), "Scenario file, format 1".into());
    schema.to_value()
}
