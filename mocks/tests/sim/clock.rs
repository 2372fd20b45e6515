//! The virtual clock: order, jumps, holds, leaks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use greenroom_boundary::Clock;
use greenroom_boundary::clock::{MonoNanos, UnixNanos, sleep, timeout_at};
use greenroom_mocks::VirtualClock;
use proptest::prelude::*;

const SECOND: u64 = 1_000_000_000;

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn say(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn run<F: Future>(clock: &VirtualClock, future: F) -> F::Output {
    clock.runtime().unwrap().block_on(future)
}

/// The order in which `count` tasks that sleep until the same instant go on.
fn order(seed: u64, count: usize) -> Vec<String> {
    let clock = VirtualClock::new(UnixNanos(0), seed);
    let log = Log::default();
    run(&clock, async {
        let tasks: Vec<_> = (0..count)
            .map(|n| {
                let (nap, log) = (clock.sleep_until(MonoNanos(SECOND)), log.clone());
                tokio::spawn(async move {
                    nap.await;
                    log.say(n.to_string());
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    });
    log.take()
}

#[test]
fn centuries_pass_at_once() {
    let clock = VirtualClock::new(UnixNanos(7), 0);
    let century = Duration::from_hours(24 * 365 * 100);
    run(&clock, sleep(&clock, century));
    assert_eq!(u128::from(clock.now().0), century.as_nanos());
    assert_eq!(u128::from(clock.wall().0), century.as_nanos() + 7);
    assert_eq!(clock.pending_timers(), 0);
}

#[test]
fn timers_of_one_instant_fire_in_order_of_creation() {
    assert_eq!(order(0, 5), ["0", "1", "2", "3", "4"]);
}

#[test]
fn a_seed_permutes_the_timers_of_one_instant_repeatably() {
    let fifo = order(0, 6);
    assert_eq!(order(11, 6), order(11, 6));
    assert!((1..20).any(|seed| order(seed, 6) != fifo));
    let mut sorted = order(11, 6);
    sorted.sort();
    assert_eq!(sorted, fifo);
}

#[test]
fn a_woken_task_runs_until_idle_before_the_next_timer_of_its_instant() {
    let clock = VirtualClock::new(UnixNanos(0), 0);
    let log = Log::default();
    run(&clock, async {
        let (nap, echo) = (clock.sleep_until(MonoNanos(SECOND)), log.clone());
        tokio::spawn(async move {
            nap.await;
            echo.say("first");
            tokio::spawn(async move {
                tokio::task::yield_now().await;
                echo.say("what the first started");
            });
        });
        let (nap, echo) = (clock.sleep_until(MonoNanos(SECOND)), log.clone());
        tokio::spawn(async move {
            nap.await;
            echo.say("second");
        });
        clock.sleep_until_last(MonoNanos(SECOND)).await;
    });
    assert_eq!(log.take(), ["first", "what the first started", "second"]);
}

#[test]
fn the_last_timer_of_an_instant_waits_for_everything_else() {
    let clock = VirtualClock::new(UnixNanos(0), 3);
    let log = Log::default();
    run(&clock, async {
        let (tick, echo) = (clock.clone(), log.clone());
        tokio::spawn(async move {
            for n in 0..3 {
                tick.sleep_until(MonoNanos(SECOND)).await;
                tokio::task::yield_now().await;
                echo.say(format!("tick {n}"));
            }
            tick.sleep_until(MonoNanos(SECOND + 1)).await;
            echo.say("a nanosecond later");
        });
        clock.sleep_until_last(MonoNanos(SECOND)).await;
        log.say("last");
        assert_eq!(clock.now(), MonoNanos(SECOND));
        clock.sleep_until_last(MonoNanos(SECOND + 1)).await;
    });
    assert_eq!(log.take(), ["tick 0", "tick 1", "tick 2", "last", "a nanosecond later"]);
}

#[test]
fn settle_lets_everything_run_but_no_time_pass() {
    let clock = VirtualClock::new(UnixNanos(0), 0);
    let log = Log::default();
    run(&clock, async {
        let (nap, echo) = (sleep(&clock, Duration::from_secs(1)), log.clone());
        tokio::spawn(async move {
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            echo.say("ran");
            nap.await;
            echo.say("slept");
        });
        clock.settle().await;
        assert_eq!(log.take(), ["ran"]);
        assert_eq!((clock.now(), clock.pending_timers()), (MonoNanos(0), 1));
    });
}

#[test]
fn dropped_sleeps_leave_the_heap_and_unpolled_ones_never_enter_it() {
    let clock = VirtualClock::new(UnixNanos(0), 0);
    let unpolled = sleep(&clock, Duration::from_secs(1));
    let mut polled = sleep(&clock, Duration::from_secs(1));
    assert_eq!((&mut polled).now_or_never(), None);
    assert_eq!(clock.pending_timers(), 1);
    drop((polled, unpolled));
    assert_eq!(clock.pending_timers(), 0);
}

#[test]
fn a_hold_keeps_time_still_until_its_owner_is_done() {
    let clock = VirtualClock::new(UnixNanos(0), 0);
    run(&clock, async {
        let (send, receive) = tokio::sync::oneshot::channel();
        let hold = clock.hold();
        let outside = std::thread::spawn(move || send.send(()));
        let nap = async {
            sleep(&clock, Duration::from_secs(1)).await;
            "nap"
        };
        let exchange = async {
            receive.await.unwrap();
            assert_eq!(clock.now(), MonoNanos(0));
            drop(hold);
            sleep(&clock, Duration::from_millis(10)).await;
            "exchange"
        };
        let (nap, exchange) = (std::pin::pin!(nap), std::pin::pin!(exchange));
        let first = futures::future::select(nap, exchange).await.factor_first().0;
        assert_eq!((first, clock.now()), ("exchange", MonoNanos(10_000_000)));
        outside.join().unwrap().unwrap();
    });
    assert_eq!(clock.holds(), 0);
}

#[test]
fn when_nothing_can_ever_happen_the_idle_hook_is_called() {
    let clock = VirtualClock::new(UnixNanos(0), 0);
    let stuck = Arc::new(tokio::sync::Notify::new());
    let hook = stuck.clone();
    clock.set_idle_hook(move || hook.notify_one());
    run(&clock, async {
        let never = clock.sleep_until(MonoNanos(u64::MAX));
        let woken = std::pin::pin!(stuck.notified());
        let first = futures::future::select(never, woken).await;
        assert!(matches!(first, futures::future::Either::Right(_)), "the end of the scale is never reached");
    });
}

#[test]
fn a_stale_waker_does_not_stop_time() {
    let clock = VirtualClock::new(UnixNanos(0), 0);
    run(&clock, async {
        let mut forgotten = sleep(&clock, Duration::from_secs(1));
        assert_eq!((&mut forgotten).now_or_never(), None);
        sleep(&clock, Duration::from_secs(2)).await;
        forgotten.await;
    });
    assert_eq!(clock.now(), MonoNanos(2 * SECOND));
}

#[test]
fn at_the_deadline_the_future_that_is_ready_wins() {
    let clock = VirtualClock::new(UnixNanos(0), 0);
    run(&clock, async {
        let deadline = MonoNanos(SECOND);
        assert!(timeout_at(&clock, deadline, clock.sleep_until(deadline)).await.is_ok());
        let later = clock.now().after(Duration::from_secs(1));
        assert!(timeout_at(&clock, later, futures::future::pending::<()>()).await.is_err());
        assert_eq!(clock.now(), later);
    });
}

#[test]
fn moving_the_wall_clock_moves_nothing_else() {
    let clock = VirtualClock::new(UnixNanos(10 * SECOND), 0);
    run(&clock, async {
        clock.shift_wall(-4 * i64::try_from(SECOND).unwrap());
        sleep(&clock, Duration::from_secs(1)).await;
    });
    assert_eq!((clock.now(), clock.wall()), (MonoNanos(SECOND), UnixNanos(7 * SECOND)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn time_never_runs_backwards_and_every_sleep_ends_on_its_deadline(naps in prop::collection::vec(0u64..50, 1..20), seed: u64) {
        let clock = VirtualClock::new(UnixNanos(0), seed);
        let ends = Arc::new(Mutex::new(Vec::new()));
        run(&clock, async {
            let tasks: Vec<_> = naps.iter().map(|&nap| {
                let (clock, ends) = (clock.clone(), ends.clone());
                tokio::spawn(async move {
                    clock.sleep_until(MonoNanos(nap)).await;
                    ends.lock().unwrap().push((clock.now().0, nap));
                })
            }).collect();
            for task in tasks {
                task.await.unwrap();
            }
        });
        let ends = ends.lock().unwrap();
        prop_assert!(ends.iter().all(|(now, nap)| now == nap));
        prop_assert!(ends.is_sorted_by_key(|(now, _)| *now));
        prop_assert_eq!(ends.len(), naps.len());
    }
}
