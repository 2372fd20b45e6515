//! A replay: the cassette, its schedule, and what went wrong.
//!
//! Invariant: a live request passes the same redactor and gets its key from the same function as a recorded one.
//! Deliberately no verdict: the runner turns problems and unused exchanges into one.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_boundary::Credentials;
use greenroom_mocks::clock::VirtualClock;
use serde_json::Value;

use super::miss::{ReplayMiss, ReplayProblem, Unused, explain};
use super::schedule::{Fate, Index, Schedule, What};
use super::{ReplayCli, ReplayClient, ReplayLlm, ReplayMcp};
use crate::cassette::identity::exchange_key;
use crate::cassette::line::Line;
use crate::cassette::{Cassette, CassetteError, Head, RedactionKey, Redactor, Status};

/// How events are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// As recorded.
    #[default]
    Strict,
    /// Not at all: requests are looked up, and their answers come at once.
    Keyed,
}

/// How a cassette is replayed.
#[derive(Clone, Debug, Default)]
pub struct ReplayOptions {
    /// How events are ordered.
    pub mode: Mode,
    /// The lanes that are replayed, `llm.*` or `mcp.shop`; empty means all. Events of other lanes do not count.
    pub lanes: Vec<String>,
    /// Stimuli take part in the order: then the runner must use [`Replay::next_stimulus`] and [`Replay::stimulus_ended`].
    pub stimuli: bool,
    /// The host's virtual clock: it knows when the host has come to rest. Do not hold it on behalf of a replayed lane.
    pub clock: Option<VirtualClock>,
    /// Nothing comes before its recorded time on that clock.
    pub paced: bool,
    /// The secrets of the live host, for the redaction of its requests.
    pub credentials: Credentials,
}

impl ReplayOptions {
    pub(super) fn replays(&self, lane: &str) -> bool {
        self.lanes.is_empty()
            || self.lanes.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(prefix) => lane.starts_with(prefix),
                None => lane == pattern,
            })
    }
}

/// An outside input of the recorded session.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedStimulus {
    /// Its event.
    pub seq: u64,
    /// Its time.
    pub vt: u64,
    /// `turn`, `cancel`.
    pub kind: String,
    /// Its id.
    pub scope: String,
    /// What it carries.
    pub body: Value,
}

/// A replay under way.
pub struct Replay {
    head: Head,
    status: Status,
    stimuli: Vec<RecordedStimulus>,
    redactor: Redactor,
    pub(super) schedule: Schedule,
    problems: Mutex<Vec<ReplayProblem>>,
}

impl std::fmt::Debug for Replay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Replay({})", self.head.id)
    }
}

/// A live request, ready to be looked up.
pub(super) struct Asked<'a> {
    pub(super) lane: &'a str,
    pub(super) op: &'a str,
    pub(super) scope: &'a str,
    pub(super) conn: u64,
    pub(super) body: &'a str,
}

impl Replay {
    /// Loads a cassette, sealed or torn.
    pub fn load(path: &Path, options: ReplayOptions) -> Result<Arc<Self>, CassetteError> {
        Ok(Self::of(Cassette::load(path)?, options))
    }

    /// Replays a cassette that was read already.
    pub fn of(cassette: Cassette, options: ReplayOptions) -> Arc<Self> {
        let stimuli = cassette.lines.iter().filter_map(stimulus).collect();
        // Digests do not count in keys, so any key serves.
        let redactor = Redactor::new(options.credentials.clone(), RedactionKey::new("replay"));
        let schedule = Schedule::new(&cassette.lines, options);
        Arc::new(Self { head: cassette.head, status: cassette.status, stimuli, redactor, schedule, problems: Mutex::default() })
    }

    /// The driver of all LLM connectors.
    pub fn llm(self: &Arc<Self>) -> Arc<ReplayLlm> {
        Arc::new(ReplayLlm(self.clone()))
    }

    /// The driver of all external MCP servers.
    pub fn mcp(self: &Arc<Self>) -> Arc<ReplayMcp> {
        Arc::new(ReplayMcp(self.clone()))
    }

    /// The driver of all commands.
    pub fn cli(self: &Arc<Self>) -> Arc<ReplayCli> {
        Arc::new(ReplayCli(self.clone()))
    }

    /// The outside client whose boundary is called `boundary`, `client.NAME`.
    pub fn client(self: &Arc<Self>, boundary: &str) -> ReplayClient {
        ReplayClient { replay: self.clone(), lane: boundary.to_owned() }
    }

    /// The cassette's head: seed, start, host.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Whether the recording came to its end.
    pub fn status(&self) -> Status {
        self.status
    }

