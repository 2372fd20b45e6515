//! One isolate on its thread: made from the snapshot, with its limits, and with warm spare contexts.
//!
//! Invariant: it is made, used and dropped on one thread. After a call was stopped or the heap limit was reached it is condemned.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use greenroom_boundary::isolate::Script;

use crate::call::{self, Ahead, Seat};
use crate::coverage::{Counted, Counting};
use crate::debugger::Attached;
use crate::frozen::FrozenRealm;
use crate::inspect::Port;
use crate::memory::{BufferBudget, HeapGuard, SMALLEST_HEAP_BYTES};
use crate::modules;
use crate::natives::external_references;
use crate::realm::Realm;
use crate::snapshot::Snapshot;
use crate::state::{Rejection, ThreadState};
use crate::worker::WorkerContext;

/// Contexts used up before a full collection is worth its time.
const CONTEXTS_PER_COLLECTION: u32 = 32;
/// Contexts used up after which an isolate is replaced, as a bound on slow leaks.
const CALLS_PER_ISOLATE: u32 = 10_000;
/// Frozen calls that leave as much behind as one context.
const FROZEN_CALLS_PER_COLLECTION: u32 = 500;
/// Most frozen contexts kept; the one that was used longest ago goes first.
const MOST_FROZEN: usize = 16;

/// The isolate. Field order matters: everything that refers to the isolate is dropped before it, the guard after it.
pub(crate) struct HostIsolate {
    pub(crate) state: Rc<ThreadState>,
    spares: Vec<Realm>,
    ahead: Vec<Ahead>,
    /// The script that was called last in a fresh context.
    hot: Option<Arc<Script>>,
    frozen: Vec<FrozenRealm>,
    counting: Option<Counting>,
    attached: Option<Attached>,
    pub(crate) isolate: v8::OwnedIsolate,
    pub(crate) guard: Arc<HeapGuard>,
    pub(crate) buffers: Arc<BufferBudget>,
    snapshot: Snapshot,
    wanted_spares: usize,
    /// The limit that was asked for.
    pub(crate) heap_bytes: usize,
    used_since_collection: u32,
    calls: u32,
    frozen_since_collection: u32,
}

impl HostIsolate {
    pub(crate) fn new(context: &WorkerContext, heap_bytes: usize, wanted_spares: usize) -> Self {
        let given_bytes = heap_bytes.max(SMALLEST_HEAP_BYTES);
        let buffers = BufferBudget::new(given_bytes);
        let params = v8::Isolate::create_params()
            .snapshot_blob(context.snapshot.blob.into())
            .external_references(external_references().into())
            .heap_limits(0, given_bytes)
            .allow_atomics_wait(false)
            .array_buffer_allocator(buffers.allocator().make_shared());
        let mut isolate = v8::Isolate::new(params);
        isolate.set_microtasks_policy(v8::MicrotasksPolicy::Explicit);
        isolate.set_capture_stack_trace_for_uncaught_exceptions(true, 10);
        isolate.set_promise_reject_callback(promise_rejected);
        isolate.set_host_import_module_dynamically_callback(modules::refuse_dynamic);
        let guard = Arc::new(HeapGuard::default());
        guard.install(&mut isolate);
        let state = ThreadState::new(context.table, Arc::clone(&context.spaces));
        isolate.set_slot(Rc::clone(&state));
        let counting = context.counted.is_some().then(|| Counting::start(&mut isolate));
        Self {
            state,
            spares: Vec::new(),
            ahead: Vec::new(),
            hot: None,
            frozen: Vec::new(),
            counting,
            attached: None,
            isolate,
            guard,
            buffers,
            snapshot: context.snapshot,
            wanted_spares,
            heap_bytes,
            used_since_collection: 0,
            calls: 0,
            frozen_since_collection: 0,
        }
    }

    /// One for the debugger that waits at the port. It keeps no context ready: what ran before it was announced, nobody sees.
    pub(crate) fn inspected(context: &WorkerContext, heap_bytes: usize, port: Option<&Arc<Port>>) -> Self {
        let mut this = Self::new(context, heap_bytes, 0);
        if let (Some(hub), Some(port)) = (&context.inspector, port) {
            this.attached = Attached::begin(&mut this.isolate, hub, port);
        }
        this
    }

    /// Whether it is the right one for the debugger that is attached now, or for none.
    pub(crate) fn fits_debugger(&self, is_attached: bool) -> bool {
        self.attached.as_ref().map_or(!is_attached, |attached| is_attached && attached.is_current())
    }

