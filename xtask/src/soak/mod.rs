//! Soaks: a part of the host under load until a leak would show.
//!
//! Invariant: the verdict is made from what the operating system and the host's own counters say, by a rule that is printed.
//! Everything stays on this machine.

mod chart;
mod client;
mod plan;
mod run;
mod sample;
mod verdict;
mod world;

pub(crate) use run::{SoakArgs, run};
