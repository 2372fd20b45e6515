//! Waiting on the isolate's thread: its mailbox, and what the messages do to the script.
//!
//! Invariant: callbacks and settled promises run here only, on the isolate's thread, one at a time; a stop ends every wait. A callback
//! may itself wait here, for an operation of its own.

use std::rc::Rc;

use greenroom_boundary::RawJson;
use greenroom_boundary::isolate::CallbackVerdict;
use tokio::sync::oneshot;

use crate::load::caught;
use crate::ops::outcome_value;
use crate::protocol::{OpId, OpOutcome, ToHost, ToIsolate};
use crate::state::{ActiveCall, CompletedOp};
use crate::values;

/// The call was stopped.
#[derive(Debug)]
pub(crate) struct Killed;

/// Waits until this operation ended, serving everything else that comes meanwhile.
pub(crate) fn wait_for(scope: &mut v8::PinScope<'_, '_>, call: &Rc<ActiveCall>, id: OpId) -> Result<CompletedOp, Killed> {
    loop {
        let completed = call.completed.borrow_mut().remove(&id);
        if let Some(completed) = completed {
            return Ok(completed);
        }
        serve_one(scope, call)?;
    }
}

/// Waits for one message and does what it says.
pub(crate) fn serve_one(scope: &mut v8::PinScope<'_, '_>, call: &Rc<ActiveCall>) -> Result<(), Killed> {
    match call.receive() {
        None | Some(ToIsolate::Killed) => return Err(Killed),
        Some(ToIsolate::Look) => {}
        Some(ToIsolate::Settled { id, outcome }) => settled(scope, call, id, outcome),
        Some(ToIsolate::Callback { id, args, reply }) => called_back(scope, call, id, &args, reply)?,
    }
    if call.control.is_killed() { Err(Killed) } else { Ok(()) }
}

fn settled(scope: &mut v8::PinScope<'_, '_>, call: &Rc<ActiveCall>, id: OpId, outcome: OpOutcome) {
    let Some(op) = call.pending.borrow_mut().remove(&id) else { return };
    let completed = CompletedOp { outcome, thrown: op.thrown };
    let Some(resolver) = op.resolver else {
        call.completed.borrow_mut().insert(id, completed);
        return;
    };
    v8::scope!(let scope, scope);
    v8::tc_scope!(let scope, scope);
    let resolver = v8::Local::new(scope, resolver);
    match outcome_value(scope, call, completed) {
        Ok(value) => {
            let value = value.unwrap_or_else(|| v8::undefined(scope).into());
            let _ = resolver.resolve(scope, value);
        }
        Err(error) => {
            let error = error.or_else(|| scope.exception()).unwrap_or_else(|| v8::undefined(scope).into());
            let _ = resolver.reject(scope, error);
        }
    }
}

fn called_back(
    scope: &mut v8::PinScope<'_, '_>,
    call: &Rc<ActiveCall>,
    id: OpId,
    args: &[RawJson],
    reply: oneshot::Sender<CallbackVerdict>,
) -> Result<(), Killed> {
    let function = call.pending.borrow().get(&id).and_then(|op| op.callback.clone());
    let verdict = match function {
        Some(function) => {
            v8::scope!(let scope, scope);
            let function = v8::Local::new(scope, function);
            run_callback(scope, call, id, function, args)?
        }
        // The operation has ended; nobody listens any more.
        None => CallbackVerdict::Stop,
    };
    call.host.send(ToHost::Verdict { reply, verdict });
    Ok(())
}

fn run_callback<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    call: &Rc<ActiveCall>,
    id: OpId,
    function: v8::Local<'s, v8::Function>,
    args: &[RawJson],
) -> Result<CallbackVerdict, Killed> {
    v8::tc_scope!(let scope, scope);
    let values: Option<Vec<_>> = args.iter().map(|text| values::from_text(scope, text)).collect();
    let undefined = v8::undefined(scope).into();
    let outer = call.control.callback_begins(call.limits.callback_cpu);
    let answer = values.and_then(|values| function.call(scope, undefined, &values));
    call.control.callback_ends(outer);
    if call.control.is_killed() {
        return Err(Killed);
    }
    let Some(answer) = answer else {
        let thrown = scope.exception().map(|value| v8::Global::new(scope, value));
        if let Some(op) = call.pending.borrow_mut().get_mut(&id) {
            op.thrown = thrown;
        }
        let exception = caught(scope);
        return if call.control.is_killed() { Err(Killed) } else { Ok(CallbackVerdict::Threw(exception)) };
    };
    let stop = answer.is_false() || answer.is_number() && answer.number_value(scope) != Some(0.0);
    Ok(if stop { CallbackVerdict::Stop } else { CallbackVerdict::Continue })
}
