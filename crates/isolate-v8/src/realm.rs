//! A context made from the snapshot: fresh for one call, or frozen and shared by the calls of one script.
//!
//! Invariant: nothing of a call is in it before the call begins. It has a microtask queue of its own, so jobs that a call leaves behind
//! never run in another one.

use std::rc::Rc;

use crate::snapshot::Snapshot;

/// A context.
pub(crate) struct Realm {
    pub(crate) context: v8::Global<v8::Context>,
    /// Lets V8 notice a stop.
    pub(crate) nudge: v8::Global<v8::Function>,
    /// The constructors of `ctx` objects, by space.
    pub(crate) constructors: v8::Global<v8::Array>,
    /// Takes groups that a call lacks from one of its objects.
    pub(crate) without: v8::Global<v8::Function>,
    pub(crate) queue: Rc<v8::MicrotaskQueueHandle>,
}

impl Realm {
    /// Makes one; `None` if V8 could not, which condemns the isolate.
    pub(crate) fn new(scope: &mut v8::PinScope<'_, '_, ()>, snapshot: Snapshot, is_frozen: bool) -> Option<Self> {
        let queue = v8::MicrotaskQueue::new(scope, v8::MicrotasksPolicy::Explicit);
        let pointer = std::ptr::from_ref::<v8::MicrotaskQueue>(&queue).cast_mut();
        let options = v8::ContextOptions { microtask_queue: Some(pointer), ..v8::ContextOptions::default() };
        let context = v8::Context::new(scope, options);
        context.set_allow_generation_from_strings(false);
        let scope = &mut v8::ContextScope::new(scope, context);
        let install = scope.get_context_data_from_snapshot_once::<v8::Function>(snapshot.install).ok()?;
        let undefined = v8::undefined(scope).into();
        let parts: v8::Local<'_, v8::Array> = install.call(scope, undefined, &[])?.try_into().ok()?;
        let nudge: v8::Local<'_, v8::Function> = parts.get_index(scope, 0)?.try_into().ok()?;
        if is_frozen {
            let freeze: v8::Local<'_, v8::Function> = parts.get_index(scope, 1)?.try_into().ok()?;
            freeze.call(scope, undefined, &[])?;
        }
        let constructors: v8::Local<'_, v8::Array> = parts.get_index(scope, 2)?.try_into().ok()?;
        let without: v8::Local<'_, v8::Function> = parts.get_index(scope, 3)?.try_into().ok()?;
        Some(Self {
            context: v8::Global::new(scope, context),
            nudge: v8::Global::new(scope, nudge),
            constructors: v8::Global::new(scope, constructors),
            without: v8::Global::new(scope, without),
            queue: Rc::new(queue),
        })
    }

    /// Forgets the jobs that a call left behind.
    pub(crate) fn renew_queue(&mut self, scope: &mut v8::PinScope<'_, '_, ()>) {
        let queue = v8::MicrotaskQueue::new(scope, v8::MicrotasksPolicy::Explicit);
        let context = v8::Local::new(scope, &self.context);
        context.set_microtask_queue(&queue);
        self.queue = Rc::new(queue);
    }
}
