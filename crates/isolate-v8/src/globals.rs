//! The host functions behind `console`, `Date` and `Math.random`.
//!
//! Invariant: time and chance come from the running call's host, so a context that is made ready before a call knows neither.

use std::sync::Arc;

use crate::ops::{Args, Return, halt};
use crate::state::active;

/// A line of `console`: level and text.
pub(crate) fn console<'s>(scope: &mut v8::PinScope<'s, '_>, args: Args<'s>, _rv: Return<'s>) {
    let Some(call) = active() else { return };
    if call.control.is_killed() {
        return halt(scope, &call);
    }
    let level = args.get(0).to_rust_string_lossy(scope);
    let Ok(text) = v8::Local::<v8::String>::try_from(args.get(1)) else { return };
    let text = if text.length() > call.limits.value_bytes {
        format!("[a line of {} characters, over the limit]", text.length())
    } else {
        text.to_rust_string_lossy(scope)
    };
    call.count_output(text.len());
    if call.control.is_killed() {
        return halt(scope, &call);
    }
    Arc::clone(&call.ops).console(&level, &text);
}

/// `Date.now()`.
pub(crate) fn now<'s>(_scope: &mut v8::PinScope<'s, '_>, _args: Args<'s>, mut rv: Return<'s>) {
    rv.set_double(active().map_or(0.0, |call| call.ops.now_ms()));
}

/// `Math.random()`.
pub(crate) fn random<'s>(_scope: &mut v8::PinScope<'s, '_>, _args: Args<'s>, mut rv: Return<'s>) {
    rv.set_double(active().map_or(0.5, |call| call.ops.random()));
}
