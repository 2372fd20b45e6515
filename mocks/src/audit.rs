//! An audit sink in memory, with failures on demand.
//!
//! Invariant: what it took is kept batch by batch, in order; each planned failure is used up by one delivery. Deliberately
//! no time of its own.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use greenroom_boundary::audit::AuditError;
use greenroom_boundary::{AuditSink, CancellationToken, RawJson};
use serde_json::Value;

/// Keeps what it is given. Clones share one memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryAudit(Arc<Mutex<Memory>>);

#[derive(Debug, Default)]
struct Memory {
    batches: Vec<Vec<Value>>,
    failures: VecDeque<AuditError>,
    is_lost: bool,
}

impl MemoryAudit {
    /// The next delivery fails like this.
    pub fn fail_next(&self, error: AuditError) {
        self.memory(|memory| memory.failures.push_back(error));
    }

    /// Whether every delivery fails from now on.
    pub fn set_lost(&self, is_lost: bool) {
        self.memory(|memory| memory.is_lost = is_lost);
    }

    /// What was taken, batch by batch.
    pub fn batches(&self) -> Vec<Vec<Value>> {
        self.memory(|memory| memory.batches.clone())
    }

    /// What was taken, record by record.
    pub fn records(&self) -> Vec<Value> {
        self.batches().concat()
    }

    fn memory<T>(&self, work: impl FnOnce(&mut Memory) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[async_trait]
impl AuditSink for MemoryAudit {
    async fn deliver(&self, batch: &[RawJson], cancel: &CancellationToken) -> Result<(), AuditError> {
        if cancel.is_cancelled() {
            return Err(AuditError::Cancelled);
        }
        let batch: Vec<Value> = batch.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect();
        self.memory(|memory| {
            if let Some(error) = memory.failures.pop_front() {
                return Err(error);
            }
            if memory.is_lost {
                return Err(AuditError::Unavailable { message: "the sink is away".to_owned(), retry_after: None });
            }
            if !batch.is_empty() {
                memory.batches.push(batch);
            }
            Ok(())
        })
    }
}
