//! Waiting records, and the task that delivers them.
//!
//! Invariant: never more than `buffer` records wait or are under way; the oldest go first, and their number is told in a
//! record of its own. The task lives only while something waits. Deliberately no threads: time comes from the clock.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_boundary::audit::AuditError;
use greenroom_boundary::clock::{sleep, timeout_at};
use greenroom_boundary::{AuditSink, CancellationToken, Clock, Credentials, Drivers, RawJson};
use greenroom_harness::cassette::stamp;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::config::AuditConfig;

/// Longest wait for the last records when the host ends.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// Longest pause between two tries that the back-off grows to.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Longest pause that a far end may ask for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_mins(10);

/// The audit stream of a host; without a config it takes nothing. Cheap to clone.
#[derive(Clone, Default)]
pub struct AuditLog(Option<Arc<Queue>>);

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "AuditLog(on)" } else { "AuditLog(off)" })
    }
}

pub(super) struct Queue {
    pub(super) config: AuditConfig,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) credentials: Credentials,
    sink: Arc<dyn AuditSink>,
    state: Mutex<State>,
    /// A batch is full, or the host ends.
    wake: Notify,
    cancel: CancellationToken,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<RawJson>,
    under_way: usize,
    dropped: u64,
    closing: bool,
    task: Option<tokio::task::JoinHandle<()>>,
}

impl AuditLog {
    /// The stream of a config.
    pub fn new(config: Option<&AuditConfig>, drivers: &Drivers) -> Self {
        Self(config.map(|config| {
            Arc::new(Queue {
                config: config.clone(),
                clock: drivers.clock.clone(),
                credentials: drivers.credentials.clone(),
                sink: drivers.audit.clone(),
                state: Mutex::default(),
                wake: Notify::new(),
                cancel: CancellationToken::new(),
            })
        }))
    }

    /// Whether anything is written down.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn queue(&self) -> Option<&Arc<Queue>> {
        self.0.as_ref()
    }

    /// Delivers what waits and ends; what cannot be delivered in time is lost, and the log says so.
    pub async fn close(&self) {
        let Some(queue) = &self.0 else { return };
        let task = {
            let mut state = queue.state();
            state.closing = true;
            queue.start(&mut state);
            state.task.take()
        };
        queue.wake.notify_one();
        let Some(mut task) = task else { return };
        let deadline = queue.clock.now().after(CLOSE_WITHIN);
        if timeout_at(queue.clock.as_ref(), deadline, &mut task).await.is_err() {
            queue.cancel.cancel();
            task.abort();
            let state = queue.state();
            tracing::warn!(records = state.waiting.len() + state.under_way, "the audit sink did not take the last records");
        }
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a record.
    pub(super) fn push(self: &Arc<Self>, mut record: Value) {
        self.mask(&mut record);
        let Ok(raw) = to_raw_value(&record) else { return };
        let mut state = self.state();
        if state.waiting.len() + state.under_way >= self.config.buffer {
            state.dropped += 1;
            if state.waiting.pop_front().is_none() {
                return;
            }
        }
        state.waiting.push_back(raw);
        if state.waiting.len() >= self.config.batch {
            self.wake.notify_one();
        }
        self.start(&mut state);
    }

    fn mask(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.credentials.mask(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.mask(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.mask(field)),
            _ => {}
        }
    }

    /// Starts the task, if something waits and none runs.
    fn start(self: &Arc<Self>, state: &mut State) {
        if state.waiting.is_empty() || state.task.is_some() {
            return;
        }
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            state.task = Some(runtime.spawn(self.clone().deliver_all()));
        }
    }

    async fn deliver_all(self: Arc<Self>) {
        loop {
            self.gather().await;
            let (batch, told) = self.take();
            let result = self.deliver(&batch).await;
            let mut state = self.state();
            state.under_way = 0;
            if let Err(error) = result {
                let records = batch.len() - usize::from(told > 0);
                state.dropped += told + records as u64;
                let message = self.credentials.mask(&error.to_string());
                tracing::warn!(code = error.code(), records, "audit records are lost: {message}");
            }
            if state.waiting.is_empty() {
                state.task = None;
                return;
            }
        }
    }

    /// Waits until a batch is full, the oldest record has waited long enough, or the host ends.
    async fn gather(&self) {
        let deadline = self.clock.now().after(self.config.flush);
        let full = async {
            loop {
                {
                    let state = self.state();
                    if state.closing || state.waiting.len() >= self.config.batch {
                        return;
                    }
                }
                self.wake.notified().await;
            }
        };
        // Too late is no failure: what is there goes.
        let _ = timeout_at(self.clock.as_ref(), deadline, Box::pin(full)).await;
    }

    /// The next batch, and how many dropped records its first one tells of.
    fn take(&self) -> (Vec<RawJson>, u64) {
        let mut state = self.state();
        let dropped = std::mem::take(&mut state.dropped);
        let mut batch = Vec::new();
        if dropped > 0 {
            let notice =
                json!({"createdAt": stamp::format(self.clock.wall()), "callType": "audit/dropped", "dropped": dropped});
            batch.extend(to_raw_value(&notice));
        }
        let count = state.waiting.len().min(self.config.batch);
        batch.extend(state.waiting.drain(..count));
        state.under_way = count;
        (batch, dropped)
    }

    async fn deliver(&self, batch: &[RawJson]) -> Result<(), AuditError> {
        let mut pause = self.config.backoff;
        let mut retries = 0;
        loop {
            let error = match self.sink.deliver(batch, &self.cancel).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            let AuditError::Unavailable { retry_after, .. } = &error else { return Err(error) };
            if retries == self.config.max_retries || self.state().closing {
                return Err(error);
            }
            retries += 1;
            let wait = retry_after.map_or(pause, |asked| asked.min(LONGEST_RETRY_AFTER).max(pause));
            self.pause(wait).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Sleeps, unless the host ends: then there is one last try.
    async fn pause(&self, wait: Duration) {
        let mut slept = std::pin::pin!(sleep(self.clock.as_ref(), wait));
        loop {
            tokio::select! {
                biased;
                () = &mut slept => return,
                () = self.wake.notified() => {
                    if self.state().closing {
                        return;
                    }
                }
            }
        }
    }
}
