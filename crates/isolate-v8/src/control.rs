//! The kill switch of one call.
//!
//! Invariant: execution is only ever terminated between `begin` and `finish` of the same call, under one lock, so a kill cannot
//! hit the call after it; the first reason stays. It decides nothing: the watchdog, the heap guard and the host pull it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_boundary::isolate::{IsolateError, Limits};
use nix::time::{ClockId, clock_gettime};

use crate::counters::Counters;
use crate::protocol::{HostSender, ToHost};

/// Why a call was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KillReason {
    Wall,
    Cpu,
    Heap,
    Output,
    PendingOps,
    Callback,
    Cancelled,
}

impl KillReason {
    /// The error of the call.
    pub(crate) fn error(self, limits: &Limits) -> IsolateError {
        match self {
            Self::Wall => IsolateError::WallLimit { limit_ms: millis(limits.wall) },
            Self::Cpu => IsolateError::CpuLimit { limit_ms: millis(limits.cpu) },
            Self::Heap => IsolateError::HeapLimit { limit_bytes: limits.heap_bytes },
            Self::Output => IsolateError::OutputLimit { limit_bytes: limits.output_bytes },
            Self::PendingOps => IsolateError::PendingLimit { limit: limits.pending_ops },
            Self::Callback => IsolateError::CallbackLimit { limit_ms: millis(limits.callback_cpu) },
            Self::Cancelled => IsolateError::Cancelled,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// How many watchdog ticks a killed script may still hold its thread before the call ends without it.
pub(crate) const PATIENCE_TICKS: u32 = 250;

#[derive(Debug)]
enum Phase {
    Waiting,
    Running {
        handle: v8::IsolateHandle,
        clock: ClockId,
        cpu_until: Duration,
        callback_until: Option<Duration>,
        /// Processor time at which a debugger paused the script.
        paused_at: Option<Duration>,
    },
    Done,
}

#[derive(Debug)]
struct Inner {
    phase: Phase,
    reason: Option<KillReason>,
    ticks_since_kill: u32,
    abandoned: bool,
    was_paused: bool,
}

/// The kill switch. Shared by the host's future, the isolate's thread, the watchdog and the heap guard.
#[derive(Debug)]
pub(crate) struct CallControl {
    inner: Mutex<Inner>,
    killed: AtomicBool,
    handle_live: AtomicBool,
    counters: Arc<Counters>,
    host: HostSender,
}

/// What a call ended with, as the switch saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending {
    pub(crate) reason: Option<KillReason>,
    pub(crate) abandoned: bool,
}

impl CallControl {
    pub(crate) fn new(host: HostSender, counters: Arc<Counters>) -> Self {
        let inner = Inner { phase: Phase::Waiting, reason: None, ticks_since_kill: 0, abandoned: false, was_paused: false };
        let (killed, handle_live) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { inner: Mutex::new(inner), killed, handle_live, counters, host }
    }

    /// The call has a live `ctx` handle from now on.
    pub(crate) fn handle_made(&self) {
        if !self.is_killed() && !self.handle_live.swap(true, Ordering::AcqRel) {
            self.counters.handle_made();
        }
    }

    /// The handle is dead; saying so again changes nothing.
    pub(crate) fn handle_died(&self) {
        if self.handle_live.swap(false, Ordering::AcqRel) {
            self.counters.handle_died();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Poisoning cannot leave a half-made state: every write below is a single assignment.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Arms the switch on the isolate's thread; false if the call was stopped before it began.
    pub(crate) fn begin(&self, handle: v8::IsolateHandle, cpu: Duration) -> bool {
        let clock = own_cpu_clock();
        let cpu_until = cpu_time(clock).unwrap_or_default().saturating_add(cpu);
        let mut inner = self.lock();
        if inner.reason.is_some() {
            return false;
        }
        inner.phase = Phase::Running { handle, clock, cpu_until, callback_until: None, paused_at: None };
        true
    }

    /// A callback of the script begins, with this much processor time of its own; gives what to restore at its end. A callback within
    /// a callback has no more time than the outer one.
    pub(crate) fn callback_begins(&self, cpu: Duration) -> Option<Duration> {
        let mut inner = self.lock();
        let Phase::Running { clock, callback_until, .. } = &mut inner.phase else { return None };
        let outer = *callback_until;
        let own = cpu_time(*clock).unwrap_or_default().saturating_add(cpu);
        *callback_until = Some(outer.map_or(own, |outer| outer.min(own)));
        outer
    }

    /// The callback has ended.
    pub(crate) fn callback_ends(&self, outer: Option<Duration>) {
        if let Phase::Running { callback_until, .. } = &mut self.lock().phase {
            *callback_until = outer;
        }
    }

    /// A debugger pauses the script: its limits stand still.
    pub(crate) fn pause_begins(&self) {
        let mut inner = self.lock();
        inner.was_paused = true;
        if let Phase::Running { clock, paused_at, .. } = &mut inner.phase {
            *paused_at = cpu_time(*clock);
        }
    }

    /// The script goes on. What the debugger computed meanwhile is not the script's.
    pub(crate) fn pause_ends(&self) {
        let mut inner = self.lock();
        inner.was_paused = true;
        if let Phase::Running { clock, cpu_until, callback_until, paused_at, .. } = &mut inner.phase
            && let Some(began) = paused_at.take()
        {
            let spent = cpu_time(*clock).unwrap_or_default().saturating_sub(began);
            *cpu_until = cpu_until.saturating_add(spent);
            *callback_until = callback_until.map(|until| until.saturating_add(spent));
        }
    }

    /// Whether a debugger has paused the script since the last question, or does so now.
    pub(crate) fn take_paused(&self) -> bool {
        let mut inner = self.lock();
        let is_paused = matches!(inner.phase, Phase::Running { paused_at: Some(_), .. });
        std::mem::take(&mut inner.was_paused) || is_paused
    }

    /// Disarms it; from here on nothing can be terminated through this switch.
    pub(crate) fn finish(&self) -> Ending {
        let mut inner = self.lock();
        if let Phase::Running { handle, .. } = &inner.phase {
            handle.cancel_terminate_execution();
        }
        inner.phase = Phase::Done;
        Ending { reason: inner.reason, abandoned: inner.abandoned }
    }

    /// Stops the call. The first reason stays.
    pub(crate) fn kill(&self, reason: KillReason) {
        Self::kill_locked(&mut self.lock(), &self.killed, reason);
    }

    fn kill_locked(inner: &mut Inner, killed: &AtomicBool, reason: KillReason) {
        if inner.reason.is_some() {
            return;
        }
        match &inner.phase {
            Phase::Done => return,
            Phase::Waiting => {}
            Phase::Running { handle, .. } => {
                handle.terminate_execution();
            }
        }
        inner.reason = Some(reason);
        killed.store(true, Ordering::Release);
    }

    /// Whether the call has been stopped: nothing of the script may run any more.
    pub(crate) fn is_killed(&self) -> bool {
        self.killed.load(Ordering::Acquire)
    }

    /// One look of the watchdog. False when the call is over and need not be watched.
    pub(crate) fn tick(&self) -> bool {
        let mut inner = self.lock();
        let (clock, cpu_until, callback_until) = match &inner.phase {
            Phase::Done => return false,
            Phase::Waiting => return true,
            Phase::Running { paused_at: Some(_), .. } => return true,
            Phase::Running { clock, cpu_until, callback_until, .. } => (*clock, *cpu_until, *callback_until),
        };
        if let Some(reason) = inner.reason {
            inner.ticks_since_kill += 1;
            if inner.ticks_since_kill >= PATIENCE_TICKS {
                inner.abandoned = true;
                self.handle_died();
                self.host.send(ToHost::Abandoned(reason));
                return false;
            }
        } else if let Some(used) = cpu_time(clock) {
            if used > cpu_until {
                Self::kill_locked(&mut inner, &self.killed, KillReason::Cpu);
            } else if callback_until.is_some_and(|until| used > until) {
                Self::kill_locked(&mut inner, &self.killed, KillReason::Callback);
            }
        }
        true
    }
}

/// Processor time that the calling thread has used.
pub(crate) fn own_cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

/// The processor-time clock of the calling thread, readable from any thread of this process.
fn own_cpu_clock() -> ClockId {
    let mut clock: nix::libc::clockid_t = nix::libc::CLOCK_THREAD_CPUTIME_ID;
    // SAFETY: `pthread_self` is always a live thread, and `clock` is a valid place for the result.
    let failed = unsafe { nix::libc::pthread_getcpuclockid(nix::libc::pthread_self(), &raw mut clock) };
    debug_assert_eq!(failed, 0);
    ClockId::from_raw(clock)
}

/// Processor time used on a thread's clock; `None` once the thread is gone.
fn cpu_time(clock: ClockId) -> Option<Duration> {
    clock_gettime(clock).ok().map(Duration::from)
}
