//! The conformance suites: one per boundary, run over every driver of it, real and simulated.
//!
//! Invariant: a suite states what any driver must do, in terms of the trait alone; a driver's crate supplies the arms.
//! Deliberately no driver here.

pub mod audit;
pub mod cli;
pub mod clock;
pub mod egress;
pub mod entropy;
pub mod llm;
pub mod mcp;
pub mod search;
pub mod workspace;

pub mod isolate;
