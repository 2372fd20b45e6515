//! The host functions as V8 templates, and the objects of `ctx` that they hang on; made once, in the startup snapshot.
//!
//! Invariant: [`callbacks`] lists every host function in a fixed order, for the isolate that makes the snapshot and for those that
//! wake from it alike; a missing one would leave a dangling pointer in the snapshot. No call is looked at here.

use v8::MapFnTo;

use crate::objects::{self, FIELDS};
use crate::spaces::Spaces;
use crate::{globals, ops, web};
use greenroom_boundary::isolate::{OpDecl, OpKind};

/// The host functions.
#[derive(Clone, Copy)]
struct Callbacks {
    op: v8::FunctionCallback,
    op_async: v8::FunctionCallback,
    sub: v8::FunctionCallback,
    plain: v8::FunctionCallback,
    release: v8::FunctionCallback,
    console: v8::FunctionCallback,
    now: v8::FunctionCallback,
    random: v8::FunctionCallback,
    part: v8::FunctionCallback,
    cancel: v8::FunctionCallback,
    turn: v8::FunctionCallback,
}

/// One place that takes their addresses, so that these are the same whenever they are asked for.
#[inline(never)]
fn callbacks() -> Callbacks {
    Callbacks {
        op: ops::op.map_fn_to(),
        op_async: ops::op_async.map_fn_to(),
        sub: objects::sub.map_fn_to(),
        plain: objects::plain.map_fn_to(),
        release: objects::release.map_fn_to(),
        console: globals::console.map_fn_to(),
        now: globals::now.map_fn_to(),
        random: globals::random.map_fn_to(),
        part: web::part.map_fn_to(),
        cancel: web::cancel.map_fn_to(),
        turn: web::turn.map_fn_to(),
    }
}

/// The addresses that a snapshot may hold.
pub(crate) fn external_references() -> Vec<v8::ExternalReference> {
    let Callbacks { op, op_async, sub, plain, release, console, now, random, part, cancel, turn } = callbacks();
    let all = [op, op_async, sub, plain, release, console, now, random, part, cancel, turn];
    let mut references: Vec<_> = all.into_iter().map(|function| v8::ExternalReference { function }).collect();
    references.push(v8::ExternalReference { pointer: std::ptr::null_mut() });
    references
}

/// What `bootstrap.js` builds the world of: `[methods, spaces, host, parts]`.
pub(crate) fn parts<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    table: &[OpDecl],
    spaces: &Spaces,
) -> Option<[v8::Local<'s, v8::Value>; 4]> {
    let all = callbacks();
    let methods = v8::Array::new(scope, 0);
    for (index, decl) in table.iter().enumerate() {
        let row = v8::Object::new(scope);
        let space = v8::Integer::new(scope, i32::try_from(spaces.of_op(index)?).ok()?);
        put(scope, row, "space", space.into())?;
        let name = decl.path.rsplit('.').next().unwrap_or_default();
        let data = i32::try_from(index).ok()?;
        let sync = function(scope, all.op, name, data, decl.min_args)?;
        put(scope, row, "sync", sync)?;
        if decl.kind == OpKind::Await {
            let later = function(scope, all.op_async, &format!("{name}Async"), data, decl.min_args)?;
            put(scope, row, "later", later)?;
        }
        let property = v8::Boolean::new(scope, decl.path.contains(".*.") && decl.min_args == 1);
        put(scope, row, "property", property.into())?;
        methods.set_index(scope, u32::try_from(index).ok()?, row.into())?;
    }
    let objects = v8::Array::new(scope, 0);
    for (index, space) in spaces.all.iter().enumerate() {
        let row = v8::Object::new(scope);
        let number = i32::try_from(index).ok()?;
        let class = v8::FunctionTemplate::new_raw(scope, all.plain);
        class.instance_template(scope).set_internal_field_count(FIELDS);
        let class = class.get_function(scope)?;
        put(scope, row, "make", class.into())?;
        let parent = v8::Integer::new(scope, i32::try_from(space.parent).ok()?);
        put(scope, row, "parent", parent.into())?;
        let getter = function(scope, all.sub, space.name(), number, 0)?;
        put(scope, row, "getter", getter)?;
        let name = v8::String::new(scope, space.name())?;
        put(scope, row, "name", name.into())?;
        objects.set_index(scope, u32::try_from(index).ok()?, row.into())?;
    }
    let host = v8::Object::new(scope);
    let functions = [
        ("Release", all.release),
        ("console", all.console),
        ("now", all.now),
        ("random", all.random),
        ("part", all.part),
        ("cancel", all.cancel),
        ("turn", all.turn),
    ];
    for (name, callback) in functions {
        let function = function(scope, callback, name, 0, 0)?;
        put(scope, host, name, function)?;
    }
    let parts = web::parts(scope, table)?;
    Some([methods.into(), objects.into(), host.into(), parts])
}

fn function<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    callback: v8::FunctionCallback,
    name: &str,
    data: i32,
    length: usize,
) -> Option<v8::Local<'s, v8::Value>> {
    let data = v8::Integer::new(scope, data);
    let template = v8::FunctionTemplate::builder_raw(callback)
        .data(data.into())
        .length(i32::try_from(length).ok()?)
        .constructor_behavior(v8::ConstructorBehavior::Throw)
        .build(scope);
    let function = template.get_function(scope)?;
    let name = v8::String::new(scope, name)?;
    function.set_name(name);
    Some(function.into())
}

fn put(
    scope: &mut v8::PinScope<'_, '_>,
    object: v8::Local<'_, v8::Object>,
    name: &str,
    value: v8::Local<'_, v8::Value>,
) -> Option<()> {
    let key = v8::String::new(scope, name)?;
    object.create_data_property(scope, key.into(), value).map(|_| ())
}
