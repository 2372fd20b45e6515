//! The egress boundary: may this address be contacted?
//!
//! Invariant: every outgoing connection of a real driver asks first. Deliberately no name resolution here.

use std::fmt;

/// Where a connection would go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Host name or address as configured, lower case, without brackets.
    pub host: String,
    /// Port number.
    pub port: u16,
    /// Who asks, for the trace and the error: `llm.main`, `mcp.shop`.
    pub purpose: String,
}

/// A destination that the policy forbids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{purpose} may not contact {host}:{port}: {reason}")]
pub struct EgressDenied {
    /// Host that was asked for.
    pub host: String,
    /// Port that was asked for.
    pub port: u16,
    /// Who asked.
    pub purpose: String,
    /// Which rule said no, and how to allow it.
    pub reason: String,
}

impl EgressDenied {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        "EGRESS_DENIED"
    }
}

/// The policy on outgoing connections.
pub trait Egress: Send + Sync + fmt::Debug {
    /// Allows or refuses the destination; never waits.
    fn check(&self, destination: &Destination) -> Result<(), EgressDenied>;
}

/// Refuses everything: the default of every scenario.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAll;

impl Egress for DenyAll {
    fn check(&self, destination: &Destination) -> Result<(), EgressDenied> {
        Err(EgressDenied {
            host: destination.host.clone(),
            port: destination.port,
            purpose: destination.purpose.clone(),
            reason: "egress is denied here".to_owned(),
        })
    }
}
