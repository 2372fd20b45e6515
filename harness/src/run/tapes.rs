//! The cassettes of a case: opened before it, settled after it.
//!
//! Invariant: one cassette is either replayed or recorded in a run, by all the boundaries that name it. Deliberately no
//! matching: that is the replayer's.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use greenroom_boundary::trace::TraceSink;
use greenroom_boundary::{Credentials, Entropy};

use super::rig::{RigError, StageClock};
use super::stage::Trouble;
use super::{RunOptions, Verdict};
use crate::cassette::Status;
use crate::model::{CliDriver, LlmDriver, McpDriver, Scenario, Unused};
use crate::record::{HeadSpec, Recording, RecordingTap};
use crate::replay::{Mode, Replay, ReplayOptions};
use crate::trace::TraceLog;

/// Most misses that a report shows: the first explains the others.
const SHOWN_MISSES: usize = 3;

enum Tape {
    Replay { replay: Arc<Replay>, unused: Unused },
    Record(Arc<Recording>),
}

/// What a boundary wants from a cassette.
struct Use<'s> {
    lane: String,
    cassette: &'s str,
    records: bool,
    unused: Unused,
}

/// What the cassettes say at the end.
#[derive(Default)]
pub(super) struct Settled {
    /// Recorded exchanges that nobody asked for; absent if nothing is replayed.
    pub(super) unused: Option<Vec<String>>,
    pub(super) troubles: Vec<Trouble>,
    pub(super) notes: Vec<String>,
}

/// The open cassettes, by name.
pub(super) struct Tapes(BTreeMap<String, Tape>);

/// What opening them takes.
pub(super) struct TapeWorld<'w> {
    pub(super) base: &'w Path,
    pub(super) clock: &'w StageClock,
    pub(super) credentials: &'w Credentials,
    pub(super) entropy: &'w dyn Entropy,
    pub(super) seed: u64,
    pub(super) options: &'w RunOptions,
}

impl Tapes {
    pub(super) fn open(scenario: &Scenario, world: &TapeWorld<'_>) -> Result<Self, RigError> {
        let all = uses(scenario);
        let mut tapes = BTreeMap::new();
        for one in &all {
            if tapes.contains_key(one.cassette) {
                continue;
            }
            let same: Vec<&Use<'_>> = all.iter().filter(|other| other.cassette == one.cassette).collect();
            let record = world.options.record && same.iter().any(|other| other.records);
            if record && same.iter().any(|other| !other.records) {
                let message = format!("{} is both replayed and recorded; use one cassette for each", one.cassette);
                return Err(RigError::new("CASSETTE_BOTH", message));
            }
            let tape = if record { start(scenario, one, world)? } else { load(one, &same, world)? };
            tapes.insert(one.cassette.to_owned(), tape);
        }
        Ok(Self(tapes))
    }

    pub(super) fn replay(&self, cassette: &str) -> Option<&Arc<Replay>> {
        match self.0.get(cassette)? {
            Tape::Replay { replay, .. } => Some(replay),
            Tape::Record(_) => None,
        }
    }

    pub(super) fn recording(&self, cassette: &str) -> Option<&Arc<Recording>> {
        match self.0.get(cassette)? {
            Tape::Record(recording) => Some(recording),
            Tape::Replay { .. } => None,
        }
    }

    /// The log, with every recording listening in front of it.
    pub(super) fn sink(&self, log: &TraceLog) -> Arc<dyn TraceSink> {
        let mut sink: Arc<dyn TraceSink> = Arc::new(log.clone());
        for tape in self.0.values() {
            if let Tape::Record(recording) = tape {
                sink = Arc::new(RecordingTap::new(sink, recording.clone()));
            }
        }
        sink
    }

    /// Seals recordings and asks replays what went wrong.
    pub(super) fn settle(&self) -> Settled {
        let mut settled = Settled::default();
        for (name, tape) in &self.0 {
            match tape {
                Tape::Record(recording) => seal(name, recording, &mut settled),
                Tape::Replay { replay, unused } => faithful(name, replay, *unused, &mut settled),
            }
        }
        settled
    }
}

