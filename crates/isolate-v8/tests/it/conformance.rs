//! The V8 arm of the shared isolate suite and of the hostile corpus, at each level.

use std::sync::Arc;

use greenroom_boundary::conformance::isolate::{EngineUnderTest, TABLE, conforms, withstands};
use greenroom_boundary::isolate::{HandOff, Isolation};
use greenroom_isolate_v8::{V8Engine, V8Options, initialise_v8};
use test_case::test_case;

fn with_engine(hand_off: HandOff, isolation: Isolation, run: impl AsyncFnOnce(EngineUnderTest)) {
    let engine = V8Engine::start(initialise_v8(), TABLE, V8Options::default()).expect("the engine starts");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(run(EngineUnderTest { engine: Arc::new(engine), hand_off, isolation }));
}

#[test_case(HandOff::Strict, Isolation::Frozen; "strict, frozen")]
#[test_case(HandOff::Strict, Isolation::Context; "strict, context")]
#[test_case(HandOff::Strict, Isolation::Isolate; "strict, isolate")]
#[test_case(HandOff::Concurrent, Isolation::Frozen; "concurrent, frozen")]
#[test_case(HandOff::Concurrent, Isolation::Context; "concurrent, context")]
fn suite(hand_off: HandOff, isolation: Isolation) {
    with_engine(hand_off, isolation, conforms);
}

#[test_case(HandOff::Strict, Isolation::Frozen; "strict, frozen")]
#[test_case(HandOff::Concurrent, Isolation::Context; "concurrent, context")]
#[test_case(HandOff::Strict, Isolation::Isolate; "strict, isolate")]
fn corpus(hand_off: HandOff, isolation: Isolation) {
    with_engine(hand_off, isolation, async |engine| withstands(&engine).await);
}
