//! A shared script engine, as one case sees it.
//!
//! Invariant: the counters are of this case's calls alone, though cases on other threads use the same engine. Deliberately
//! unable to see a handle that outlives its call: the engines' own tests do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use async_trait::async_trait;
use greenroom_boundary::isolate::{CallRequest, CallValue, ContextOps, HandOff, IsolateCounters, IsolateError, Limits, Script};
use greenroom_boundary::{CancellationToken, IsolateDriver};

/// An engine with counters of its own.
#[derive(Debug)]
pub(super) struct OwnIsolate {
    inner: Arc<dyn IsolateDriver>,
    active: AtomicUsize,
    finished: AtomicU64,
}

impl OwnIsolate {
    pub(super) fn new(inner: Arc<dyn IsolateDriver>) -> Self {
        Self { inner, active: AtomicUsize::new(0), finished: AtomicU64::new(0) }
    }
}

/// Counts a call until it is dropped, however it ends.
struct Active<'a>(&'a OwnIsolate);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.active.fetch_sub(1, Ordering::SeqCst);
        self.0.finished.fetch_add(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl IsolateDriver for OwnIsolate {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    async fn functions(&self, script: &Arc<Script>, limits: &Limits) -> Result<Vec<String>, IsolateError> {
        self.inner.functions(script, limits).await
    }

    async fn call(
        &self,
        request: CallRequest,
        ctx: Arc<dyn ContextOps>,
        hand_off: HandOff,
        cancel: &CancellationToken,
    ) -> Result<CallValue, IsolateError> {
        self.active.fetch_add(1, Ordering::SeqCst);
        let _active = Active(self);
        self.inner.call(request, ctx, hand_off, cancel).await
    }

    fn counters(&self) -> IsolateCounters {
        let active_calls = self.active.load(Ordering::SeqCst);
        let live_handles = if active_calls == 0 { 0 } else { self.inner.counters().live_handles };
        IsolateCounters { active_calls, live_handles, finished_calls: self.finished.load(Ordering::SeqCst) }
    }
}
