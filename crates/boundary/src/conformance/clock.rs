//! What any clock must do.
//!
//! Invariant: the suite waits a few milliseconds at most, so that it also runs on a real clock. Deliberately nothing on
//! accuracy.

use std::pin::pin;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{Either, select};

use crate::Clock;
use crate::clock::{MonoNanos, UnixNanos, sleep, timeout_at};

/// Long enough that a sleep of it ends after one of zero, short enough for a real clock.
const SHORT: Duration = Duration::from_millis(5);
/// Longer than any run of this suite.
const LONG: Duration = Duration::from_secs(3600);

/// Runs the whole suite. The wall clock must stand after `earliest`.
pub async fn all(clock: &dyn Clock, earliest: UnixNanos) {
    never_runs_backwards(clock).await;
    wall_time_is_plausible(clock, earliest);
    a_past_deadline_is_ready_at_once(clock);
    a_sleep_ends_at_its_deadline(clock).await;
    the_shorter_sleep_ends_first(clock).await;
    a_dropped_sleep_is_forgotten(clock).await;
    a_timeout_cuts_what_takes_longer(clock).await;
    what_is_ready_wins_over_a_passed_deadline(clock).await;
    holds_do_not_disturb_reading(clock);
}

/// `now` never goes back.
pub async fn never_runs_backwards(clock: &dyn Clock) {
    let mut last = clock.now();
    for _ in 0..3 {
        sleep(clock, Duration::from_millis(1)).await;
        let now = clock.now();
        assert!(now > last, "time must pass in a sleep: {last:?}, {now:?}");
        last = now;
    }
}

/// `wall` is a time of day, not a count since the start.
pub fn wall_time_is_plausible(clock: &dyn Clock, earliest: UnixNanos) {
    assert!(clock.wall() >= earliest, "{:?}", clock.wall());
}

/// A deadline that has passed does not wait.
pub fn a_past_deadline_is_ready_at_once(clock: &dyn Clock) {
    assert_eq!(clock.sleep_until(MonoNanos(0)).now_or_never(), Some(()));
    assert_eq!(clock.sleep_until(clock.now()).now_or_never(), Some(()));
}

/// A sleep does not end before its deadline.
pub async fn a_sleep_ends_at_its_deadline(clock: &dyn Clock) {
    let deadline = clock.now().after(SHORT);
    clock.sleep_until(deadline).await;
    assert!(clock.now() >= deadline);
}

/// Of two sleeps, the shorter ends first, whichever was made first.
pub async fn the_shorter_sleep_ends_first(clock: &dyn Clock) {
    let (long, short) = (sleep(clock, LONG), sleep(clock, SHORT));
    assert!(matches!(select(long, short).await, Either::Right(_)));
}

/// A sleep that was dropped half-way neither wakes anything nor is waited for.
pub async fn a_dropped_sleep_is_forgotten(clock: &dyn Clock) {
    let started = clock.now();
    let mut dropped = sleep(clock, LONG);
    assert_eq!((&mut dropped).now_or_never(), None);
    drop(dropped);
    sleep(clock, SHORT).await;
    assert!(clock.now().since(started) < LONG);
}

/// A timeout ends what takes longer.
pub async fn a_timeout_cuts_what_takes_longer(clock: &dyn Clock) {
    let deadline = clock.now().after(SHORT);
    assert!(timeout_at(clock, deadline, futures::future::pending::<()>()).await.is_err());
    assert!(clock.now() >= deadline);
}

/// What is ready is not lost to a deadline that has passed.
pub async fn what_is_ready_wins_over_a_passed_deadline(clock: &dyn Clock) {
    let ready = pin!(async { 7 });
    assert_eq!(timeout_at(clock, MonoNanos(0), ready).await, Ok(7));
}

/// A hold may be taken and dropped at any time.
pub fn holds_do_not_disturb_reading(clock: &dyn Clock) {
    let before = clock.now();
    let holds = (clock.hold(), clock.hold());
    assert!(clock.now() >= before);
    drop(holds);
}
