//! Many cases on many threads.
//!
//! Invariant: results stand in the order of the cases, and no case's trace depends on how many run at once. Deliberately
//! no selection.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{CaseResult, RunOptions, SuiteResult, act, run_case};
use crate::host::HostFactory;
use crate::load::ScenarioCase;

/// Runs the cases, at most `jobs` at once. `progress` hears of each as it ends, in no fixed order.
pub fn run_suite(
    cases: &[Arc<ScenarioCase>],
    factory: &Arc<dyn HostFactory>,
    options: &RunOptions,
    jobs: usize,
    progress: &(dyn Fn(&CaseResult) + Sync),
) -> SuiteResult {
    let started = act::wall_now();
    let next = AtomicUsize::new(0);
    let slots: Vec<Mutex<Option<CaseResult>>> = cases.iter().map(|_| Mutex::new(None)).collect();
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, cases.len().max(1)) {
            scope.spawn(|| {
                while let Some((case, slot)) = take(cases, &slots, &next) {
                    let result = run_case(case, factory, options);
                    progress(&result);
                    *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
                }
            });
        }
    });
    let results = slots.into_iter().filter_map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    SuiteResult { cases: results.collect(), wall: started.elapsed() }
}

fn take<'s>(
    cases: &'s [Arc<ScenarioCase>],
    slots: &'s [Mutex<Option<CaseResult>>],
    next: &AtomicUsize,
) -> Option<(&'s Arc<ScenarioCase>, &'s Mutex<Option<CaseResult>>)> {
    let index = next.fetch_add(1, Ordering::SeqCst);
    cases.get(index).zip(slots.get(index))
}
