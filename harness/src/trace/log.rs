//! Collects the events of one run and wakes whoever waits for one.
//!
//! Invariant: events are kept in the order in which they were emitted; past the limit they are counted, not kept.
//! Deliberately no clock: a deadline on a wait is the waiter's.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use greenroom_boundary::CancellationToken;
use greenroom_boundary::trace::{TraceEvent, TraceSink};
use tokio::sync::Notify;

#[derive(Debug)]
struct State {
    events: Vec<TraceEvent>,
    limit: usize,
    dropped: usize,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
    full: CancellationToken,
}

/// The events of one run. Clones share them.
#[derive(Clone)]
pub struct TraceLog(Arc<Shared>);

impl fmt::Debug for TraceLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TraceLog({})", self.state().events.len())
    }
}

impl TraceLog {
    /// A log that keeps at most `limit` events.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Shared {
            state: Mutex::new(State { events: Vec::new(), limit, dropped: 0 }),
            changed: Notify::new(),
            full: CancellationToken::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything so far.
    pub fn events(&self) -> Vec<TraceEvent> {
        self.state().events.clone()
    }

    /// Looks at everything so far without copying it. `look` must not emit.
    pub fn with<T>(&self, look: impl FnOnce(&[TraceEvent]) -> T) -> T {
        look(&self.state().events)
    }

    /// How many events came after the limit was reached.
    pub fn dropped(&self) -> usize {
        self.state().dropped
    }

    /// Completes when an event comes that is past the limit.
    pub async fn overflow(&self) {
        self.0.full.cancelled().await;
    }

    /// Completes once `found` is true of the events so far; it is asked again after each new event.
    pub async fn wait_until(&self, mut found: impl FnMut(&[TraceEvent]) -> bool) {
        loop {
            let changed = self.0.changed.notified();
            tokio::pin!(changed);
            // Registered before looking: an event that comes between the look and the wait is not missed.
            changed.as_mut().enable();
            if self.with(&mut found) {
                return;
            }
            changed.await;
        }
    }
}

impl TraceSink for TraceLog {
    fn emit(&self, event: TraceEvent) {
        let mut state = self.state();
        if state.events.len() < state.limit {
            state.events.push(event);
        } else {
            state.dropped += 1;
            self.0.full.cancel();
        }
        drop(state);
        self.0.changed.notify_waiters();
    }
}
