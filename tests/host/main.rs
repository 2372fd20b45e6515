//! The host through its public API, on simulated drivers and virtual time.

#![allow(clippy::unwrap_used, reason = "a broken rig should fail the test at once")]

mod agent_hooks;
mod audit;
mod cascade;
mod config;
mod context;
mod delegation;
mod front;
mod hook_key;
mod host_hooks;
mod judged;
mod laws;
mod lists;
mod memory;
mod modules;
mod names;
mod native_servers;
mod output;
mod rehearsal;
mod reload;
mod router;
mod supervision;
mod support;
mod turn;
