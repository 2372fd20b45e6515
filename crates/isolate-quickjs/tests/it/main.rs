//! QuickJS under the isolate boundary's conformance suite, both ways to hand over.

mod engine;

use std::sync::Arc;

use greenroom_boundary::conformance::isolate::{EngineUnderTest, TABLE, cases, conforms};
use greenroom_boundary::isolate::HandOff;
use greenroom_isolate_quickjs::QuickJs;

fn run(hand_off: HandOff) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(conforms(EngineUnderTest { engine: Arc::new(QuickJs::new(TABLE)), hand_off }));
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
