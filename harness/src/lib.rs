//! Scenarios, traces, record and replay: the rehearsal around an MCP host.
//!
//! Invariant: a run is judged by its trace alone, and the same scenario with the same seed gives the same trace bytes.
//! The harness knows no host's internals; it drives a [`host::HostUnderTest`].

pub mod cassette;
pub mod cover;
pub mod expect;
pub mod faults;
pub mod filter;
pub mod host;
pub mod live;
pub mod load;
pub mod model;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
pub mod snapshot;
pub mod trace;
