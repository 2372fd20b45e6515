//! One isolate on its thread: made from the snapshot, with its limits, and with warm spare contexts.
//!
//! Invariant: it is made, used and dropped on one thread. After a call was stopped or the heap limit was reached it is condemned.

use std::rc::Rc;
use std::sync::Arc;

use crate::memory::{BufferBudget, HeapGuard, SMALLEST_HEAP_BYTES};
use crate::realm::Realm;
use crate::snapshot::Snapshot;
use crate::state::{Rejection, ThreadState};
use greenroom_boundary::isolate::OpDecl;

/// Contexts used up before a full collection is worth its time.
const CONTEXTS_PER_COLLECTION: u32 = 32;
/// Calls after which an isolate is replaced, as a bound on slow leaks.
const CALLS_PER_ISOLATE: u32 = 10_000;

/// The isolate. Field order matters: everything that refers to the isolate is dropped before it, the guard after it.
pub(crate) struct HostIsolate {
    pub(crate) state: Rc<ThreadState>,
    spares: Vec<Realm>,
    pub(crate) isolate: v8::OwnedIsolate,
    pub(crate) guard: Arc<HeapGuard>,
    pub(crate) buffers: Arc<BufferBudget>,
    snapshot: Snapshot,
    wanted_spares: usize,
    heap_bytes: usize,
    used_since_collection: u32,
    calls: u32,
}

impl HostIsolate {
    pub(crate) fn new(table: &'static [OpDecl], snapshot: Snapshot, heap_bytes: usize, wanted_spares: usize) -> Self {
        let heap_bytes = heap_bytes.max(SMALLEST_HEAP_BYTES);
        let buffers = BufferBudget::new(heap_bytes);
        let params = v8::Isolate::create_params()
            .snapshot_blob(snapshot.blob.into())
            .heap_limits(0, heap_bytes)
            .allow_atomics_wait(false)
            .array_buffer_allocator(buffers.allocator().make_shared());
        let mut isolate = v8::Isolate::new(params);
        isolate.set_microtasks_policy(v8::MicrotasksPolicy::Explicit);
        isolate.set_capture_stack_trace_for_uncaught_exceptions(true, 10);
        isolate.set_promise_reject_callback(promise_rejected);
        let guard = Arc::new(HeapGuard::default());
        guard.install(&mut isolate);
        let state = ThreadState::new(table);
        isolate.set_slot(Rc::clone(&state));
        Self {
            state,
            spares: Vec::new(),
            isolate,
            guard,
            buffers,
            snapshot,
            wanted_spares,
            heap_bytes,
            used_since_collection: 0,
            calls: 0,
        }
    }

    /// A context for one call.
    pub(crate) fn take_realm(&mut self) -> Option<Realm> {
        self.used_since_collection += 1;
        self.calls += 1;
        match self.spares.pop() {
            Some(realm) => Some(realm),
            None => self.make_realm(),
        }
    }

    fn make_realm(&mut self) -> Option<Realm> {
        v8::scope!(let scope, &mut self.isolate);
        Realm::new(scope, self.snapshot)
    }

    /// Makes one spare context if one is missing; false when there is nothing (more) to do.
    pub(crate) fn add_spare(&mut self) -> bool {
        if self.spares.len() >= self.wanted_spares {
            return false;
        }
        match self.make_realm() {
            Some(realm) => {
                self.spares.push(realm);
                true
            }
            None => false,
        }
    }

    /// Dead contexts are only freed by a full collection; better now, while nobody waits, than within a call.
    pub(crate) fn wants_collection(&self) -> bool {
        self.used_since_collection >= CONTEXTS_PER_COLLECTION
    }

    /// The full collection.
    pub(crate) fn collect(&mut self) {
        self.isolate.low_memory_notification();
        self.pump_platform();
        self.used_since_collection = 0;
    }

    /// Runs what V8's platform left for this thread.
    pub(crate) fn pump_platform(&mut self) {
        let platform = v8::V8::get_current_platform();
        while v8::Platform::pump_message_loop(&platform, &self.isolate, false) {}
    }

    /// Whether more than the limit is in use right now.
    pub(crate) fn is_over_limit(&mut self) -> bool {
        self.isolate.get_heap_statistics().used_heap_size() > self.heap_bytes
    }

    /// Whether it must not be used again.
    pub(crate) fn is_worn(&self) -> bool {
        self.guard.is_exhausted() || self.calls >= CALLS_PER_ISOLATE
    }
}

unsafe extern "C" fn promise_rejected(message: v8::PromiseRejectMessage<'_>) {
    v8::callback_scope!(unsafe scope, &message);
    let Some(state) = scope.get_slot::<Rc<ThreadState>>().cloned() else { return };
    match message.get_event() {
        v8::PromiseRejectEvent::PromiseRejectWithNoHandler => {
            let Some(value) = message.get_value() else { return };
            let promise = v8::Global::new(scope, message.get_promise());
            let value = v8::Global::new(scope, value);
            state.rejections.borrow_mut().push(Rejection { promise, value });
        }
        v8::PromiseRejectEvent::PromiseHandlerAddedAfterReject => {
            let promise = v8::Global::new(scope, message.get_promise());
            state.rejections.borrow_mut().retain(|rejection| rejection.promise != promise);
        }
        _ => {}
    }
}
