//! The system's clock.
//!
//! Invariant: monotonic time counts from the clock's making. Deliberately nothing but the system's own notion of time;
//! holds are counted and change nothing.

use std::fmt;
use std::time::{Duration, Instant, SystemTime};

use futures::FutureExt;
use greenroom_boundary::clock::{Hold, HoldCounter, MonoNanos, UnixNanos};
use greenroom_boundary::{BoxFuture, Clock};

/// Real time. Sleeps need a tokio runtime with its timer enabled.
pub struct SystemClock {
    started: Instant,
    holds: HoldCounter,
}

impl SystemClock {
    /// A clock that starts now.
    #[expect(clippy::disallowed_methods, reason = "this is the driver that time comes from")]
    pub fn new() -> Self {
        Self { started: Instant::now(), holds: HoldCounter::default() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for SystemClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SystemClock")
    }
}

impl Clock for SystemClock {
    fn now(&self) -> MonoNanos {
        MonoNanos(nanos(self.started.elapsed()))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the driver that time comes from")]
    fn wall(&self) -> UnixNanos {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        UnixNanos(nanos(since_epoch.unwrap_or_default()))
    }

    #[expect(clippy::disallowed_methods, reason = "this is the driver that waiting comes from")]
    fn sleep_until(&self, deadline: MonoNanos) -> BoxFuture<'static, ()> {
        if self.now() >= deadline {
            return std::future::ready(()).boxed();
        }
        match self.started.checked_add(Duration::from_nanos(deadline.0)) {
            Some(at) => tokio::time::sleep_until(at.into()).boxed(),
            None => std::future::pending().boxed(),
        }
    }

    fn hold(&self) -> Hold {
        self.holds.hold()
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
