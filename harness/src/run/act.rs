//! One case from its drivers to its last event, on the thread that calls it.
//!
//! Invariant: the host is always shut down, whatever happened; limits on time and events hold. Deliberately no verdict and
//! no files.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::trace::TraceEvent;
use greenroom_boundary::{CancellationToken, Credentials};

use super::case::base;
use super::mishaps;
use super::rig::{self, Rig, StageClock};
use super::stage::{MidRun, Stage, Trouble};
use super::{RunOptions, Verdict};
use crate::expect::Facts;
use crate::host::{HostFactory, Leftovers, TurnReply};
use crate::load::ScenarioCase;
use crate::trace::TraceLog;

/// What a case left behind.
pub(super) struct Act {
    pub(super) events: Vec<TraceEvent>,
    pub(super) replies: BTreeMap<String, TurnReply>,
    pub(super) facts: Facts,
    pub(super) mid_run: Vec<MidRun>,
    pub(super) troubles: Vec<Trouble>,
    /// Every step was played; else the end of the run says nothing about the scenario.
    pub(super) played: bool,
    pub(super) notes: Vec<String>,
    pub(super) credentials: Credentials,
}

impl Act {
    fn failed(trouble: Trouble, credentials: Credentials) -> Self {
        Self {
            events: Vec::new(),
            replies: BTreeMap::new(),
            facts: Facts::default(),
            mid_run: Vec::new(),
            troubles: vec![trouble],
            played: false,
            notes: Vec::new(),
            credentials,
        }
    }
}

fn set_up(code: &'static str, what: &str, message: impl Into<String>) -> Trouble {
    Trouble { verdict: Verdict::Error, code, line: 1, what: what.to_owned(), message: message.into() }
}

/// Runs the case to its end, or until `abandon` is cancelled.
pub(super) fn perform(
    case: &ScenarioCase,
    factory: &dyn HostFactory,
    seed: u64,
    log: &TraceLog,
    abandon: &CancellationToken,
    credentials: &Credentials,
    options: &RunOptions,
) -> Act {
    let made = rig::clock(&case.scenario, seed, options).and_then(|clock| {
        let rig = rig::build(&case.scenario, base(case), seed, &clock, log, credentials, options)?;
        Ok((clock, rig))
    });
    let (clock, rig) = match made {
        Ok(made) => made,
        Err(error) => {
            let trouble = set_up(error.code, "the drivers of the scenario", error.message);
            return Act::failed(Trouble { line: error.line, ..trouble }, credentials.clone());
        }
    };
    let runtime = match clock.runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            return Act::failed(set_up("RUNTIME", "a runtime for the case", error.to_string()), credentials.clone());
        }
    };
    let act = runtime.block_on(on_runtime(case, factory, rig, clock, log, abandon));
    // What a leaking host still has spawned must not keep the thread.
    runtime.shutdown_background();
    act
}

async fn on_runtime(
    case: &ScenarioCase,
    factory: &dyn HostFactory,
    rig: Rig,
    clock: StageClock,
    log: &TraceLog,
    abandon: &CancellationToken,
) -> Act {
    let credentials = rig.drivers.credentials.clone();
    let started = wall_now();
    let host = match factory.start(&case.scenario.host, base(case), rig.drivers.clone()).await {
        Ok(host) => Arc::from(host),
        Err(error) => {
            let trouble = set_up("HOST_START", "the host to start", format!("{} ({})", error.message, error.code));
            return Act { events: log.events(), ..Act::failed(trouble, credentials) };
        }
    };
    let mut stage = Stage::new(&case.scenario, host, clock.clone(), log.clone(), rig.clients.clone());
    let mut troubles = Vec::new();
    if let Err(trouble) = guarded(case, &mut stage, &clock, log, abandon).await {
        troubles.push(trouble);
    }
    let (wall, played) = (started.elapsed(), troubles.is_empty());
    let open = stage.give_up();
    if let Some(trouble) = troubles.last_mut().filter(|_| !open.is_empty()) {
        trouble.message.push_str(&format!("\nstill under way: turn {}", open.join(", ")));
    }
    let (leftovers, late) = shut_down(&mut stage, case, &clock, abandon).await;
    troubles.extend(late);
    let Stage { replies, mid_run, .. } = stage;
    clock.settle().await;
    let mut settled = rig.tapes.settle();
    if let Some(plan) = &rig.faults {
        let (unfired, notes) = mishaps::reckon(&case.scenario, plan);
        troubles.extend(unfired);
        settled.notes.extend(notes);
    }
    troubles.extend(settled.troubles);
    let facts = Facts {
        wall,
        leftovers,
        pending_timers: clock.pending_timers(),
        unused_script: rig.unused_script(),
        unused_recorded: settled.unused,
    };
    Act { events: log.events(), replies, facts, mid_run, troubles, played, notes: settled.notes, credentials }
}

/// Real time of a run is a fact of the run, not of the scenario.
#[expect(clippy::disallowed_methods, reason = "wall budgets and wall limits are about the real world")]
pub(super) fn wall_now() -> std::time::Instant {
    std::time::Instant::now()
}

/// Plays the steps within the scenario's limits.
async fn guarded(
    case: &ScenarioCase,
    stage: &mut Stage<'_>,
    clock: &StageClock,
    log: &TraceLog,
    abandon: &CancellationToken,
) -> Result<(), Trouble> {
    let limits = &case.scenario.limits;
    let deadline = clock.now().after(limits.r#virtual.to_std());
    tokio::select! {
        biased;
        () = abandon.cancelled() => Err(set_up("ABANDONED", "the case to end", "the run was given up")),
        () = log.overflow() => Err(set_up(
            "LIMIT_EVENTS",
            &format!("at most {} events (limits.events)", limits.events),
            "there were more; is something going round in circles?",
        )),
        played = stage.play() => played,
        () = clock.sleep_until_last(deadline) => Err(set_up(
            "LIMIT_VIRTUAL",
            &format!("the steps to end within {} of virtual time (limits.virtual)", crate::report::seconds(limits.r#virtual.as_nanos())),
            "they did not: something waits for what never comes",
        )),
    }
}

async fn shut_down(
    stage: &mut Stage<'_>,
    case: &ScenarioCase,
    clock: &StageClock,
    abandon: &CancellationToken,
) -> (Option<Leftovers>, Option<Trouble>) {
    let grace = case.scenario.limits.r#virtual.to_std().max(Duration::from_secs(60));
    let deadline = clock.now().after(grace);
    tokio::select! {
        biased;
        leftovers = stage.shut_down() => (Some(leftovers), None),
        () = abandon.cancelled() => (None, None),
        () = clock.sleep_until_last(deadline) => {
            (None, Some(set_up("HOST_SHUTDOWN", "the host to shut down", "it did not within a minute")))
        }
    }
}
