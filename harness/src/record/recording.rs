//! One recording: the shared handle of all wrappers.
//!
//! Invariant: every body passes the redactor here, before it is numbered and written. Deliberately no knowledge of drivers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use greenroom_boundary::clock::MonoNanos;
use greenroom_boundary::llm::Usage;
use greenroom_boundary::trace::{Direction, Outcome};
use greenroom_boundary::{Clock, Credentials, Entropy};
use serde_json::Value;

use super::gate::Gate;
use crate::cassette::identity::{self, Occurrences, exchange_key};
use crate::cassette::line::{
    CANON, Chunk, Close, Head, Hook, HostInfo, Input, LaneInfo, Line, MatchInfo, Note, Open, RedactionInfo, Residual, Seal,
    Stim, StimEnd, VERSION,
};
use crate::cassette::reader::partial_path;
use crate::cassette::sweep::{Findings, sweep};
use crate::cassette::{Cassette, CassetteError, RedactionKey, Redactor, WriteError, Writer, body, redact, stamp};

/// What a caller says about a recording.
#[derive(Clone, Debug, Default)]
pub struct HeadSpec {
    /// Its id; empty means a fresh one.
    pub id: String,
    /// Seed of the host's ids and random numbers.
    pub seed: u64,
    /// MCP revision that the host speaks.
    pub spec: String,
    /// The host.
    pub host: HostInfo,
    /// What stands behind the lanes.
    pub lanes: BTreeMap<String, LaneInfo>,
}

/// A recording that came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealReport {
    /// The cassette.
    pub path: PathBuf,
    /// How many events it holds.
    pub events: u64,
    /// How many exchanges.
    pub exchanges: u64,
    /// How many exchanges have the key of an earlier one; where wrong matches could come from.
    pub repeated_keys: u64,
}

/// Why a recording was not sealed. The `.partial` stays.
#[derive(Debug, thiserror::Error)]
pub enum SealError {
    /// Events were lost.
    #[error("{lost} events were not recorded: {first}; {path} is incomplete")]
    Lost {
        /// How many.
        lost: u64,
        /// The first failure.
        first: String,
        /// The unsealed file.
        path: PathBuf,
    },
    /// The sweep found secrets.
    #[error(
        "{path} holds registered secrets in events {events:?} and was not sealed; delete it, and register secrets before they are used"
    )]
    Residual {
        /// The unsealed file.
        path: PathBuf,
        /// The events, by `seq`.
        events: Vec<u64>,
    },
    /// Requests do not find themselves: a defect of the recorder.
    #[error("events {events:?} of {path} do not match themselves; the file was not sealed")]
    SelfMatch {
        /// The unsealed file.
        path: PathBuf,
        /// The events, by `seq`.
        events: Vec<u64>,
    },
    /// It was sealed before.
    #[error("the recording was sealed already")]
    Sealed,
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The file cannot be read back.
    #[error(transparent)]
    Read(#[from] CassetteError),
}

impl SealError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Lost { .. } => "RECORD_LOST",
            Self::Residual { .. } => "RECORD_RESIDUAL",
            Self::SelfMatch { .. } => "RECORD_SELF_MATCH",
            Self::Sealed => "RECORD_SEALED",
            Self::Write(error) => error.code(),
            Self::Read(error) => error.code(),
        }
    }
}

/// A recording under way.
#[derive(Debug)]
pub struct Recording {
    clock: Arc<dyn Clock>,
    started: MonoNanos,
    redactor: Redactor,
    pub(super) gate: Gate,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    writer: Option<Writer>,
    path: PathBuf,
    next_seq: u64,
    occurrences: Occurrences,
    inputs: BTreeMap<String, u64>,
    lost: u64,
    first_failure: Option<String>,
}

/// What starts an exchange.
pub(super) struct Opening<'a> {
    pub(super) lane: &'a str,
    pub(super) op: &'a str,
    pub(super) scope: &'a str,
    pub(super) conn: u64,
    pub(super) body: &'a str,
}

/// Where a one-way message belongs.
pub(super) struct NoteAt<'a> {
    pub(super) lane: &'a str,
    pub(super) dir: Direction,
    pub(super) of: Option<u64>,
    pub(super) anchor: Option<u64>,
    pub(super) conn: u64,
}

impl Recording {
    /// Claims the file and writes the head. Without a key, one is made for this recording alone.
    pub fn start(
        path: &Path,
        spec: HeadSpec,
        clock: Arc<dyn Clock>,
        entropy: &dyn Entropy,
        credentials: Credentials,
        key: Option<RedactionKey>,
    ) -> Result<Arc<Self>, WriteError> {
        let redactor = Redactor::new(credentials, key.unwrap_or_else(|| RedactionKey::generate(entropy)));
        let mut writer = Writer::create(path)?;
        let head = Head {
            v: VERSION.to_owned(),
            canon: CANON.to_owned(),
            id: if spec.id.is_empty() { entropy.id("cas_") } else { spec.id },
            started: stamp::format(clock.wall()),
            seed: spec.seed,
            spec: spec.spec,
            features: Vec::new(),
            host: spec.host,
            lanes: spec.lanes,
            redaction: RedactionInfo {
                profile: "registry".to_owned(),
                rules: redact::RULES.to_owned(),
                key_id: redactor.key_id(),
            },
            matching: MatchInfo { rules: identity::RULES.to_owned() },
        };
        writer.append(&Line::Head(Box::new(head)))?;
        let started = clock.now();
        let state = State {
            writer: Some(writer),
            path: path.to_owned(),
            next_seq: 0,
            occurrences: Occurrences::default(),
            inputs: BTreeMap::new(),
            lost: 0,
            first_failure: None,
        };
        Ok(Arc::new(Self { clock, started, redactor, gate: Gate::default(), state: Mutex::new(state) }))
    }

