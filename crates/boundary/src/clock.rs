//! The clock boundary: now, and waiting until later.
//!
//! Invariant: a virtual clock jumps only when nothing at all is under way, so whatever runs outside the runtime (an
//! isolate, a child process, a socket exchange) keeps a [`Hold`]. Deliberately no calendar and no time zones.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures::future::{Either, select};
use futures::poll;
use serde::{Deserialize, Serialize};

use crate::BoxFuture;

/// A point on a clock's monotonic scale, in nanoseconds since that clock's start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MonoNanos(pub u64);

impl MonoNanos {
    /// The point `duration` later; saturates at the end of the scale.
    #[must_use]
    pub fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }

    /// How long after `earlier` this point is; zero if it is before it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Wall-clock time, in nanoseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixNanos(pub u64);

impl UnixNanos {
    /// Whole milliseconds since the epoch, JavaScript's `Date.now()`.
    pub fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }
}

/// Time, as a driver gives it.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Monotonic time.
    fn now(&self) -> MonoNanos;

    /// Wall-clock time. It may jump; nothing measures durations with it.
    fn wall(&self) -> UnixNanos;

    /// Completes once `now() >= deadline`. Dropping the future forgets the timer.
    fn sleep_until(&self, deadline: MonoNanos) -> BoxFuture<'static, ()>;

    /// Says that something outside the runtime is under way. A virtual clock does not jump while any hold lives.
    fn hold(&self) -> Hold;
}

/// Waits for `duration` on `clock`.
pub fn sleep(clock: &dyn Clock, duration: Duration) -> BoxFuture<'static, ()> {
    clock.sleep_until(clock.now().after(duration))
}

/// The deadline came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("deadline passed")]
pub struct Elapsed;

/// Runs `future` until `deadline`; whichever is first decides. A future that is ready at the deadline wins.
pub async fn timeout_at<F: Future + Unpin>(
    clock: &dyn Clock,
    deadline: MonoNanos,
    mut future: F,
) -> Result<F::Output, Elapsed> {
    // What is ready at once needs no timer.
    if let Poll::Ready(value) = poll!(&mut future) {
        return Ok(value);
    }
    match select(future, clock.sleep_until(deadline)).await {
        Either::Left((value, _)) => Ok(value),
        Either::Right(_) => Err(Elapsed),
    }
}

/// Counts what is under way outside the runtime.
#[derive(Clone, Debug, Default)]
pub struct HoldCounter(Arc<AtomicUsize>);

impl HoldCounter {
    /// A new hold, counted until it is dropped.
    pub fn hold(&self) -> Hold {
        self.0.fetch_add(1, Ordering::SeqCst);
        Hold(self.0.clone())
    }

    /// How many holds live now.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Keeps a virtual clock from jumping until it is dropped. Drop it on the runtime's thread.
#[must_use = "the clock is held only while this lives"]
#[derive(Debug)]
pub struct Hold(Arc<AtomicUsize>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
