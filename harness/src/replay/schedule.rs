//! When each recorded event may happen again.
//!
//! Invariant: the cursor stands at the first event that has not happened; in strict mode only that one may. An event that
//! cannot happen any more is skipped, so that nothing waits for it. Deliberately no matching: this knows positions only.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use greenroom_boundary::Clock;
use greenroom_boundary::clock::MonoNanos;
use greenroom_boundary::trace::{Direction, Outcome};
use tokio::sync::watch;

use super::session::{Mode, ReplayOptions};
use crate::cassette::body;
use crate::cassette::envelope::Envelope;
use crate::cassette::identity::exchange_key;
use crate::cassette::line::Line;

/// Without a virtual clock nobody knows when the host is at rest: its tasks get this many rounds.
const SETTLE_ROUNDS: usize = 32;

/// Position of an event among the replayed ones.
pub(super) type Index = usize;

/// A recorded event.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) seq: u64,
    pub(super) vt: u64,
    pub(super) lane: String,
    pub(super) conn: u64,
    pub(super) of: Option<Index>,
    pub(super) what: What,
}

/// What a recorded event is.
#[derive(Clone, Debug)]
pub(super) enum What {
    Open {
        op: String,
        scope: String,
        key: String,
        body: String,
    },
    NoteOut {
        op: String,
        key: String,
        body: String,
    },
    /// The host gave an exchange up.
    GivenUp,
    StimEnd,
    Stim,
    Chunk {
        raw: String,
    },
    Close {
        outcome: Outcome,
        body: Option<String>,
    },
    NoteIn {
        body: String,
    },
}

impl What {
    pub(super) fn is_inbound(&self) -> bool {
        matches!(self, Self::Chunk { .. } | Self::Close { .. } | Self::NoteIn { .. } | Self::Stim)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Pending,
    Reproduced,
    Skipped,
}

pub(super) struct Schedule {
    pub(super) events: Vec<Event>,
    /// In keyed mode: the event that must have happened before.
    after: Vec<Option<Index>>,
    /// The chunks and the close of each exchange.
    answers: BTreeMap<Index, Vec<Index>>,
    options: ReplayOptions,
    started: MonoNanos,
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

struct State {
    fates: Vec<Fate>,
    cursor: Index,
}

impl Schedule {
    pub(super) fn new(lines: &[Line], options: ReplayOptions) -> Self {
        let mut building = Building::default();
        for line in lines {
            building.add(line, &options);
        }
        let Building { events, after, answers, .. } = building;
        let fates = vec![Fate::Pending; events.len()];
        let started = options.clock.as_ref().map_or(MonoNanos(0), |clock| clock.now());
        Self {
            events,
            after,
            answers,
            options,
            started,
            state: Mutex::new(State { fates, cursor: 0 }),
            changed: watch::Sender::new(0),
        }
    }

    pub(super) fn is_strict(&self) -> bool {
        self.options.mode == Mode::Strict
    }

    pub(super) fn answers(&self, open: Index) -> &[Index] {
        self.answers.get(&open).map_or(&[], Vec::as_slice)
    }

    pub(super) fn fate(&self, index: Index) -> Fate {
        self.state().fates[index]
    }

    /// Watches for events that happen.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Wakes everybody who waits, to look again.
    pub(super) fn wake(&self) {
        self.changed.send_modify(|generation| *generation += 1);
    }

    /// The first pending event that satisfies a condition.
    pub(super) fn first_pending(&self, accept: impl Fn(&Event) -> bool) -> Option<Index> {
        let state = self.state();
        (state.cursor..self.events.len()).find(|index| state.fates[*index] == Fate::Pending && accept(&self.events[*index]))
    }

    /// Whether an event may happen now.
    pub(super) fn is_due(&self, index: Index) -> bool {
        self.may_happen(&self.state(), index)
    }

    /// The first pending event that satisfies a condition and may happen now.
    pub(super) fn first_due(&self, accept: impl Fn(&Event) -> bool) -> Option<Index> {
        let state = self.state();
        (state.cursor..self.events.len()).find(|index| {
            state.fates[*index] == Fate::Pending && self.may_happen(&state, *index) && accept(&self.events[*index])
        })
    }

    fn may_happen(&self, state: &State, index: Index) -> bool {
        if state.fates[index] != Fate::Pending {
            return true;
        }
        match self.options.mode {
            Mode::Strict => state.cursor == index,
            Mode::Keyed => self.after[index].is_none_or(|before| state.fates[before] != Fate::Pending),
        }
    }

