//! The audit sink: where records of exchanges are written down.
//!
//! Invariant: a batch is delivered whole or not at all, as far as the far end can tell; records keep their order within a
//! batch. Deliberately no buffering and no repeating here: the host does both, for every driver alike.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::{CancellationToken, RawJson};

/// A batch that was not delivered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditError {
    /// It may be delivered later.
    #[error("the audit sink is not available: {message}")]
    Unavailable {
        /// What happened.
        message: String,
        /// Not before this time has passed, as the far end says.
        retry_after: Option<Duration>,
    },
    /// It will never be taken.
    #[error("the audit sink refused the records: {message}")]
    Refused {
        /// What happened.
        message: String,
    },
    /// The caller gave up.
    #[error("the delivery to the audit sink was cancelled")]
    Cancelled,
}

impl AuditError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "AUDIT_UNAVAILABLE",
            Self::Refused { .. } => "AUDIT_REFUSED",
            Self::Cancelled => "AUDIT_CANCELLED",
        }
    }
}

/// Takes records of exchanges.
#[async_trait]
pub trait AuditSink: fmt::Debug + Send + Sync {
    /// Delivers a batch of JSON objects.
    async fn deliver(&self, batch: &[RawJson], cancel: &CancellationToken) -> Result<(), AuditError>;
}

/// Refuses every record: what stands where a run lists no audit sink.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAudit;

#[async_trait]
impl AuditSink for DenyAudit {
    async fn deliver(&self, _batch: &[RawJson], _cancel: &CancellationToken) -> Result<(), AuditError> {
        Err(AuditError::Refused { message: "this run lists no audit sink".to_owned() })
    }
}
