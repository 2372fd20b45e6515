//! The V8 arm of the shared isolate suite.

use std::sync::Arc;

use greenroom_boundary::conformance::isolate::{EngineUnderTest, TABLE, conforms};
use greenroom_boundary::isolate::HandOff;
use greenroom_isolate_v8::{V8Engine, V8Options, initialise_v8};

fn run(hand_off: HandOff) {
    let engine = V8Engine::start(initialise_v8(), TABLE, V8Options::default()).expect("the engine starts");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(conforms(EngineUnderTest { engine: Arc::new(engine), hand_off }));
}

#[test]
fn strict() {
    run(HandOff::Strict);
}

#[test]
fn concurrent() {
    run(HandOff::Concurrent);
}
