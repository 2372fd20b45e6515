//! The harness from outside: one module per topic.

#![allow(clippy::unwrap_used, reason = "what a test prepares must hold")]

mod cassette_doubles;
mod cassette_format;
mod cassette_replay;
mod cover;
mod drivers;
mod fake_host;
mod faults;
mod reports;
mod runner;
mod snapshots;
mod support;
mod trace;
mod verdicts;
