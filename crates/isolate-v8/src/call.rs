//! One call, from a ready context to its value.
//!
//! Invariant: every script step runs while the call's limits are armed; after a stop no further step is made. The microtask queue is
//! empty at the end of a call that was not stopped. It reports; cleaning up is the worker's.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::RawJson;
use greenroom_boundary::isolate::{CallValue, IsolateError, JsException, PassCtx, Script};

use crate::control::own_cpu_time;
use crate::exceptions;
use crate::frozen::{self, FrozenRealm};
use crate::load::{self, Loaded, Ready, caught, load};
use crate::objects;
use crate::park;
use crate::protocol::JobValue;
use crate::realm::Realm;
use crate::state::{ActiveCall, Rejection, ThreadState, take_touched};
use crate::values::{self, ToTextError};

/// Why a call ends early.
#[derive(Debug)]
pub(crate) enum Stop {
    /// It was stopped; the kill switch knows why.
    Killed,
    Error(IsolateError),
}

/// What to do with the script.
#[derive(Debug)]
pub(crate) enum Task {
    Call { function: String, pass_ctx: PassCtx, args: Vec<RawJson> },
    List,
}

/// The context that a call runs in.
pub(crate) enum Seat {
    /// A fresh one.
    Fresh(Realm),
    /// A fresh one in which the script's top level has run already.
    Ahead(Ahead),
    /// The script's own, shared by its calls.
    Frozen(FrozenRealm),
}

impl Seat {
    pub(crate) fn realm(&self) -> &Realm {
        match self {
            Self::Fresh(realm) => realm,
            Self::Ahead(ahead) => &ahead.realm,
            Self::Frozen(frozen) => &frozen.realm,
        }
    }
}

/// A context in which a script's top level has run before any call asked for it.
pub(crate) struct Ahead {
    pub(crate) realm: Realm,
    ready: Ready,
    rejections: Vec<Rejection>,
}

/// A top level that takes longer is run with its call, on that call's account.
const SHORT: Duration = Duration::from_millis(2);

/// Runs a script's top level in a spare context; `None` if that may not be done for this script.
pub(crate) fn run_ahead(isolate: &mut v8::Isolate, state: &ThreadState, realm: Realm, script: &Arc<Script>) -> Option<Ahead> {
    v8::scope!(let scope, isolate);
    let context = v8::Local::new(scope, &realm.context);
    let scope = &mut v8::ContextScope::new(scope, context);
    let known = state.plans.borrow().find(script)?;
    take_touched();
    let loaded = load(scope, state, script, &known, None).ok();
    let rejections = std::mem::take(&mut *state.rejections.borrow_mut());
    match loaded.filter(|_| !take_touched()) {
        Some(loaded) => {
            let ready = loaded.keep(scope);
            Some(Ahead { realm, ready, rejections })
        }
        None => {
            known.may_run_ahead.set(Some(false));
            None
        }
    }
}

/// Runs a task in this context.
pub(crate) fn run(
    isolate: &mut v8::Isolate,
    call: &Rc<ActiveCall>,
    seat: &mut Seat,
    script: &Arc<Script>,
    task: &Task,
) -> Result<JobValue, Stop> {
    let state = Rc::clone(&call.state);
    v8::scope!(let scope, isolate);
    let context = v8::Local::new(scope, &seat.realm().context);
    let scope = &mut v8::ContextScope::new(scope, context);
    let Task::Call { function, pass_ctx, args } = task else {
        return Ok(JobValue::Functions(load_here(scope, &state, call, script)?.functions(scope, script)));
    };
    let function = match seat {
        Seat::Fresh(_) => load_here(scope, &state, call, script)?.function(scope, function),
        Seat::Ahead(ahead) => {
            *state.rejections.borrow_mut() = std::mem::take(&mut ahead.rejections);
            Loaded::of(scope, &state, &ahead.ready).function(scope, function)
        }
        Seat::Frozen(realm) => frozen::function(scope, &state, realm, function, &call.control)?,
    };
    if call.control.is_killed() {
        return Err(Stop::Killed);
    }
    let Some(function) = function else { return Ok(JobValue::Called(CallValue::NoSuchFunction)) };
    let value = invoke(scope, call, function, *pass_ctx, args)?;
    finish(scope, &state, call)?;
    Ok(JobValue::Called(value))
}

