//! The host functions behind the web's globals: compiling a part, dropping an operation, telling calls apart.
//!
//! Invariant: a part is compiled under the name of the engine's own code, so its frames are left out of stacks. What the operations do
//! is the table's business.

use greenroom_boundary::isolate::OpDecl;
use greenroom_boundary::web::{PARTS, parts_of};

use crate::load::origin;
use crate::ops::{Args, Return, halt};
use crate::protocol::ToHost;
use crate::snapshot::BOOTSTRAP_NAME;
use crate::state::{active, is_stopped};

/// The parts that a table can have: `[[name, [global, …]], …]`.
pub(crate) fn parts<'s>(scope: &mut v8::PinScope<'s, '_>, table: &[OpDecl]) -> Option<v8::Local<'s, v8::Value>> {
    let mut rows = Vec::new();
    for part in parts_of(table) {
        let mut names = Vec::new();
        for name in part.globals {
            names.push(v8::String::new(scope, name)?.into());
        }
        let row = [v8::String::new(scope, part.name)?.into(), v8::Array::new_with_elements(scope, &names).into()];
        rows.push(v8::Array::new_with_elements(scope, &row).into());
    }
    Some(v8::Array::new_with_elements(scope, &rows).into())
}

/// The function of a part, by name.
pub(crate) fn part<'s>(scope: &mut v8::PinScope<'s, '_>, args: Args<'s>, mut rv: Return<'s>) {
    // A part may be made ahead of a call: it asks the host for nothing.
    if is_stopped() {
        return active().map_or((), |call| halt(scope, &call));
    }
    let name = args.get(0).to_rust_string_lossy(scope);
    let Some(part) = PARTS.iter().find(|part| part.name == name) else { return };
    let compiled = (|| {
        let file = v8::String::new(scope, BOOTSTRAP_NAME)?;
        let source = v8::String::new(scope, part.source)?;
        let origin = origin(scope, file, false, 0);
        v8::Script::compile(scope, source, Some(&origin))?.run(scope)
    })();
    if let Some(function) = compiled {
        rv.set(function);
    }
}

/// Drops the operation of a promise.
pub(crate) fn cancel<'s>(scope: &mut v8::PinScope<'s, '_>, args: Args<'s>, _rv: Return<'s>) {
    let Some(call) = active() else { return };
    let promise = args.get(0);
    let found = call.pending.borrow().iter().find_map(|(id, op)| {
        let resolver = v8::Local::new(scope, op.resolver.as_ref()?);
        (resolver.get_promise(scope) == promise).then_some(*id)
    });
    if let Some(id) = found {
        // Dropped outside of the cell's borrow.
        let op = call.pending.borrow_mut().remove(&id);
        drop(op);
        call.host.send(ToHost::Cancel(id));
    }
}

/// A number that differs from call to call.
pub(crate) fn turn<'s>(_scope: &mut v8::PinScope<'s, '_>, _args: Args<'s>, mut rv: Return<'s>) {
    rv.set_double(
        active().map_or(0.0, |call| f64::from(call.handle.index) * f64::from(1 << 30) + f64::from(call.handle.generation)),
    );
}
