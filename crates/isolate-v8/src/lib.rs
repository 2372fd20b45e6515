//! The V8 engine behind the isolate boundary.
//!
//! Invariant: a call runs in a fresh context on one pinned thread; when it ends, whatever way it ended, its `ctx` handles
//! are dead, its host operations are cancelled, and an isolate that had to be stopped is thrown away, never reused.
//! This is the only crate with `unsafe`; each block says why it is sound. Deliberately no TypeScript, no
//! reading of modules (a script brings what it imports) and no operation of its own: the table and [`ContextOps`] decide what `ctx` offers.
//!
//! Start order matters: [`initialise_v8`] before any thread exists (see there), then [`V8Engine::start`].
//!
//! Cost of a call: on a ready engine the context is taken from warm spares, so a trivial call costs two thread hand-offs
//! plus compiling and running the top level of the script; keep the [`V8Engine`] and its scripts' `Arc` for benchmarks and warm up
//! with a few calls, since the first call on each thread also pays for its isolate.
//!
//! [`ContextOps`]: greenroom_boundary::isolate::ContextOps

mod call;
mod control;
mod counters;
mod coverage;
mod debugger;
mod engine;
mod exceptions;
mod frozen;
mod globals;
mod handles;
mod host_isolate;
mod inspect;
mod load;
mod memory;
mod modules;
mod natives;
mod objects;
mod ops;
mod park;
mod plan;
mod platform;
mod pool;
mod protocol;
mod pump;
mod realm;
mod snapshot;
mod spaces;
mod state;
mod values;
mod watchdog;
mod web;
mod worker;

pub use engine::{V8Census, V8Engine, V8Options};
pub use inspect::{AttachError, DebugSender, DebugSession, InspectorHub};
pub use platform::{V8Initialised, initialise_v8};