    /// The outside inputs of the recorded session, in order.
    pub fn stimuli(&self) -> &[RecordedStimulus] {
        &self.stimuli
    }

    /// Waits until the next outside input is due. Needs the option `stimuli`.
    pub async fn next_stimulus(&self) -> Option<RecordedStimulus> {
        let index = self.schedule.first_pending(|event| matches!(event.what, What::Stim))?;
        self.schedule.release(index).await;
        self.schedule.reproduced(index);
        let seq = self.schedule.events[index].seq;
        self.stimuli.iter().find(|stimulus| stimulus.seq == seq).cloned()
    }

    /// The host answered an outside input. Needs the option `stimuli`.
    pub fn stimulus_ended(&self, seq: u64) {
        let events = &self.schedule.events;
        let ended = |of: Option<Index>| of.is_some_and(|of| events[of].seq == seq);
        if let Some(index) = self.schedule.first_pending(|event| matches!(event.what, What::StimEnd) && ended(event.of)) {
            self.schedule.reproduced(index);
        }
    }

    /// What went wrong so far; a run with any is not a faithful replay.
    pub fn problems(&self) -> Vec<ReplayProblem> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Recorded exchanges that the host never asked for.
    pub fn unused(&self) -> Vec<Unused> {
        let all = self.schedule.events.iter().enumerate();
        all.filter(|(index, _)| self.schedule.fate(*index) != Fate::Reproduced)
            .filter_map(|(_, event)| match &event.what {
                What::Open { op, .. } => Some(Unused { seq: event.seq, lane: event.lane.clone(), op: op.clone() }),
                _ => None,
            })
            .collect()
    }

    pub(super) fn problem(&self, problem: ReplayProblem) {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
    }

    /// Finds the exchange that a live request repeats: same connection and scope first, else the first elsewhere.
    pub(super) fn find(&self, asked: &Asked<'_>) -> Result<Index, ReplayMiss> {
        self.known(asked).ok_or_else(|| {
            let body = self.redactor.json(asked.body);
            self.missed(asked, &body, &exchange_key(asked.lane, asked.op, &body))
        })
    }

    /// Like [`Replay::find`], for whoever can do without.
    pub(super) fn known(&self, asked: &Asked<'_>) -> Option<Index> {
        let body = self.redactor.json(asked.body);
        let wanted = exchange_key(asked.lane, asked.op, &body);
        let find = |near: bool| {
            self.schedule.first_pending(|event| match &event.what {
                What::Open { scope, key, .. } => {
                    event.lane == asked.lane && *key == wanted && (!near || (scope == asked.scope && event.conn == asked.conn))
                }
                _ => false,
            })
        };
        find(true).or_else(|| find(false))
    }

    /// Finds the one-way frame that a live one repeats.
    pub(super) fn find_note(&self, asked: &Asked<'_>) -> Result<Index, ReplayMiss> {
        let body = self.redactor.json(asked.body);
        let wanted = exchange_key(asked.lane, asked.op, &body);
        self.schedule
            .first_pending(|event| match &event.what {
                What::NoteOut { key, .. } => event.lane == asked.lane && event.conn == asked.conn && *key == wanted,
                _ => false,
            })
            .ok_or_else(|| self.missed(asked, &body, &wanted))
    }

    fn missed(&self, asked: &Asked<'_>, body: &str, key: &str) -> ReplayMiss {
        let miss = ReplayMiss { torn: self.status == Status::Aborted, ..explain(&self.schedule, asked, body, key) };
        self.problem(ReplayProblem::Miss(miss.clone()));
        miss
    }

    /// Gives up what is left of an exchange. That the host leaves after the last piece, or as it did before, is no problem.
    pub(super) fn abandon(&self, left: &[Index], last_piece_given: bool) {
        let pending: Vec<Index> = left.iter().copied().filter(|index| self.schedule.fate(*index) == Fate::Pending).collect();
        let Some(first) = pending.first().copied() else { return };
        let event = &self.schedule.events[first];
        let expected = match event.what {
            What::GivenUp => true,
            What::Close { .. } => last_piece_given,
            _ => false,
        };
        if expected {
            self.schedule.reproduced(first);
        } else {
            self.problem(ReplayProblem::Abandoned { seq: event.seq, lane: event.lane.clone() });
        }
        self.schedule.skip(pending);
    }
}

fn stimulus(line: &Line) -> Option<RecordedStimulus> {
    match line {
        Line::Stim(stim) => Some(RecordedStimulus {
            seq: stim.seq,
            vt: stim.vt,
            kind: stim.kind.clone(),
            scope: stim.scope.clone(),
            body: serde_json::from_str(stim.body.get()).unwrap_or_default(),
        }),
        _ => None,
    }
}
