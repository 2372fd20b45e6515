//! Scenarios, traces, record and replay: the rehearsal around an MCP host.
//!
//! Invariant: a run is judged by its trace alone, and the same scenario with the same seed gives the same trace bytes.
//! The harness knows no host's internals; it drives a [`host::HostUnderTest`].

pub mod host;
pub mod model;
