//! Levels of log messages (RFC 5424).
//!
//! Invariant: they are ordered by severity. Deliberately only the eight that the protocol knows.

use serde::{Deserialize, Serialize};

/// How severe a log message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// For developers.
    Debug,
    /// General information.
    Info,
    /// Normal, but worth a look.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part does not work.
    Critical,
    /// Someone must act at once.
    Alert,
    /// Nothing works.
    Emergency,
}
