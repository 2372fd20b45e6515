//! QuickJS under the isolate boundary's conformance suite, both ways to hand over.

mod engine;

use std::sync::Arc;

use greenroom_boundary::conformance::isolate::{EngineUnderTest, TABLE, cases, conforms, withstands};
use greenroom_boundary::isolate::{HandOff, Isolation};
use greenroom_isolate_quickjs::QuickJs;

fn with_engine(hand_off: HandOff, run: impl AsyncFnOnce(EngineUnderTest)) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let engine = EngineUnderTest { engine: Arc::new(QuickJs::new(TABLE)), hand_off, isolation: Isolation::Context };
    runtime.block_on(run(engine));
}

fn run(hand_off: HandOff) {
    with_engine(hand_off, conforms);
}

#[test]
fn withstands_the_hostile_corpus() {
    with_engine(HandOff::Strict, async |engine| withstands(&engine).await);
}

#[test]
fn strict() {
    run(HandOff::Strict);
}

#[test]
fn concurrent() {
    run(HandOff::Concurrent);
}

#[test]
fn the_suite_is_whole() {
    let mut names: Vec<&str> = cases().iter().map(|case| case.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!((names.len(), count > 80), (count, true));
}