/// Runs the top level, and finds out whether it may run ahead of later calls.
fn load_here<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    state: &ThreadState,
    call: &ActiveCall,
    script: &Arc<Script>,
) -> Result<Loaded<'s>, Stop> {
    let known = load::known(scope, state, script, Some(&call.control))?;
    if known.may_run_ahead.get().is_some() {
        return load(scope, state, script, &known, Some(&call.control));
    }
    take_touched();
    let started = own_cpu_time();
    let loaded = load(scope, state, script, &known, Some(&call.control))?;
    let is_short = own_cpu_time().saturating_sub(started) <= SHORT;
    known.may_run_ahead.set(Some(is_short && !take_touched()));
    Ok(loaded)
}

fn invoke<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    call: &Rc<ActiveCall>,
    function: v8::Local<'s, v8::Function>,
    pass_ctx: PassCtx,
    args: &[RawJson],
) -> Result<CallValue, Stop> {
    let arguments = call_arguments(scope, call, pass_ctx, args)?;
    v8::tc_scope!(let scope, scope);
    let undefined = v8::undefined(scope).into();
    let Some(value) = function.call(scope, undefined, &arguments) else {
        let error = thrown(scope, call);
        return Err(error);
    };
    let value = match promise_of(scope, value) {
        Some(promise) => settle(scope, call, promise)?,
        None => value,
    };
    if call.control.is_killed() {
        return Err(Stop::Killed);
    }
    result_text(scope, call, value)
}

/// The promise to wait for: the value itself, or one that follows it if it is an object (it may have a `then`).
fn promise_of<'s>(scope: &mut v8::PinScope<'s, '_>, value: v8::Local<'s, v8::Value>) -> Option<v8::Local<'s, v8::Promise>> {
    if let Ok(promise) = v8::Local::<v8::Promise>::try_from(value) {
        return Some(promise);
    }
    if !value.is_object() || value.is_function() {
        return None;
    }
    let resolver = v8::PromiseResolver::new(scope)?;
    let promise = resolver.get_promise(scope);
    promise.mark_as_handled();
    resolver.resolve(scope, value)?;
    Some(promise)
}

/// The stop of an exception that was just caught.
fn thrown(scope: &mut v8::PinnedRef<'_, v8::TryCatch<'_, '_, v8::HandleScope<'_>>>, call: &ActiveCall) -> Stop {
    if call.control.is_killed() {
        return Stop::Killed;
    }
    let value = scope.exception();
    let exception = caught(scope);
    scope.reset();
    js_error(scope, call, value, exception)
}

fn js_error(
    scope: &mut v8::PinScope<'_, '_>,
    call: &ActiveCall,
    value: Option<v8::Local<'_, v8::Value>>,
    exception: JsException,
) -> Stop {
    if call.control.is_killed() {
        return Stop::Killed;
    }
    let too_large = call.too_large.borrow().as_ref().map(|error| v8::Local::new(scope, error));
    if let (Some(value), Some(error)) = (value, too_large)
        && value.strict_equals(error)
    {
        return Stop::Error(IsolateError::ValueLimit { limit_bytes: call.limits.value_bytes });
    }
    Stop::Error(IsolateError::Js(exception))
}

fn call_arguments<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    call: &ActiveCall,
    pass_ctx: PassCtx,
    args: &[RawJson],
) -> Result<Vec<v8::Local<'s, v8::Value>>, Stop> {
    let mut arguments = Vec::with_capacity(args.len() + 1);
    v8::tc_scope!(let scope, scope);
    let ctx: Option<v8::Local<'s, v8::Value>> = if pass_ctx == PassCtx::No {
        None
    } else {
        match context_object(scope, call) {
            Some(ctx) => Some(ctx.into()),
            None => return Err(failed(scope, call, "ctx could not be made")),
        }
    };
    arguments.extend(ctx.filter(|_| pass_ctx == PassCtx::First));
    for text in args {
        if text.get().len() > call.limits.value_bytes {
            return Err(Stop::Error(IsolateError::ValueLimit { limit_bytes: call.limits.value_bytes }));
        }
        match values::from_text(scope, text) {
            Some(value) => arguments.push(value),
            None => return Err(failed(scope, call, "an argument of the call is not JSON that V8 can read")),
        }
    }
    arguments.extend(ctx.filter(|_| pass_ctx == PassCtx::Last));
    Ok(arguments)
}

fn failed(scope: &mut v8::PinnedRef<'_, v8::TryCatch<'_, '_, v8::HandleScope<'_>>>, call: &ActiveCall, what: &str) -> Stop {
    if call.control.is_killed() {
        return Stop::Killed;
    }
    Stop::Error(IsolateError::Engine { message: format!("{what}: {}", caught(scope)) })
}

