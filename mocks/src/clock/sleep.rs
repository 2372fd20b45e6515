//! One wait on a virtual clock.
//!
//! Invariant: it is in the heap exactly while it is polled and not due; dropping it takes it out. Deliberately lazy: a
//! sleep that nobody polls does not make time move.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::heap::{State, TimerClass, TimerKey};

pub(super) struct Sleep {
    state: Arc<State>,
    key: TimerKey,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Fresh,
    Waiting,
    Done,
}

impl Sleep {
    pub(super) fn new(state: Arc<State>, key: TimerKey) -> Self {
        Self { state, key, stage: Stage::Fresh }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut timers = self.state.timers();
        let due = match self.key.class {
            TimerClass::Ordinary => timers.now >= self.key.deadline,
            // Only the jump may end it: that is what makes it the last of its instant.
            TimerClass::Last => self.stage == Stage::Waiting && !timers.waiting.contains_key(&self.key),
        };
        let (stage, replaced) = if due || self.stage == Stage::Done {
            (Stage::Done, timers.waiting.remove(&self.key))
        } else {
            (Stage::Waiting, timers.waiting.insert(self.key, cx.waker().clone()))
        };
        drop(timers);
        // Outside the lock: dropping a waker may drop a task, and with it another sleep.
        drop(replaced);
        self.stage = stage;
        if stage == Stage::Done { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if self.stage == Stage::Waiting {
            let forgotten = self.state.timers().waiting.remove(&self.key);
            drop(forgotten);
        }
    }
}