    /// A context for one call of a script: a ready one if there is one. `None` if V8 cannot make one.
    pub(crate) fn take_seat(&mut self, script: &Arc<Script>, is_frozen: bool) -> Option<Seat> {
        let same = |known: &Arc<Script>| Arc::ptr_eq(known, script) || known == script;
        if is_frozen {
            self.frozen_since_collection += 1;
            if self.frozen_since_collection.is_multiple_of(FROZEN_CALLS_PER_COLLECTION) {
                self.used_since_collection += 1;
            }
            let place = self.frozen.iter().position(|frozen| same(&frozen.script));
            if let Some(place) = place {
                return Some(Seat::Frozen(self.frozen.remove(place)));
            }
            let realm = self.make_realm(true)?;
            return Some(Seat::Frozen(FrozenRealm { script: Arc::clone(script), realm, bodies: BTreeMap::new() }));
        }
        self.used_since_collection += 1;
        self.calls += 1;
        let is_hot = self.hot.as_ref().is_some_and(same);
        if !is_hot {
            self.ahead.clear();
            self.hot = Some(Arc::clone(script));
        }
        if let Some(ahead) = self.ahead.pop() {
            return Some(Seat::Ahead(ahead));
        }
        match self.spares.pop() {
            Some(realm) => Some(Seat::Fresh(realm)),
            None => self.make_realm(false).map(Seat::Fresh),
        }
    }

    /// Takes back what is used again: the context of a frozen script. A call that failed may have left jobs behind.
    pub(crate) fn give_back(&mut self, seat: Seat, has_failed: bool) {
        let Seat::Frozen(mut frozen) = seat else { return };
        if has_failed {
            v8::scope!(let scope, &mut self.isolate);
            frozen.realm.renew_queue(scope);
        }
        if self.frozen.len() >= MOST_FROZEN {
            self.frozen.remove(0);
            self.used_since_collection += 1;
        }
        self.frozen.push(frozen);
    }

    fn make_realm(&mut self, is_frozen: bool) -> Option<Realm> {
        v8::scope!(let scope, &mut self.isolate);
        Realm::new(scope, self.snapshot, is_frozen)
    }

    /// Makes one spare context if one is missing; false when there is nothing (more) to do.
    pub(crate) fn add_spare(&mut self) -> bool {
        let wanted = self.hot.clone().filter(|script| {
            self.ahead.len() < self.wanted_spares
                && self.state.plans.borrow().find(script).is_some_and(|known| known.may_run_ahead.get() == Some(true))
        });
        if wanted.is_none() && self.spares.len() >= self.wanted_spares {
            return false;
        }
        let Some(realm) = self.make_realm(false) else { return false };
        match wanted {
            Some(script) => {
                let ahead = call::run_ahead(&mut self.isolate, &self.state, realm, &script);
                self.used_since_collection += u32::from(ahead.is_none());
                self.ahead.extend(ahead);
            }
            None => self.spares.push(realm),
        }
        true
    }

    /// Adds what ran of this script since the last time.
    pub(crate) fn count(&self, script: &Script, counted: &Counted) {
        if let Some(counting) = &self.counting {
            counting.take(script, &self.state.prefixes.borrow(), counted);
        }
    }

    /// Contexts that V8 has not freed.
    pub(crate) fn native_contexts(&mut self) -> usize {
        self.isolate.get_heap_statistics().number_of_native_contexts()
    }

    /// Contexts that are alive on purpose.
    pub(crate) fn kept_contexts(&self) -> usize {
        self.spares.len() + self.ahead.len() + self.frozen.len()
    }

    /// Whether calls may have left something behind since the last collection.
    pub(crate) fn has_garbage(&self) -> bool {
        self.used_since_collection > 0 || self.frozen_since_collection > 0
    }

    /// Dead contexts are only freed by a full collection; better now, while nobody waits, than within a call.
    pub(crate) fn wants_collection(&self) -> bool {
        self.used_since_collection >= CONTEXTS_PER_COLLECTION
    }

    /// The full collection.
    pub(crate) fn collect(&mut self) {
        self.isolate.low_memory_notification();
        self.pump_platform();
        (self.used_since_collection, self.frozen_since_collection) = (0, 0);
    }

    /// Runs what V8's platform left for this thread.
    pub(crate) fn pump_platform(&mut self) {
        let platform = v8::V8::get_current_platform();
        while v8::Platform::pump_message_loop(&platform, &self.isolate, false) {}
    }

    /// Whether more than the limit is in use right now.
    pub(crate) fn is_over_limit(&mut self) -> bool {
        self.isolate.get_heap_statistics().used_heap_size() > self.heap_bytes.max(SMALLEST_HEAP_BYTES)
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
