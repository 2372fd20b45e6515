//! Laws: what holds for every config, on the mock engine and on V8.
//!
//! Invariant: a law drives the host by a config alone and judges by what left and what the trace says. Each test is called
//! `law_…`. `PROPTEST_CASES` sets the number of cases (256 without it, on V8 a quarter of them); a failure prints the smallest
//! config, its scripts and the seed. Deliberately no examples: those are in the other modules and in scenarios.

mod agents;
mod chains;
mod check;
mod delegation;
mod delegation_batches;
mod judge;
mod metamorphic;
mod plan;
mod plan_text;
mod separation;
mod twins;
mod world;
