//! Running scenarios: one case on its own thread and virtual clock, a suite on many.
//!
//! Invariant: a case touches nothing outside its drivers; results come in the order asked for. Deliberately no selection
//! and no files of results here: those are the command's.

mod act;
mod assemble;
mod case;
mod clients;
mod egress;
mod live;
mod mask;
mod mishaps;
mod options;
mod outcome;
mod own_isolate;
mod rig;
mod stage;
mod suite;
mod switch;
mod tapes;

pub use case::{base, rerun, run_case};
pub use live::{LiveDrivers, LiveError, LiveWorld};
pub use options::RunOptions;
pub use outcome::{CaseResult, Excerpt, ExcerptLine, Failure, Place, SuiteResult, Verdict};
pub use suite::run_suite;
