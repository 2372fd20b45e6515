//! The host's functions that the bootstrap is given.
//!
//! Invariant: once a call is killed none of them does anything for the script; they raise the engine's uncatchable
//! interruption instead. Deliberately no `ctx` here: the bootstrap builds it over these functions.

use std::rc::Rc;

use greenroom_boundary::isolate::{CallbackVerdict, OpArgs, OpDecl, OpIndex, OpKind, well_formed_json};
use greenroom_boundary::web::{PARTS, parts_of};
use rquickjs::{Array, Ctx, Error, Function, IntoJs, Object, Result, Value};
use serde_json::json;

use crate::exceptions::Reported;
use crate::link::{Kill, Link, OpResult, ToThread};
use crate::session::eval;

/// The object of host functions.
pub(crate) fn natives<'js>(ctx: &Ctx<'js>, link: &Rc<Link>) -> Result<Object<'js>> {
    let natives = Object::new(ctx.clone())?;
    let own = Rc::clone(link);
    let inline = move |ctx: Ctx<'js>, op: usize, args: Vec<String>| -> Result<Value<'js>> {
        let args = own.arguments(&ctx, args)?;
        let result = own.ops.inline(OpIndex(op), args);
        own.reply(&ctx, result)
    };
    natives.set("inline", Function::new(ctx.clone(), inline)?)?;
    let own = Rc::clone(link);
    let start = move |ctx: Ctx<'js>, op: usize, args: Vec<String>, has_callback: bool| -> Result<f64> {
        own.count_start();
        let args = own.arguments(&ctx, args)?;
        Ok(own.start(OpIndex(op), args, has_callback) as f64)
    };
    natives.set("start", Function::new(ctx.clone(), start)?)?;
    let own = Rc::clone(link);
    let wait = move |ctx: Ctx<'js>, id: f64, dispatch: Function<'js>| -> Result<Value<'js>> {
        loop {
            match own.next_for(id as u64) {
                Some(ToThread::Done { result, .. }) => return own.reply(&ctx, result),
                Some(ToThread::Callback { id, args, reply }) => drop(reply.send(run_callback(&own, &dispatch, id, &args)?)),
                Some(ToThread::Kill) | None => return Err(interrupt(&ctx)),
            }
        }
    };
    natives.set("wait", Function::new(ctx.clone(), wait)?)?;
    let own = Rc::clone(link);
    natives.set("twin", Function::new(ctx.clone(), move |id: f64| own.is_twin(id as u64))?)?;
    let own = Rc::clone(link);
    natives.set("release", Function::new(ctx.clone(), move || own.shared.release())?)?;
    let own = Rc::clone(link);
    natives.set("now", Function::new(ctx.clone(), move || own.ops.now_ms())?)?;
    let own = Rc::clone(link);
    natives.set("random", Function::new(ctx.clone(), move || own.ops.random())?)?;
    let own = Rc::clone(link);
    natives.set("cancel", Function::new(ctx.clone(), move |id: f64| own.cancel(id as u64))?)?;
    let part = |ctx: Ctx<'js>, name: String| -> Result<Value<'js>> {
        match PARTS.iter().find(|part| part.name == name) {
            Some(part) => eval(&ctx, "greenroom:bootstrap", part.source),
            None => Ok(Value::new_undefined(ctx)),
        }
    };
    natives.set("part", Function::new(ctx.clone(), part)?)?;
    let own = Rc::clone(link);
    let console = move |ctx: Ctx<'js>, level: String, text: String| -> Result<()> {
        own.count_output(text.len());
        own.alive(&ctx)?;
        own.ops.console(&level, &text);
        Ok(())
    };
    natives.set("console", Function::new(ctx.clone(), console)?)?;
    let own = Rc::clone(link);
    natives.set("exhausted", Function::new(ctx.clone(), move || own.shared.kill(Kill::Heap))?)?;
    natives.set("isError", Function::new(ctx.clone(), |value: Value<'js>| value.is_error())?)?;
    Ok(natives)
}

/// Runs a callback with these arguments.
pub(crate) fn run_callback<'js>(
    link: &Link,
    dispatch: &Function<'js>,
    id: u64,
    args: &[greenroom_boundary::RawJson],
) -> Result<CallbackVerdict> {
    let texts: Vec<&str> = args.iter().map(|arg| arg.get()).collect();
    if texts.iter().any(|text| text.len() > link.shared.limits.value_bytes) {
        link.shared.kill(Kill::Value);
        return Err(interrupt(dispatch.ctx()));
    }
    let outer = link.meter().and_then(|meter| meter.callback_begins(link.shared.limits.callback_cpu));
    let verdict: Result<Value<'js>> = dispatch.call((id as f64, texts));
    if let Some(meter) = link.meter() {
        meter.callback_ends(outer);
    }
    let verdict = verdict?;
    link.alive(dispatch.ctx())?;
    Ok(match verdict.as_string() {
        Some(text) => CallbackVerdict::Threw(Reported::parse(&text.to_string()?).into()),
        None if verdict.as_int() == Some(0) => CallbackVerdict::Continue,
        None => CallbackVerdict::Stop,
    })
}