fn uses(scenario: &Scenario) -> Vec<Use<'_>> {
    let mut all = Vec::new();
    let mut add = |lane: String, cassette, records, unused| all.push(Use { lane, cassette, records, unused });
    for (name, driver) in &scenario.drivers.llm {
        match driver {
            LlmDriver::Replay(replay) => add(format!("llm.{name}"), replay.cassette.as_str(), false, replay.unused),
            LlmDriver::Record(record) => add(format!("llm.{name}"), &record.cassette, true, Unused::Fail),
            _ => {}
        }
    }
    for (name, driver) in &scenario.drivers.mcp {
        match driver {
            McpDriver::Replay(replay) => add(format!("mcp.{name}"), replay.cassette.as_str(), false, replay.unused),
            McpDriver::Record(record) => add(format!("mcp.{name}"), &record.cassette, true, Unused::Fail),
            _ => {}
        }
    }
    for driver in scenario.drivers.cli.values() {
        // The recorder names these lanes after the programs.
        match driver {
            CliDriver::Replay(replay) => add("cli.*".to_owned(), replay.cassette.as_str(), false, replay.unused),
            CliDriver::Record(record) => add("cli.*".to_owned(), &record.cassette, true, Unused::Fail),
            _ => {}
        }
    }
    all
}

fn start(scenario: &Scenario, one: &Use<'_>, world: &TapeWorld<'_>) -> Result<Tape, RigError> {
    let path = world.base.join(one.cassette);
    let spec = scenario.host.policy.as_ref().and_then(|policy| policy.spec.clone()).unwrap_or_default();
    let head = HeadSpec { seed: world.seed, spec, ..HeadSpec::default() };
    Recording::start(&path, head, world.clock.driver(), world.entropy, world.credentials.clone(), None)
        .map(Tape::Record)
        .map_err(|error| RigError::new(error.code(), error.to_string()))
}

fn load(one: &Use<'_>, same: &[&Use<'_>], world: &TapeWorld<'_>) -> Result<Tape, RigError> {
    let path = world.base.join(one.cassette);
    if one.records && !path.exists() {
        let message = format!("there is no {} yet; `greenroom record` makes it from the live driver", path.display());
        return Err(RigError::new("CASSETTE_MISSING", message));
    }
    let clock = match world.clock {
        StageClock::Virtual(clock) => Some(clock.clone()),
        StageClock::System(_) => None,
    };
    let options = ReplayOptions {
        mode: Mode::Strict,
        lanes: same.iter().map(|other| other.lane.clone()).collect(),
        stimuli: false,
        clock,
        paced: false,
        credentials: world.credentials.clone(),
    };
    let unused = same.iter().map(|other| other.unused).find(|unused| *unused == Unused::Fail).unwrap_or(one.unused);
    Replay::load(&path, options)
        .map(|replay| Tape::Replay { replay, unused })
        .map_err(|error| RigError::new(error.code(), format!("{}: {error}", path.display())))
}

fn seal(name: &str, recording: &Recording, settled: &mut Settled) {
    match recording.seal() {
        Ok(report) => settled.notes.push(format!("recorded {} events to {}", report.events, report.path.display())),
        Err(error) => settled.troubles.push(Trouble {
            verdict: Verdict::Error,
            code: error.code(),
            line: 1,
            what: format!("cassette {name} to be sealed"),
            message: error.to_string(),
        }),
    }
}

fn faithful(name: &str, replay: &Replay, policy: Unused, settled: &mut Settled) {
    if replay.status() != Status::Complete {
        settled.notes.push(format!("cassette {name} was not sealed: its recording broke off"));
    }
    let problems = replay.problems();
    let miss = |code, what: String, message| Trouble { verdict: Verdict::Miss, code, line: 1, what, message };
    for problem in problems.iter().take(SHOWN_MISSES) {
        settled.troubles.push(miss(problem.code(), format!("every exchange to be in cassette {name}"), problem.to_string()));
    }
    if problems.len() > SHOWN_MISSES {
        settled.notes.push(format!("cassette {name}: {} more misses", problems.len() - SHOWN_MISSES));
    }
    let unused: Vec<String> = replay.unused().iter().map(|unused| format!("{name} {unused}")).collect();
    match policy {
        _ if unused.is_empty() => {}
        // With misses, what is left over is their consequence.
        Unused::Fail if problems.is_empty() => {
            let what = format!("every exchange of cassette {name} to happen again");
            settled.troubles.push(miss("CASSETTE_UNUSED", what, unused.join("\n")));
        }
        Unused::Fail | Unused::Allow => {}
        Unused::Warn => settled.notes.extend(unused.iter().cloned()),
    }
    settled.unused.get_or_insert_default().extend(unused);
}
