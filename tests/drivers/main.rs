//! The real drivers: their own behaviour, and the conformance suites' real arms.

#![allow(clippy::unwrap_used, reason = "a broken rig should fail the test at once")]

mod audit;
mod cli;
mod egress;
#[cfg(all(feature = "v8", feature = "quickjs"))]
mod isolates;
#[cfg(target_os = "linux")]
mod keeper;
mod llm;
mod mcp;
mod mcp_http;
mod processes;
mod providers;
mod search;
mod system;
mod workspace;
