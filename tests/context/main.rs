//! `ctx`: what a scenario cannot say about it: laws, declarations, the words of the reference.
//!
//! Invariant: nothing outside the test is reached but the TypeScript compiler. Deliberately no engine: scenarios/context runs
//! the same operations from scripts, on every engine.

#![allow(clippy::unwrap_used, reason = "a broken rig should fail the test at once")]

mod batch;
mod declarations;
mod deltas;
mod lists;
#[allow(dead_code, reason = "shared with the tests of the host, which use all of it")]
#[path = "../host/support.rs"]
mod support;
mod times;
