//! Judging a run by its trace and its replies.
//!
//! Invariant: nothing here can see a host; the same trace gives the same judgement. What could not have failed is vacuous,
//! and vacuous is failed. Deliberately no verdict on a whole run: that is the runner's.

mod budget;
mod events;
mod hooks;
mod invariants;
mod judgement;
mod laws;
mod possible;
mod reply;
mod subject;

pub use judgement::{Finding, Judgement};
pub use subject::{Facts, Judged, Subject, judge};
