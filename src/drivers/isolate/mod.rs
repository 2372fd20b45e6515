//! Isolation level `process`: a script runs in a child of the host, on the same engine, behind pipes.
//!
//! Invariant: a child works for one script only, one call at a time; after a call that had to be stopped, and whenever
//! what it says makes no sense, it is killed and never used again. What ends a child ends one call, with `HOOK_DIED`.
//! Deliberately no engine of its own: weaker levels go to the engine that it wraps.
//!
//! A host call of the script crosses the pipe and back; the script waits for it there as it would in the host. In both modes of
//! handing over, the child takes one message at a time and says when it waits again, so that neither pipe nor process
//! can disturb the order of events: simulations with this level give the same trace each time.

mod child;
mod engine;
mod exchange;
mod messages;
mod pool;
mod process;
mod remote;

pub use child::{MakeEngine, serve_if_asked};
pub use engine::ProcessIsolates;
