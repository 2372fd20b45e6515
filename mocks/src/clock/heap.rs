//! The timers of a virtual clock and the jump from one to the next.
//!
//! Invariant: the heap holds exactly the sleeps that are being waited on; a dropped sleep is not in it. A deadline at the
//! end of the scale means "never". Deliberately no knowledge of scenarios or limits.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use greenroom_boundary::clock::{Hold, HoldCounter, MonoNanos, UnixNanos};
use greenroom_boundary::{BoxFuture, Clock};

use super::sleep::Sleep;

/// A clock that jumps to the next timer when the runtime made by [`VirtualClock::runtime`] has nothing left to do.
/// Clones share the time.
#[derive(Clone)]
pub struct VirtualClock(Arc<State>);

pub(super) struct State {
    timers: Mutex<Timers>,
    holds: HoldCounter,
    seed: u64,
}

#[derive(Default)]
pub(super) struct Timers {
    pub(super) now: u64,
    wall: i128,
    next_seq: u64,
    pub(super) waiting: BTreeMap<TimerKey, Waker>,
    pump: Option<Waker>,
    idle_hook: Option<Arc<dyn Fn() + Send + Sync>>,
}

/// Where a timer stands in the order of firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TimerKey {
    pub(super) deadline: u64,
    pub(super) class: TimerClass,
    rank: u64,
    seq: u64,
}

/// Timers of the first class of an instant fire before those of the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerClass {
    Ordinary,
    Last,
}

impl State {
    pub(super) fn timers(&self) -> MutexGuard<'_, Timers> {
        self.timers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What happens when the runtime is about to park.
    fn on_idle(&self) {
        if self.holds.count() > 0 || self.fire_next() {
            return;
        }
        let hook = self.timers().idle_hook.clone();
        if let Some(hook) = hook {
            hook();
        }
    }

    fn fire_next(&self) -> bool {
        let (waker, pump) = {
            let mut timers = self.timers();
            let Some(first) = timers.waiting.first_entry().filter(|first| first.key().deadline != u64::MAX) else {
                return false;
            };
            let (key, waker) = first.remove_entry();
            timers.now = timers.now.max(key.deadline);
            (waker, timers.pump.clone())
        };
        waker.wake();
        // The waker may be stale (its task has ended, or the sleep moved on); the pump task keeps the runtime from
        // parking for good in that case.
        if let Some(pump) = pump {
            pump.wake();
        }
        true
    }
}

impl VirtualClock {
    /// A clock at 0 whose wall time is `wall_start`. With seed 0, timers of one instant fire in the order in which they
    /// were made; any other seed gives another, repeatable order.
    pub fn new(wall_start: UnixNanos, seed: u64) -> Self {
        let timers = Timers { wall: i128::from(wall_start.0), ..Timers::default() };
        Self(Arc::new(State { timers: Mutex::new(timers), holds: HoldCounter::default(), seed }))
    }

    /// A single-threaded runtime that moves this clock: just before it parks, the earliest timer fires.
    pub fn runtime(&self) -> std::io::Result<tokio::runtime::Runtime> {
        let weak = Arc::downgrade(&self.0);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_park(move || {
                if let Some(state) = weak.upgrade() {
                    state.on_idle();
                }
            })
            .build()?;
        let weak = Arc::downgrade(&self.0);
        runtime.spawn(std::future::poll_fn(move |cx| {
            if let Some(state) = weak.upgrade() {
                state.timers().pump = Some(cx.waker().clone());
            }
            Poll::<()>::Pending
        }));
        Ok(runtime)
    }

    /// Fires the earliest timer unless a hold lives; for executors other than [`VirtualClock::runtime`]. The caller says
    /// by calling it that nothing else can run.
    pub fn jump(&self) -> bool {
        self.0.holds.count() == 0 && self.0.fire_next()
    }

    /// Completes at `deadline` after every ordinary timer of that instant, once nothing else can run. A past deadline
    /// means now.
    pub fn sleep_until_last(&self, deadline: MonoNanos) -> BoxFuture<'static, ()> {
        let deadline = deadline.0.max(self.now().0);
        self.timer(deadline, TimerClass::Last)
    }

    /// Completes once nothing can run without time passing.
    pub fn settle(&self) -> BoxFuture<'static, ()> {
        self.sleep_until_last(self.now())
    }

    /// How many sleeps are being waited on.
    pub fn pending_timers(&self) -> usize {
        self.0.timers().waiting.len()
    }

    /// How many holds live.
    pub fn holds(&self) -> usize {
        self.0.holds.count()
    }

    /// Called each time the runtime parks with no timer and no hold, when nothing will ever happen by itself. It runs on
    /// the runtime's thread and may wake a task.
    pub fn set_idle_hook(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.0.timers().idle_hook = Some(Arc::new(hook));
    }

    /// Moves wall time by `nanos`, as when someone sets a machine's clock. Monotonic time and timers do not notice.
    pub fn shift_wall(&self, nanos: i64) {
        self.0.timers().wall += i128::from(nanos);
    }

    fn timer(&self, deadline: u64, class: TimerClass) -> BoxFuture<'static, ()> {
        let seq = {
            let mut timers = self.0.timers();
            timers.next_seq += 1;
            timers.next_seq
        };
        let rank = if self.0.seed == 0 { 0 } else { mix(self.0.seed ^ mix(seq)) };
        Box::pin(Sleep::new(self.0.clone(), TimerKey { deadline, class, rank, seq }))
    }
}

impl fmt::Debug for VirtualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let timers = self.0.timers();
        write!(f, "VirtualClock(now: {} ns, timers: {}, holds: {})", timers.now, timers.waiting.len(), self.0.holds.count())
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> MonoNanos {
        MonoNanos(self.0.timers().now)
    }

    fn wall(&self) -> UnixNanos {
        let timers = self.0.timers();
        let wall = timers.wall + i128::from(timers.now);
        UnixNanos(u64::try_from(wall.max(0)).unwrap_or(u64::MAX))
    }

    fn sleep_until(&self, deadline: MonoNanos) -> BoxFuture<'static, ()> {
        self.timer(deadline.0, TimerClass::Ordinary)
    }

    fn hold(&self) -> Hold {
        self.0.holds.hold()
    }
}

/// SplitMix64's finaliser: neighbouring numbers get unrelated ranks.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
