//! A fresh context, made from the snapshot and connected to the host functions.
//!
//! Invariant: used for one call and thrown away; nothing of a call is in it before the call begins.

use crate::ops;
use crate::snapshot::Snapshot;

/// A context that is ready for one call.
pub(crate) struct Realm {
    pub(crate) context: v8::Global<v8::Context>,
    /// Makes the `ctx` object.
    pub(crate) build: v8::Global<v8::Function>,
    /// Lets V8 notice a stop.
    pub(crate) nudge: v8::Global<v8::Function>,
}

impl Realm {
    /// Makes one; `None` if V8 could not, which condemns the isolate.
    pub(crate) fn new(scope: &mut v8::PinScope<'_, '_, ()>, snapshot: Snapshot) -> Option<Self> {
        let context = v8::Context::new(scope, v8::ContextOptions::default());
        context.set_allow_generation_from_strings(false);
        let scope = &mut v8::ContextScope::new(scope, context);
        let install = scope.get_context_data_from_snapshot_once::<v8::Function>(snapshot.install).ok()?;
        let natives = ops::natives(scope)?;
        let undefined = v8::undefined(scope).into();
        let pair: v8::Local<'_, v8::Array> = install.call(scope, undefined, &[natives.into()])?.try_into().ok()?;
        let build: v8::Local<'_, v8::Function> = pair.get_index(scope, 0)?.try_into().ok()?;
        let nudge: v8::Local<'_, v8::Function> = pair.get_index(scope, 1)?.try_into().ok()?;
        Some(Self {
            context: v8::Global::new(scope, context),
            build: v8::Global::new(scope, build),
            nudge: v8::Global::new(scope, nudge),
        })
    }
}
