//! The real audit sinks: a file of JSON lines, or an address that takes batches.
//!
//! Invariant: both pass the boundary's conformance suite. Deliberately no buffering: the host does that.

mod file;
mod http;

pub use file::FileAudit;
pub use http::{AuditSetupError, HttpAudit};
