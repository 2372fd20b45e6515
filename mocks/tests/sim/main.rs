//! The simulated drivers: their own behaviour, and the conformance suites' simulated arms.

#![allow(clippy::unwrap_used, reason = "a broken rig should fail the test at once")]

mod cli;
mod clock;
mod conformance;
mod entropy;
mod llm;
mod mcp;
