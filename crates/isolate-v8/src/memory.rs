//! Memory limits of one isolate: its heap, and its array buffers, which lie outside the heap.
//!
//! Invariant: reaching the heap limit stops the running call and raises the limit once, for the moment it takes to unwind; such an isolate
//! is never used again. V8 aborts the process when even that is not enough; a process boundary is the only full protection.

use std::alloc::Layout;
use std::ffi::{c_char, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::control::{CallControl, KillReason};

/// Smallest heap that V8 can start with.
pub(crate) const SMALLEST_HEAP_BYTES: usize = 8 << 20;

/// How far the heap may grow while a stopped script unwinds: more than the largest single object of V8.
const UNWIND_BYTES: usize = 2 << 30;

/// Told by V8 when the heap limit is near. Lives as long as its isolate.
#[derive(Debug, Default)]
pub(crate) struct HeapGuard {
    running: Mutex<Option<Arc<CallControl>>>,
    exhausted: AtomicBool,
}

impl HeapGuard {
    /// Says which call runs now.
    pub(crate) fn set_running(&self, call: Option<Arc<CallControl>>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = call;
    }

    /// Whether the limit has ever been reached.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Acquire)
    }

    /// Stops the call. Where it was stopped for its memory before and has used up what it was given to unwind, it is not unwinding:
    /// then its thread stops here for good, so that it takes no more, and the watchdog gives it up.
    fn near_limit(&self) {
        let was_exhausted = self.exhausted.swap(true, Ordering::AcqRel);
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(call) = running else { return };
        if was_exhausted && call.is_killed() {
            loop {
                std::thread::park();
            }
        }
        call.kill(KillReason::Heap);
    }

    /// Installs the guard; the returned box must outlive the isolate.
    pub(crate) fn install(self: &Arc<Self>, isolate: &mut v8::Isolate) {
        isolate.add_near_heap_limit_callback(near_heap_limit, Arc::as_ptr(self) as *mut c_void);
        isolate.set_oom_error_handler(out_of_memory);
    }
}

unsafe extern "C" fn near_heap_limit(data: *mut c_void, current_bytes: usize, _initial_bytes: usize) -> usize {
    // SAFETY: `data` is the guard given in `install`; `HostIsolate` keeps its `Arc` until after the isolate is disposed.
    let guard = unsafe { &*data.cast::<HeapGuard>() };
    guard.near_limit();
    current_bytes.saturating_add(UNWIND_BYTES)
}

unsafe extern "C" fn out_of_memory(_location: *const c_char, details: &v8::OomDetails) {
    tracing::error!(heap = details.is_heap_oom, "a script needed more memory than V8 could unwind from; the process ends");
}

/// Counts the bytes of array buffers of one isolate and refuses what is over its budget; V8 then collects garbage, tries again, and
/// throws a RangeError.
#[derive(Debug)]
pub(crate) struct BufferBudget {
    used_bytes: AtomicUsize,
    limit_bytes: AtomicUsize,
    refused: AtomicBool,
}

impl BufferBudget {
    pub(crate) fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(Self {
            used_bytes: AtomicUsize::new(0),
            limit_bytes: AtomicUsize::new(limit_bytes),
            refused: AtomicBool::new(false),
        })
    }

    /// Sets the budget of the next call. What dead buffers of earlier ones still hold is collected before anything is refused.
    pub(crate) fn set_limit(&self, limit_bytes: usize) {
        self.limit_bytes.store(limit_bytes, Ordering::Release);
    }

    /// Whether a request was refused since the last question.
    pub(crate) fn take_refused(&self) -> bool {
        self.refused.swap(false, Ordering::AcqRel)
    }

    /// An allocator for V8 that draws on this budget.
    pub(crate) fn allocator(self: &Arc<Self>) -> v8::UniqueRef<v8::Allocator> {
        let handle = Arc::into_raw(Arc::clone(self));
        // SAFETY: `handle` is an `Arc` of the type that `VTABLE` is for; `drop_budget` gives it back.
        unsafe { v8::new_rust_allocator(handle, &VTABLE) }
    }

    fn take(&self, bytes: usize, allocate: impl FnOnce(Layout) -> *mut u8) -> *mut c_void {
        let Ok(layout) = buffer_layout(bytes) else { return std::ptr::null_mut() };
        let limit_bytes = self.limit_bytes.load(Ordering::Acquire);
        let within = |used: usize| used.checked_add(bytes).filter(|total| *total <= limit_bytes);
        if self.used_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, within).is_err() {
            self.refused.store(true, Ordering::Release);
            return std::ptr::null_mut();
        }
        let data = allocate(layout);
        if data.is_null() {
            self.used_bytes.fetch_sub(bytes, Ordering::AcqRel);
        }
        data.cast()
    }
}

/// Never empty, because the system allocator must not be asked for nothing.
fn buffer_layout(bytes: usize) -> Result<Layout, std::alloc::LayoutError> {
    Layout::from_size_align(bytes.max(1), 16)
}

static VTABLE: v8::RustAllocatorVtable<BufferBudget> =
    v8::RustAllocatorVtable { allocate, allocate_uninitialized, free, drop: drop_budget };

unsafe extern "C" fn allocate(budget: &BufferBudget, bytes: usize) -> *mut c_void {
    // SAFETY: the layout is never empty.
    budget.take(bytes, |layout| unsafe { std::alloc::alloc_zeroed(layout) })
}

unsafe extern "C" fn allocate_uninitialized(budget: &BufferBudget, bytes: usize) -> *mut c_void {
    // SAFETY: the layout is never empty.
    budget.take(bytes, |layout| unsafe { std::alloc::alloc(layout) })
}

unsafe extern "C" fn free(budget: &BufferBudget, data: *mut c_void, bytes: usize) {
    if let Ok(layout) = buffer_layout(bytes) {
        // SAFETY: V8 frees with the pointer and length that it allocated with, so the layout is the same.
        unsafe { std::alloc::dealloc(data.cast(), layout) };
    }
    budget.used_bytes.fetch_sub(bytes, Ordering::AcqRel);
}

unsafe extern "C" fn drop_budget(budget: *const BufferBudget) {
    // SAFETY: the pointer is the one that `allocator` made of an `Arc`, and V8 gives it back once.
    drop(unsafe { Arc::from_raw(budget) });
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;
    use crate::counters::Counters;
    use crate::protocol::host_channel;

    /// A script that goes on taking memory after it was stopped is held where it is.
    #[test]
    fn the_limit_is_raised_once_for_a_stopped_call() {
        let (guard, (host, _inbox)) = (Arc::new(HeapGuard::default()), host_channel());
        let control = Arc::new(CallControl::new(host, Arc::<Counters>::default()));
        guard.set_running(Some(Arc::clone(&control)));
        let (passed, passes) = mpsc::channel();
        std::thread::spawn(move || {
            for _ in 0..2 {
                guard.near_limit();
                let _ = passed.send(());
            }
        });
        assert!(passes.recv().is_ok(), "the first time it may unwind");
        assert!(control.is_killed());
        // That nothing comes can only be waited for; a thread that is not held is back within microseconds.
        assert!(passes.recv_timeout(Duration::from_millis(200)).is_err(), "the second time it is held");
    }
}
