//! The command as people run it: each test starts the built program.
//!
//! Invariant: a test leaves no process behind and writes only into its own folder. Deliberately no look inside: what a
//! command prints, writes and returns is what counts.

#![allow(clippy::unwrap_used, reason = "a broken rig should fail the test at once")]

mod checks;
mod engines;
mod hook_run;
mod http;
#[cfg(feature = "v8")]
mod inspect;
mod mock;
mod questions;
mod record;
mod reload;
mod replay;
mod reports;
mod scenarios;
mod serve;
mod stdio;
mod support;
mod traces;
mod watch;