    /// A turn or another outside input; the answer is its event, for [`Recording::stim_end`].
    pub fn stim(&self, kind: &str, scope: &str, body: &Value) -> u64 {
        let body = self.clean(&body.to_string());
        self.write(|seq, vt, _| Line::Stim(Stim { seq, vt, kind: kind.to_owned(), scope: scope.to_owned(), body }))
    }

    /// The host answered a stimulus.
    pub fn stim_end(&self, of: u64, outcome: Outcome, body: &Value) -> u64 {
        let body = if body.is_null() { None } else { Some(self.clean(&body.to_string())) };
        self.write(|seq, vt, _| Line::StimEnd(StimEnd { seq, vt, of, outcome, body }))
    }

    /// A hook decided. Its `seq` and `vt` are set here.
    pub fn hook(&self, mut hook: Hook) -> u64 {
        hook.patch = hook.patch.map(|patch| self.clean(patch.get()));
        hook.reason = hook.reason.map(|reason| self.redactor.text(&reason));
        self.write(|seq, vt, _| Line::Hook(Hook { seq, vt, ..hook }))
    }

    /// A nondeterministic value was given to the host.
    pub fn input(&self, src: &str, scope: &str, value: &Value) -> u64 {
        let value = self.clean(&value.to_string());
        self.write(|seq, vt, state| {
            let n = state.inputs.entry(src.to_owned()).or_insert(0);
            *n += 1;
            Line::In(Input { seq, vt, src: src.to_owned(), scope: scope.to_owned(), n: *n, value })
        })
    }

    /// How many events could not be recorded so far.
    pub fn lost(&self) -> u64 {
        self.state().lost
    }

    pub(super) fn open(&self, opening: &Opening<'_>) -> u64 {
        let body = self.clean(opening.body);
        let key = exchange_key(opening.lane, opening.op, body.get());
        self.write(|seq, vt, state| {
            Line::Open(Open {
                seq,
                vt,
                lane: opening.lane.to_owned(),
                op: opening.op.to_owned(),
                scope: opening.scope.to_owned(),
                occ: state.occurrences.next(opening.scope, &key),
                key,
                conn: opening.conn,
                body,
            })
        })
    }

    pub(super) fn chunk(&self, of: u64, i: u64, raw: &str) -> u64 {
        let raw = self.redactor.json(raw);
        self.write(|seq, vt, _| Line::Chunk(Chunk { seq, vt, of, i, raw }))
    }

    pub(super) fn note(&self, at: &NoteAt<'_>, body: &str) -> u64 {
        let body = self.clean(body);
        self.write(|seq, vt, _| {
            Line::Note(Note {
                seq,
                vt,
                lane: at.lane.to_owned(),
                dir: at.dir,
                of: at.of,
                anchor: at.anchor,
                conn: at.conn,
                body,
            })
        })
    }

    pub(super) fn close(&self, of: u64, outcome: Outcome, body: Option<&str>, usage: Option<Usage>) -> u64 {
        let body = body.map(|body| self.clean(body));
        self.write(|seq, vt, _| Line::Close(Close { seq, vt, of, outcome, body, usage }))
    }

    /// Sweeps the file, seals it and gives it its final name.
    pub fn seal(&self) -> Result<SealReport, SealError> {
        let vt = self.now();
        let (mut writer, path, lost, first, n) = {
            let mut state = self.state();
            let writer = state.writer.take().ok_or(SealError::Sealed)?;
            (writer, partial_path(&state.path), state.lost, state.first_failure.clone().unwrap_or_default(), state.next_seq)
        };
        if lost > 0 {
            return Err(SealError::Lost { lost, first, path });
        }
        let bytes = writer.written()?;
        let findings = sweep(&Cassette::parse(&bytes)?, &bytes, &self.redactor);
        let Findings { secrets, strangers, exchanges, repeated_keys } = findings;
        if !secrets.is_empty() {
            return Err(SealError::Residual { path, events: secrets });
        }
        if !strangers.is_empty() {
            return Err(SealError::SelfMatch { path, events: strangers });
        }
        let residual = Residual { rules: redact::RULES.to_owned(), hits: 0 };
        writer.append(&Line::Seal(Seal { seq: n, vt, status: "complete".to_owned(), n, exchanges, residual }))?;
        Ok(SealReport { path: writer.finish()?, events: n, exchanges, repeated_keys })
    }

    fn clean(&self, json: &str) -> greenroom_boundary::RawJson {
        body::raw(self.redactor.json(json))
    }

    fn now(&self) -> u64 {
        self.clock.now().0.saturating_sub(self.started.0)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers and writes a line. After the seal nothing is written any more; that is not a loss.
    fn write(&self, make: impl FnOnce(u64, u64, &mut State) -> Line) -> u64 {
        let vt = self.now();
        let mut state = self.state();
        let seq = state.next_seq;
        state.next_seq += 1;
        let line = make(seq, vt, &mut state);
        if let Some(writer) = &mut state.writer
            && let Err(error) = writer.append(&line)
        {
            state.lost += 1;
            state.first_failure.get_or_insert_with(|| error.to_string());
            tracing::warn!(code = error.code(), seq, "the recorder lost an event");
        }
        seq
    }
}
