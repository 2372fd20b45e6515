//! The children at hand.
//!
//! Invariant: a child is idle (it lies here, and is one script's) or serves one call (it is out). One more, nobody's yet, is started
//! ahead once the level is in use, so that a script's first call, and the call after a kill, need not wait for it.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use greenroom_boundary::isolate::{IsolateError, Script};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::messages::ToChild;
use super::process::ChildProcess;
use crate::drivers::sandbox::ChildKeeper;

/// Most children that serve at once; a call beyond waits its turn, on its own limits.
const MOST_BUSY: usize = 32;
/// Most idle children that belong to scripts; the one that was used longest ago goes first.
const MOST_IDLE: usize = 4;

/// The children of one engine.
#[derive(Debug)]
pub(super) struct ChildPool {
    program: String,
    keeper: ChildKeeper,
    setup: ToChild,
    turns: Semaphore,
    state: Mutex<Idle>,
}

#[derive(Debug, Default)]
struct Idle {
    owned: Vec<ChildProcess>,
    fresh: Option<ChildProcess>,
}

/// A child that serves, and its place among those that do.
#[derive(Debug)]
pub(super) struct Busy<'a> {
    pub(super) child: ChildProcess,
    _turn: SemaphorePermit<'a>,
}

impl ChildPool {
    pub(super) fn new(program: String, keeper: ChildKeeper, setup: ToChild) -> Self {
        Self { program, keeper, setup, turns: Semaphore::new(MOST_BUSY), state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) -> io::Result<ChildProcess> {
        ChildProcess::start(&self.program, &self.keeper, &self.setup)
    }

    /// A child for this script.
    pub(super) async fn take(&self, script: &Arc<Script>) -> Result<Busy<'_>, IsolateError> {
        let engine = |message: String| IsolateError::Engine { message };
        let turn = self.turns.acquire().await.map_err(|error| engine(error.to_string()))?;
        let ready = {
            let mut idle = self.lock();
            idle.owned.retain(ChildProcess::is_alive);
            let is_theirs = |child: &ChildProcess| child.script.as_ref().is_some_and(|owner| owner == script);
            let own = idle.owned.iter().rposition(is_theirs).map(|index| idle.owned.remove(index));
            own.or_else(|| idle.fresh.take().filter(ChildProcess::is_alive))
        };
        let mut child = match ready {
            Some(child) => child,
            None => self.start().map_err(|error| {
                engine(format!("no process for the script: {error}; allow the host more processes, or use level `isolate`"))
            })?,
        };
        child.script = Some(Arc::clone(script));
        Ok(Busy { child, _turn: turn })
    }

    /// Takes a child back that can be used again.
    pub(super) fn give_back(&self, busy: Busy<'_>) {
        let mut idle = self.lock();
        idle.owned.push(busy.child);
        let over = (idle.owned.len() > MOST_IDLE).then(|| idle.owned.remove(0));
        drop(idle);
        drop(over);
    }

    /// Starts the next child ahead, if there is none.
    pub(super) fn prepare(&self) {
        let mut idle = self.lock();
        if idle.fresh.as_ref().is_none_or(|child| !child.is_alive()) {
            // Whoever needs one hears of the failure.
            idle.fresh = self.start().ok();
        }
    }
}

impl Drop for ChildPool {
    fn drop(&mut self) {
        let Idle { owned, fresh } = std::mem::take(&mut *self.lock());
        owned.iter().chain(&fresh).for_each(ChildProcess::kill);
        owned.into_iter().chain(fresh).for_each(ChildProcess::end);
    }
}
