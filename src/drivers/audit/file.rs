//! An audit sink that is a file: one JSON record a line.
//!
//! Invariant: a batch is one write at the end of the file, made for its owner alone; a line that was cut off by a failure
//! does not swallow the next. Deliberately no rotation: tools for that move the file, and the next batch makes it anew.

use std::path::PathBuf;

use async_trait::async_trait;
use greenroom_boundary::audit::AuditError;
use greenroom_boundary::{AuditSink, CancellationToken, RawJson};
use tokio::io::AsyncWriteExt as _;

/// Appends to a file.
#[derive(Debug)]
pub struct FileAudit {
    path: PathBuf,
    /// Whether the last write may have left half a line.
    torn: tokio::sync::Mutex<bool>,
}

impl FileAudit {
    /// A sink that appends to `path`, which is made at the first batch.
    pub fn new(path: PathBuf) -> Self {
        Self { path, torn: tokio::sync::Mutex::new(false) }
    }

    async fn append(&self, text: &str) -> std::io::Result<()> {
        let mut options = tokio::fs::OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        options.mode(0o600);
        let mut file = options.open(&self.path).await?;
        file.write_all(text.as_bytes()).await?;
        file.flush().await
    }
}

#[async_trait]
impl AuditSink for FileAudit {
    async fn deliver(&self, batch: &[RawJson], cancel: &CancellationToken) -> Result<(), AuditError> {
        if cancel.is_cancelled() {
            return Err(AuditError::Cancelled);
        }
        if batch.is_empty() {
            return Ok(());
        }
        let mut torn = self.torn.lock().await;
        let mut text = if *torn { "\n".to_owned() } else { String::new() };
        for record in batch {
            // Compact JSON has no line breaks of its own; whoever built the record wrote it so.
            text.push_str(record.get());
            text.push('\n');
        }
        *torn = true;
        let written = self.append(&text).await;
        *torn = written.is_err();
        written.map_err(|error| AuditError::Unavailable {
            message: format!("cannot write {}: {error}", self.path.display()),
            retry_after: None,
        })
    }
}
