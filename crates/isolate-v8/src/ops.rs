//! The operations of `ctx`, called at once or as promises.
//!
//! Invariant: each looks first whether the call was stopped, and then whether the receiver is a live `ctx` object of this call; a
//! stopped script is unwound without running any more of it. They know the operations only by their table.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use greenroom_boundary::isolate::{OpArgs, OpDecl, OpError, OpIndex, OpKind};
use greenroom_boundary::web::is_web;

use crate::control::KillReason;
use crate::exceptions;
use crate::handles::Handle;
use crate::objects::receiver;
use crate::park;
use crate::protocol::{OpOutcome, ToHost};
use crate::state::{ActiveCall, CompletedOp, PendingOp, active};
use crate::values::{self, ToTextError};

pub(crate) type Args<'s> = v8::FunctionCallbackArguments<'s>;
pub(crate) type Return<'s> = v8::ReturnValue<'s, v8::Value>;

/// Why a host function gives no value.
enum Failure<'s> {
    /// Throw this.
    Throw(v8::Local<'s, v8::Value>),
    /// An exception is already pending.
    Pending,
    /// The call was stopped.
    Killed,
}

/// Unwinds a stopped script: asks V8 again (a catch on the way may have taken the first stop) and enters a function, where V8 notices.
pub(crate) fn halt(scope: &mut v8::PinScope<'_, '_>, call: &ActiveCall) {
    scope.terminate_execution();
    let nudge = v8::Local::new(scope, &call.nudge);
    let undefined = v8::undefined(scope).into();
    let _ = nudge.call(scope, undefined, &[]);
}

/// An operation's method.
pub(crate) fn op<'s>(scope: &mut v8::PinScope<'s, '_>, args: Args<'s>, mut rv: Return<'s>) {
    let Some(call) = active() else { return };
    match run_sync(scope, &call, &args) {
        Ok(Some(value)) => rv.set(value),
        Ok(None) => {}
        Err(failure) => fail(scope, &call, failure),
    }
}

fn fail<'s>(scope: &mut v8::PinScope<'s, '_>, call: &ActiveCall, failure: Failure<'s>) {
    match failure {
        Failure::Killed => halt(scope, call),
        Failure::Pending => {}
        Failure::Throw(value) => {
            scope.throw_exception(value);
        }
    }
}

fn run_sync<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    call: &Rc<ActiveCall>,
    args: &Args<'s>,
) -> Result<Option<v8::Local<'s, v8::Value>>, Failure<'s>> {
    let (index, decl) = checked(scope, call, args)?;
    let (texts, callback) = arguments(scope, call, decl, args)?;
    if call.control.is_killed() {
        return Err(Failure::Killed);
    }
    if decl.kind == OpKind::Inline {
        // A panic must not unwind through V8: that would end the process.
        let outcome = catch_unwind(AssertUnwindSafe(|| call.ops.inline(index, texts))).unwrap_or_else(|_| {
            Err(OpError::new("ERR_INTERNAL", format!("ctx.{} failed inside the host; the host's log says where", decl.path)))
        });
        return settle(scope, call, CompletedOp { outcome, thrown: None });
    }
    let with_callback = callback.is_some();
    may_start(call)?;
    let id = call.new_op(PendingOp { callback, ..PendingOp::default() });
    call.host.send(ToHost::Start { id, op: index, args: texts, callback: with_callback });
    let completed = park::wait_for(scope, call, id).map_err(|_| Failure::Killed)?;
    settle(scope, call, completed)
}

fn settle<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    call: &ActiveCall,
    completed: CompletedOp,
) -> Result<Option<v8::Local<'s, v8::Value>>, Failure<'s>> {
    match outcome_value(scope, call, completed) {
        Ok(value) => Ok(value),
        Err(Some(error)) => Err(Failure::Throw(error)),
        Err(None) => Err(Failure::Pending),
    }
}

/// The script's value of an outcome; `Err(None)` with an exception pending.
pub(crate) fn outcome_value<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    call: &ActiveCall,
    completed: CompletedOp,
) -> Result<Option<v8::Local<'s, v8::Value>>, Option<v8::Local<'s, v8::Value>>> {
    let CompletedOp { outcome, thrown }: CompletedOp = completed;
    let outcome: OpOutcome = outcome;
    match outcome {
        Ok(None) => Ok(None),
        Ok(Some(text)) if text.get().len() > call.limits.value_bytes => Err(Some(too_large(scope, call))),
        Ok(Some(text)) => values::from_text(scope, &text).map(Some).ok_or(None),
        Err(error) => {
            let value = exceptions::make(scope, &error);
            if let Some(cause) = thrown {
                exceptions::set_cause(scope, value, &cause);
            }
            Err(Some(value))
        }
    }
}

fn too_large<'s>(scope: &mut v8::PinScope<'s, '_>, call: &ActiveCall) -> v8::Local<'s, v8::Value> {
    let message = format!("the value is larger than {} bytes", call.limits.value_bytes);
    let error = OpError { code: "HOOK_VALUE_LIMIT".to_owned(), message, class: "RangeError" };
    let value = exceptions::make(scope, &error);
    *call.too_large.borrow_mut() = Some(v8::Global::new(scope, value));
    value
}

fn throw<'s>(scope: &mut v8::PinScope<'s, '_>, code: &str, class: &'static str, message: String) -> Failure<'s> {
    Failure::Throw(exceptions::make(scope, &OpError { code: code.to_owned(), message, class }))
}

/// Stops the call if it has too many operations under way.
fn may_start<'s>(call: &ActiveCall) -> Result<(), Failure<'s>> {
    if call.pending.borrow().len() < call.limits.pending_ops {
        return Ok(());
    }
    call.control.kill(KillReason::PendingOps);
    Err(Failure::Killed)
}