/// Raises the interruption that no script can catch. The engine alone can make one, at a poll of its interrupt handler; an
/// endless loop gets there, and the handler says yes, for the call is killed.
pub(crate) fn interrupt(ctx: &Ctx<'_>) -> Error {
    match ctx.eval::<(), _>("for (;;) ;") {
        Ok(()) => Error::Exception,
        Err(error) => error,
    }
}

/// The table as the bootstrap reads it.
pub(crate) fn table_text(table: &[OpDecl]) -> String {
    let ops = table.iter().enumerate().map(|(index, op)| {
        let callback = op.callback.map(|at| json!({ "argument": at.argument, "property": at.property }));
        let parts: Vec<&str> = op.path.split('.').collect();
        json!({
            "index": index, "path": op.path, "parts": parts, "min": op.min_args, "isInline": op.kind == OpKind::Inline,
            "callback": callback,
        })
    });
    let parts = parts_of(table).map(|part| json!([part.name, part.globals]));
    json!({ "ops": ops.collect::<Vec<_>>(), "parts": parts.collect::<Vec<_>>() }).to_string()
}

impl Link {
    /// Interrupts the script if its call is killed.
    fn alive(&self, ctx: &Ctx<'_>) -> Result<()> {
        if self.is_over() { Err(interrupt(ctx)) } else { Ok(()) }
    }

    fn arguments(&self, ctx: &Ctx<'_>, texts: Vec<String>) -> Result<OpArgs> {
        if texts.iter().any(|text| text.len() > self.shared.limits.value_bytes) {
            self.shared.kill(Kill::Value);
        }
        self.count_output(texts.iter().map(String::len).sum());
        self.alive(ctx)?;
        texts
            .into_iter()
            .map(|text| serde_json::value::RawValue::from_string(well_formed_json(text)).map_err(|_| Error::Unknown))
            .collect()
    }

    /// A result as the bootstrap reads it: JSON text, `undefined`, or code, message and class of an error.
    pub(crate) fn reply<'js>(&self, ctx: &Ctx<'js>, result: OpResult) -> Result<Value<'js>> {
        match result {
            Ok(None) => Ok(Value::new_undefined(ctx.clone())),
            Ok(Some(json)) => {
                if json.get().len() > self.shared.limits.value_bytes {
                    self.shared.kill(Kill::Value);
                }
                self.alive(ctx)?;
                json.get().into_js(ctx)
            }
            Err(error) => {
                let parts = Array::new(ctx.clone())?;
                parts.set(0, error.code)?;
                parts.set(1, error.message)?;
                parts.set(2, error.class)?;
                Ok(parts.into_value())
            }
        }
    }
}
