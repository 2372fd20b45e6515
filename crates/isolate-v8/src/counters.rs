//! What an engine has alive.
//!
//! Invariant: what is counted up is counted down once, by a guard or by the kill switch of its call.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use greenroom_boundary::isolate::IsolateCounters;

/// The counters of one engine.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    active_calls: AtomicUsize,
    live_handles: AtomicUsize,
    finished_calls: AtomicU64,
}

impl Counters {
    /// Counts a call until the guard is dropped.
    pub(crate) fn call_begins(&self) -> ActiveGuard<'_> {
        self.active_calls.fetch_add(1, Ordering::AcqRel);
        ActiveGuard(self)
    }

    pub(crate) fn handle_made(&self) {
        self.live_handles.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn handle_died(&self) {
        self.live_handles.fetch_sub(1, Ordering::AcqRel);
    }

    pub(crate) fn read(&self) -> IsolateCounters {
        IsolateCounters {
            active_calls: self.active_calls.load(Ordering::Acquire),
            live_handles: self.live_handles.load(Ordering::Acquire),
            finished_calls: self.finished_calls.load(Ordering::Acquire),
        }
    }
}

/// Counts one call while it lives.
#[derive(Debug)]
pub(crate) struct ActiveGuard<'a>(&'a Counters);

impl Drop for ActiveGuard<'_> {
    fn drop(&mut self) {
        self.0.finished_calls.fetch_add(1, Ordering::AcqRel);
        self.0.active_calls.fetch_sub(1, Ordering::AcqRel);
    }
}
