//! The host functions that `bootstrap.js` builds `ctx`, `console`, `Date` and `Math.random` on.
//!
//! Invariant: each looks first whether the call was stopped, and then whether the receiver is a live `ctx` object of this call; a
//! stopped script is unwound without running any more of it. They know the operations only by their table.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use greenroom_boundary::isolate::{OpArgs, OpDecl, OpError, OpIndex, OpKind};

use crate::exceptions;
use crate::handles::Handle;
use crate::park;
use crate::protocol::{OpOutcome, ToHost};
use crate::state::{ActiveCall, CompletedOp, PendingOp, ThreadState};
use crate::values::{self, ToTextError};

/// Internal fields of a `ctx` object: index, generation, space, mark. No other kind of object has four.
const FIELDS: usize = 4;

type Args<'s> = v8::FunctionCallbackArguments<'s>;
type Return<'s> = v8::ReturnValue<'s, v8::Value>;

/// Why a host function gives no value.
enum Failure<'s> {
    /// Throw this.
    Throw(v8::Local<'s, v8::Value>),
    /// An exception is already pending.
    Pending,
    /// The call was stopped.
    Killed,
}

/// The object of host functions for `install`.
pub(crate) fn natives<'s>(scope: &mut v8::PinScope<'s, '_>) -> Option<v8::Local<'s, v8::Object>> {
    let object = v8::Object::new(scope);
    let functions = [
        ("op", v8::Function::new(scope, op)?),
        ("opAsync", v8::Function::new(scope, op_async)?),
        ("release", v8::Function::new(scope, release)?),
        ("make", v8::Function::new(scope, make)?),
        ("console", v8::Function::new(scope, console)?),
        ("now", v8::Function::new(scope, now)?),
        ("random", v8::Function::new(scope, random)?),
    ];
    for (name, function) in functions {
        let key = v8::String::new(scope, name)?;
        object.create_data_property(scope, key.into(), function.into())?;
    }
    Some(object)
}

/// Unwinds a stopped script: asks V8 again (a catch on the way may have taken the first stop) and enters a function, where V8 notices.
pub(crate) fn halt(scope: &mut v8::PinScope<'_, '_>, call: &ActiveCall) {
    scope.terminate_execution();
    let nudge = v8::Local::new(scope, &call.nudge);
    let undefined = v8::undefined(scope).into();
    let _ = nudge.call(scope, undefined, &[]);
}

fn active(scope: &v8::PinScope<'_, '_>) -> Option<(Rc<ThreadState>, Rc<ActiveCall>)> {
    let state = ThreadState::of(scope)?;
    let call = state.active()?;
    Some((state, call))
}

fn op<'s>(scope: &mut v8::PinScope<'s, '_>, args: Args<'s>, mut rv: Return<'s>) {
    let Some((state, call)) = active(scope) else { return };
    let result = run_sync(scope, &state, &call, &args);
    match result {
        Ok(Some(value)) => rv.set(value),
        Ok(None) => rv.set_undefined(),
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
    state: &ThreadState,
    call: &Rc<ActiveCall>,
    args: &Args<'s>,
) -> Result<Option<v8::Local<'s, v8::Value>>, Failure<'s>> {
    let (index, decl) = checked(scope, state, call, args)?;
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

/// Checks receiver and number of arguments.
fn checked<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    state: &ThreadState,
    call: &ActiveCall,
    args: &Args<'s>,
) -> Result<(OpIndex, &'static OpDecl), Failure<'s>> {
    if call.control.is_killed() {
        return Err(Failure::Killed);
    }
    let index = args.get(2).uint32_value(scope).unwrap_or(u32::MAX) as usize;
    let Some(decl) = state.table.get(index) else { return Err(Failure::Pending) };
    let space = args.get(1).int32_value(scope).unwrap_or(-1);
    match receiver(scope, args.get(0)) {
        Some((handle, at)) if at == space => live(scope, state, call, handle, decl.path)?,
        _ => {
            let message = format!("ctx.{} was called on something else than its ctx object", decl.path);
            return Err(throw(scope, "ERR_RECEIVER", "TypeError", message));
        }
    }
    let given = list_length(args.get(3));
    if given < decl.min_args {
        let message = format!("ctx.{} needs at least {} arguments, it got {given}", decl.path, decl.min_args);
        return Err(throw(scope, "ERR_ARGUMENT", "TypeError", message));
    }
    Ok((OpIndex(index), decl))
}

fn live<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    state: &ThreadState,
    call: &ActiveCall,
    handle: Handle,
    path: &str,
) -> Result<(), Failure<'s>> {
    if handle == call.handle && state.handles.borrow().is_live(handle) {
        return Ok(());
    }
    Err(throw(scope, "ERR_RELEASED", "Error", format!("ctx.{path} was called after its ctx was released")))
}

fn receiver(scope: &mut v8::PinScope<'_, '_>, value: v8::Local<'_, v8::Value>) -> Option<(Handle, i32)> {
    let object = v8::Local::<v8::Object>::try_from(value).ok()?;
    if object.internal_field_count() != FIELDS {
        return None;
    }
    let mut numbers = [0; 3];
    for (index, number) in numbers.iter_mut().enumerate() {
        let field = v8::Local::<v8::Value>::try_from(object.get_internal_field(scope, index)?).ok()?;
        *number = v8::Local::<v8::Int32>::try_from(field).ok()?.value();
    }
    Some((Handle { index: numbers[0], generation: numbers[1] }, numbers[2]))
}