/// The number that a host function was made with.
pub(crate) fn number(args: &Args<'_>) -> usize {
    v8::Local::<v8::Int32>::try_from(args.data()).map_or(usize::MAX, |data| usize::try_from(data.value()).unwrap_or(usize::MAX))
}

/// Checks receiver and number of arguments.
fn checked<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    call: &ActiveCall,
    args: &Args<'s>,
) -> Result<(OpIndex, &'static OpDecl), Failure<'s>> {
    if call.control.is_killed() {
        return Err(Failure::Killed);
    }
    let index = number(args);
    let Some(decl) = call.state.table.get(index) else { return Err(Failure::Pending) };
    match receiver(args.this()) {
        // Behind a global stands no object of `ctx`.
        _ if is_web(decl.path) => {}
        Some((handle, at)) if Some(at) == call.state.spaces.of_op(index) => live(scope, call, handle, decl.path)?,
        _ => {
            let message = format!("ctx.{} was called on something else than its ctx object", decl.path);
            return Err(throw(scope, "ERR_RECEIVER", "TypeError", message));
        }
    }
    let given = usize::try_from(args.length()).unwrap_or(0);
    if given < decl.min_args {
        let message = format!("ctx.{} needs at least {} arguments, it got {given}", decl.path, decl.min_args);
        return Err(throw(scope, "ERR_ARGUMENT", "TypeError", message));
    }
    Ok((OpIndex(index), decl))
}

fn live<'s>(scope: &mut v8::PinScope<'s, '_>, call: &ActiveCall, handle: Handle, path: &str) -> Result<(), Failure<'s>> {
    if handle == call.handle && call.state.handles.borrow().is_live(handle) {
        return Ok(());
    }
    Err(throw(scope, "ERR_RELEASED", "Error", format!("ctx.{path} was called after its ctx was released")))
}

type Arguments = (OpArgs, Option<v8::Global<v8::Function>>);

/// The arguments as JSON text, and the callback.
fn arguments<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    call: &ActiveCall,
    decl: &OpDecl,
    args: &Args<'s>,
) -> Result<Arguments, Failure<'s>> {
    let given = args.length();
    if given <= 0 {
        return Ok((Vec::new(), None));
    }
    let mut texts = Vec::with_capacity(given as usize);
    let mut callback = None;
    let mut bytes = 0;
    for index in 0..given {
        let value = args.get(index);
        if let Some(at) = decl.callback
            && at.argument == index as usize
            && let Ok(object) = v8::Local::<v8::Object>::try_from(value)
        {
            let property = values::property(scope, object, at.property).ok_or(Failure::Pending)?;
            callback = callback_of(scope, decl, at.property, property)?;
        }
        match values::to_text(scope, value, call.limits.value_bytes) {
            Ok(text) => {
                let text = text.unwrap_or_else(values::null_text);
                bytes += text.get().len();
                texts.push(text);
            }
            Err(ToTextError::Threw) => return Err(Failure::Pending),
            Err(ToTextError::TooLarge) => return Err(Failure::Throw(too_large(scope, call))),
            Err(ToTextError::NoForm(what)) => {
                let message = format!("argument {} of ctx.{} is {what}, which has no JSON form", index + 1, decl.path);
                return Err(throw(scope, "ERR_ARGUMENT", "TypeError", message));
            }
        }
    }
    call.count_output(bytes);
    Ok((texts, callback))
}

/// The function that was given; nothing is no callback, anything else is an error.
fn callback_of<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    decl: &OpDecl,
    name: &str,
    value: v8::Local<'s, v8::Value>,
) -> Result<Option<v8::Global<v8::Function>>, Failure<'s>> {
    match v8::Local::<v8::Function>::try_from(value) {
        Ok(function) => Ok(Some(v8::Global::new(scope, function))),
        Err(_) if value.is_null_or_undefined() => Ok(None),
        Err(_) => {
            let message = format!("{name} of ctx.{} must be a function, it is {}", decl.path, value.type_repr());
            Err(throw(scope, "ERR_ARGUMENT", "TypeError", message))
        }
    }
}

/// The method of an operation's promise-returning twin.
pub(crate) fn op_async<'s>(scope: &mut v8::PinScope<'s, '_>, args: Args<'s>, mut rv: Return<'s>) {
    let Some(call) = active() else { return };
    let Some(resolver) = v8::PromiseResolver::new(scope) else { return };
    rv.set(resolver.get_promise(scope).into());
    let started = {
        v8::tc_scope!(let scope, scope);
        match start_async(scope, &call, &args, resolver) {
            Ok(()) => Ok(()),
            Err(Failure::Throw(error)) => Err(Some(error)),
            Err(Failure::Pending) => Err(scope.exception()),
            Err(Failure::Killed) => Err(None),
        }
    };
    if call.control.is_killed() {
        halt(scope, &call);
    } else if let Err(error) = started {
        let error = error.unwrap_or_else(|| v8::undefined(scope).into());
        let _ = resolver.reject(scope, error);
    }
}

fn start_async<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    call: &ActiveCall,
    args: &Args<'s>,
    resolver: v8::Local<'s, v8::PromiseResolver>,
) -> Result<(), Failure<'s>> {
    let (index, decl) = checked(scope, call, args)?;
    let (texts, callback) = arguments(scope, call, decl, args)?;
    if call.control.is_killed() {
        return Err(Failure::Killed);
    }
    let with_callback = callback.is_some();
    may_start(call)?;
    let resolver = Some(v8::Global::new(scope, resolver));
    let id = call.new_op(PendingOp { resolver, callback, thrown: None });
    call.host.send(ToHost::Start { id, op: index, args: texts, callback: with_callback });
    Ok(())
}