    /// Waits until an event may happen.
    pub(super) async fn turn(&self, index: Index) {
        let mut watch = self.watch();
        loop {
            watch.borrow_and_update();
            if self.is_due(index) || watch.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits until an event from outside may be given to the host.
    pub(super) async fn release(&self, index: Index) {
        self.turn(index).await;
        self.settle(index).await;
    }

    /// Lets the host come to rest, and in paced replay the event's time come.
    pub(super) async fn settle(&self, index: Index) {
        match &self.options.clock {
            Some(clock) if self.options.paced => {
                clock.sleep_until_last(MonoNanos(self.started.0.saturating_add(self.events[index].vt))).await;
            }
            Some(clock) => clock.settle().await,
            None => {
                for _ in 0..SETTLE_ROUNDS {
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    pub(super) fn reproduced(&self, index: Index) {
        self.set([index], Fate::Reproduced);
    }

    /// Gives up events that cannot happen any more.
    pub(super) fn skip(&self, indices: impl IntoIterator<Item = Index>) {
        self.set(indices, Fate::Skipped);
    }

    fn set(&self, indices: impl IntoIterator<Item = Index>, fate: Fate) {
        {
            let mut state = self.state();
            for index in indices {
                if state.fates[index] == Fate::Pending {
                    state.fates[index] = fate;
                }
            }
            while state.fates.get(state.cursor).is_some_and(|fate| *fate != Fate::Pending) {
                state.cursor += 1;
            }
        }
        self.wake();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Building {
    events: Vec<Event>,
    after: Vec<Option<Index>>,
    answers: BTreeMap<Index, Vec<Index>>,
    by_seq: BTreeMap<u64, Index>,
    /// The last event of each exchange so far.
    latest: BTreeMap<Index, Index>,
}

impl Building {
    fn add(&mut self, line: &Line, options: &ReplayOptions) {
        match line {
            Line::Open(open) if options.replays(&open.lane) => {
                let body = open.body.get().to_owned();
                // Bodies are the truth: keys are taken again by the rules of now.
                let key = exchange_key(&open.lane, &open.op, &body);
                let what = What::Open { op: open.op.clone(), scope: open.scope.clone(), key, body };
                self.push(Event { seq: open.seq, vt: open.vt, lane: open.lane.clone(), conn: open.conn, of: None, what }, None);
            }
            Line::Note(note) if options.replays(&note.lane) => {
                let of = note.of.and_then(|of| self.by_seq.get(&of)).copied();
                let anchor = note.anchor.and_then(|anchor| self.by_seq.get(&anchor)).copied();
                let body = note.body.get().to_owned();
                let what = match note.dir {
                    Direction::In => What::NoteIn { body },
                    Direction::Out => {
                        let op = Envelope::of(&body::to_frame(&body).to_text()).op().to_owned();
                        What::NoteOut { key: exchange_key(&note.lane, &op, &body), op, body }
                    }
                };
                self.push(Event { seq: note.seq, vt: note.vt, lane: note.lane.clone(), conn: note.conn, of, what }, anchor);
            }
            Line::Chunk(chunk) => self.answer(chunk.of, chunk.seq, chunk.vt, What::Chunk { raw: chunk.raw.clone() }),
            Line::Close(close) => {
                let body = close.body.as_ref().map(|body| body.get().to_owned());
                let what = match close.outcome {
                    Outcome::Cancelled => What::GivenUp,
                    outcome => What::Close { outcome, body },
                };
                self.answer(close.of, close.seq, close.vt, what);
            }
            Line::Stim(stim) if options.stimuli => {
                let event = Event { seq: stim.seq, vt: stim.vt, lane: "host".to_owned(), conn: 0, of: None, what: What::Stim };
                self.push(event, None);
            }
            Line::StimEnd(end) if options.stimuli => {
                let of = self.by_seq.get(&end.of).copied();
                let event = Event { seq: end.seq, vt: end.vt, lane: "host".to_owned(), conn: 0, of, what: What::StimEnd };
                self.push(event, None);
            }
            _ => {}
        }
    }

    /// A chunk or close; one of an exchange that is not replayed is left out.
    fn answer(&mut self, of: u64, seq: u64, vt: u64, what: What) {
        let Some(open) = self.by_seq.get(&of).copied() else { return };
        let Event { lane, conn, .. } = &self.events[open];
        let event = Event { seq, vt, lane: lane.clone(), conn: *conn, of: Some(open), what };
        let index = self.push(event, None);
        self.answers.entry(open).or_default().push(index);
    }

    fn push(&mut self, event: Event, anchor: Option<Index>) -> Index {
        let index = self.events.len();
        let after = match event.of {
            Some(of) => Some(self.latest.insert(of, index).unwrap_or(of)),
            None => anchor,
        };
        self.after.push(if event.what.is_inbound() { after } else { None });
        self.by_seq.insert(event.seq, index);
        self.events.push(event);
        index
    }
}