fn list_length(list: v8::Local<'_, v8::Value>) -> usize {
    v8::Local::<v8::Array>::try_from(list).map_or(0, |list| list.length() as usize)
}

type Arguments = (OpArgs, Option<v8::Global<v8::Function>>);

/// The arguments as JSON text, and the callback.
fn arguments<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    call: &ActiveCall,
    decl: &OpDecl,
    args: &Args<'s>,
) -> Result<Arguments, Failure<'s>> {
    let mut texts = Vec::new();
    let mut callback = None;
    let Ok(list) = v8::Local::<v8::Array>::try_from(args.get(3)) else { return Ok((texts, callback)) };
    for index in 0..list.length() {
        let value = list.get_index(scope, index).ok_or(Failure::Pending)?;
        if let Some(at) = decl.callback
            && at.argument == index as usize
            && let Ok(object) = v8::Local::<v8::Object>::try_from(value)
        {
            let property = values::property(scope, object, at.property).ok_or(Failure::Pending)?;
            callback = callback_of(scope, decl, at.property, property)?;
        }
        match values::to_text(scope, value, call.limits.value_bytes) {
            Ok(text) => texts.push(text.unwrap_or_else(values::null_text)),
            Err(ToTextError::Threw) => return Err(Failure::Pending),
            Err(ToTextError::TooLarge) => return Err(Failure::Throw(too_large(scope, call))),
            Err(ToTextError::NoForm(what)) => {
                let message = format!("argument {} of ctx.{} is {what}, which has no JSON form", index + 1, decl.path);
                return Err(throw(scope, "ERR_ARGUMENT", "TypeError", message));
            }
        }
    }
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

fn op_async<'s>(scope: &mut v8::PinScope<'s, '_>, args: Args<'s>, mut rv: Return<'s>) {
    let Some((state, call)) = active(scope) else { return };
    let Some(resolver) = v8::PromiseResolver::new(scope) else { return };
    rv.set(resolver.get_promise(scope).into());
    let started = {
        v8::tc_scope!(let scope, scope);
        match start_async(scope, &state, &call, &args, resolver) {
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
    state: &ThreadState,
    call: &ActiveCall,
    args: &Args<'s>,
    resolver: v8::Local<'s, v8::PromiseResolver>,
) -> Result<(), Failure<'s>> {
    let (index, decl) = checked(scope, state, call, args)?;
    let (texts, callback) = arguments(scope, call, decl, args)?;
    if call.control.is_killed() {
        return Err(Failure::Killed);
    }
    let with_callback = callback.is_some();
    let resolver = Some(v8::Global::new(scope, resolver));
    let id = call.new_op(PendingOp { resolver, callback, thrown: None });
    call.host.send(ToHost::Start { id, op: index, args: texts, callback: with_callback });
    Ok(())
}

fn release<'s>(scope: &mut v8::PinScope<'s, '_>, args: Args<'s>, mut rv: Return<'s>) {
    rv.set_undefined();
    let Some((state, call)) = active(scope) else { return };
    if call.control.is_killed() {
        return halt(scope, &call);
    }
    match receiver(scope, args.get(0)) {
        Some((handle, _)) => state.handles.borrow_mut().release(handle),
        None => {
            let failure = throw(scope, "ERR_RECEIVER", "TypeError", "Release was called on something else than ctx".to_owned());
            fail(scope, &call, failure);
        }
    }
}

/// Makes one `ctx` object (of the space given) with the handle of the running call.
fn make<'s>(scope: &mut v8::PinScope<'s, '_>, args: Args<'s>, mut rv: Return<'s>) {
    let Some((state, call)) = active(scope) else { return };
    let Some(space) = args.get(0).int32_value(scope) else { return };
    let class = state.class.borrow().clone();
    let class = if let Some(class) = class {
        v8::Local::new(scope, class)
    } else {
        let class = v8::ObjectTemplate::new(scope);
        class.set_internal_field_count(FIELDS);
        *state.class.borrow_mut() = Some(v8::Global::new(scope, class));
        class
    };
    let Some(object) = class.new_instance(scope) else { return };
    for (index, number) in [call.handle.index, call.handle.generation, space, 0].into_iter().enumerate() {
        let number = v8::Integer::new(scope, number);
        object.set_internal_field(index, number.into());
    }
    rv.set(object.into());
}

fn console<'s>(scope: &mut v8::PinScope<'s, '_>, args: Args<'s>, _rv: Return<'s>) {
    let Some((_, call)) = active(scope) else { return };
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
    Arc::clone(&call.ops).console(&level, &text);
}

fn now<'s>(scope: &mut v8::PinScope<'s, '_>, _args: Args<'s>, mut rv: Return<'s>) {
    rv.set_double(active(scope).map_or(0.0, |(_, call)| call.ops.now_ms()));
}

fn random<'s>(scope: &mut v8::PinScope<'s, '_>, _args: Args<'s>, mut rv: Return<'s>) {
    rv.set_double(active(scope).map_or(0.5, |(_, call)| call.ops.random()));
}
