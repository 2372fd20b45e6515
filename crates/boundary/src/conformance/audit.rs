//! What any audit sink must do.
//!
//! Invariant: the suite reads back what a far end got, in order. Deliberately nothing about repeating: that is the host's.

use async_trait::async_trait;
use serde_json::Value;
use serde_json::value::to_raw_value;

use crate::audit::AuditError;
use crate::{AuditSink, CancellationToken, RawJson};

/// A sink with its far end.
#[async_trait]
pub trait AuditStage: Send + Sync {
    /// A sink whose far end takes everything.
    async fn sink(&self) -> Box<dyn AuditSink>;

    /// What the far end got, record by record.
    async fn got(&self) -> Vec<Value>;

    /// A sink whose far end cannot be reached.
    async fn lost(&self) -> Box<dyn AuditSink>;
}

/// Runs the whole suite; `fresh` makes a stage whose far end has got nothing yet.
pub async fn all<S: AuditStage>(fresh: impl Fn() -> S) {
    records_arrive_once_and_in_order(&fresh()).await;
    an_empty_batch_is_no_record(&fresh()).await;
    a_far_end_that_is_lost_may_be_tried_again(&fresh()).await;
    a_cancelled_delivery_ends(&fresh()).await;
}

fn record(value: &Value) -> RawJson {
    to_raw_value(value).expect("a JSON value")
}

/// Batches arrive whole, one behind the other.
pub async fn records_arrive_once_and_in_order(stage: &impl AuditStage) {
    let sink = stage.sink().await;
    let records: Vec<Value> = (0..5).map(|n| serde_json::json!({"n": n, "text": "two\nlines, «ü»"})).collect();
    let raw: Vec<RawJson> = records.iter().map(record).collect();
    for batch in raw.chunks(2) {
        sink.deliver(batch, &CancellationToken::new()).await.expect("a delivery");
    }
    assert_eq!(stage.got().await, records);
}

/// Nothing to tell is nothing told.
pub async fn an_empty_batch_is_no_record(stage: &impl AuditStage) {
    stage.sink().await.deliver(&[], &CancellationToken::new()).await.expect("a delivery");
    assert_eq!(stage.got().await, Vec::<Value>::new());
}

/// A far end that is away is no refusal.
pub async fn a_far_end_that_is_lost_may_be_tried_again(stage: &impl AuditStage) {
    let error = stage.lost().await.deliver(&[record(&Value::Null)], &CancellationToken::new()).await.expect_err("an error");
    assert!(matches!(error, AuditError::Unavailable { .. }), "{error}");
    assert_eq!(error.code(), "AUDIT_UNAVAILABLE");
}

/// Nobody waits for a delivery that was given up, and nothing of it arrives later.
pub async fn a_cancelled_delivery_ends(stage: &impl AuditStage) {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let result = stage.sink().await.deliver(&[record(&Value::Null)], &cancel).await;
    assert_eq!(result, Err(AuditError::Cancelled));
    assert_eq!(stage.got().await, Vec::<Value>::new());
}