/// Makes `ctx` and copies its plain data onto it.
fn context_object<'s>(scope: &mut v8::PinScope<'s, '_>, call: &ActiveCall) -> Option<v8::Local<'s, v8::Object>> {
    let ctx = objects::make(scope, call, 0)?;
    let data = values::from_text(scope, &call.ops.data())?;
    if let Ok(data) = v8::Local::<v8::Object>::try_from(data) {
        let names = data.get_own_property_names(scope, v8::GetPropertyNamesArgs::default())?;
        for index in 0..names.length() {
            let name = names.get_index(scope, index)?;
            let value = data.get(scope, name)?;
            let name = name.to_string(scope)?;
            ctx.create_data_property(scope, name.into(), value)?;
        }
    }
    Some(ctx)
}

fn checkpoint(scope: &mut v8::PinScope<'_, '_>, call: &ActiveCall) -> Result<(), Stop> {
    call.queue.perform_checkpoint(scope);
    if call.control.is_killed() { Err(Stop::Killed) } else { Ok(()) }
}

/// Drives the promise until it is settled, or until nothing can settle it any more.
fn settle<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    call: &Rc<ActiveCall>,
    promise: v8::Local<'s, v8::Promise>,
) -> Result<v8::Local<'s, v8::Value>, Stop> {
    promise.mark_as_handled();
    checkpoint(scope, call)?;
    loop {
        match promise.state() {
            v8::PromiseState::Fulfilled => return Ok(promise.result(scope)),
            v8::PromiseState::Rejected => {
                let value = promise.result(scope);
                let exception = exceptions::read(scope, value, None);
                return Err(js_error(scope, call, Some(value), exception));
            }
            v8::PromiseState::Pending if call.pending.borrow().is_empty() => {
                // What nobody caught, in a timer say, is why.
                judge_rejections(scope, &call.state, call)?;
                return Err(Stop::Error(IsolateError::NeverSettles));
            }
            v8::PromiseState::Pending => {
                park::serve_one(scope, call).map_err(|_| Stop::Killed)?;
                checkpoint(scope, call)?;
            }
        }
    }
}

fn result_text(
    scope: &mut v8::PinScope<'_, '_>,
    call: &ActiveCall,
    value: v8::Local<'_, v8::Value>,
) -> Result<CallValue, Stop> {
    v8::tc_scope!(let scope, scope);
    let text = values::to_text(scope, value, call.limits.value_bytes);
    if call.control.is_killed() {
        return Err(Stop::Killed);
    }
    match text {
        Ok(None) => Ok(CallValue::Undefined),
        Ok(Some(text)) => {
            call.count_output(text.get().len());
            if call.control.is_killed() { Err(Stop::Killed) } else { Ok(CallValue::Json(text)) }
        }
        Err(ToTextError::TooLarge) => Err(Stop::Error(IsolateError::ValueLimit { limit_bytes: call.limits.value_bytes })),
        Err(ToTextError::NoForm(what)) => Err(Stop::Error(IsolateError::NotJson { message: format!("it is {what}") })),
        Err(ToTextError::Threw) => {
            let value = scope.exception();
            let exception = caught(scope);
            // V8 throws its own TypeError from outside of any script; what has a frame is the script's.
            if exception.frames.is_empty() && exception.class == "TypeError" && !call.control.is_killed() {
                return Err(Stop::Error(IsolateError::NotJson { message: exception.message }));
            }
            scope.reset();
            Err(js_error(scope, call, value, exception))
        }
    }
}

/// Lets the last microtasks run and judges rejections that nobody handled.
fn finish(scope: &mut v8::PinScope<'_, '_>, state: &ThreadState, call: &ActiveCall) -> Result<(), Stop> {
    checkpoint(scope, call)?;
    judge_rejections(scope, state, call)
}

/// The first rejection that nobody handled ends the call.
fn judge_rejections(scope: &mut v8::PinScope<'_, '_>, state: &ThreadState, call: &ActiveCall) -> Result<(), Stop> {
    let rejections = std::mem::take(&mut *state.rejections.borrow_mut());
    for rejection in rejections {
        let promise = v8::Local::new(scope, &rejection.promise);
        // A promise marked as handled is the script's result; it has been reported as such.
        if promise.has_handler() {
            continue;
        }
        let value = v8::Local::new(scope, &rejection.value);
        let exception = exceptions::read(scope, value, None);
        return Err(match js_error(scope, call, Some(value), exception) {
            Stop::Error(IsolateError::Js(exception)) => Stop::Error(IsolateError::UnhandledRejection(exception)),
            other => other,
        });
    }
    Ok(())
}
