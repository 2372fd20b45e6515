//! The objects of `ctx`: making them, knowing them again, and releasing them.
//!
//! Invariant: an object carries a number (handle and space) and nothing else of the host; only objects made here have so many
//! internal fields, and a script has no constructor of them. Whether a handle is live is the table's business.

use std::ffi::c_void;

use greenroom_boundary::isolate::OpError;

use crate::exceptions;
use crate::handles::Handle;
use crate::ops::{Args, Return, halt};
use crate::state::{ActiveCall, active};

/// Internal fields of a `ctx` object; the first holds the number. No other kind of object has four.
pub(crate) const FIELDS: usize = 4;
/// V8 lets embedders tell kinds of pointers apart; there is one kind here.
const TAG: u16 = 1;

/// Makes an object of this space with the call's handle.
pub(crate) fn make<'s>(scope: &mut v8::PinScope<'s, '_>, call: &ActiveCall, space: usize) -> Option<v8::Local<'s, v8::Object>> {
    let constructors = v8::Local::new(scope, &call.constructors);
    let class = constructors.get_index(scope, u32::try_from(space).ok()?)?;
    let class = v8::Local::<v8::Function>::try_from(class).ok()?;
    let object = class.new_instance(scope, &[])?;
    if object.internal_field_count() != FIELDS {
        return None;
    }
    let number = call.handle.pack(space);
    object.set_aligned_pointer_in_internal_field(0, std::ptr::without_provenance::<c_void>(number), TAG);
    let lacks = |at: &&usize| call.state.spaces.all.get(**at).is_some_and(|child| child.parent == space);
    if call.absent.iter().any(|at| lacks(&at)) {
        let names = v8::Array::new(scope, 0);
        for at in call.absent.iter().filter(lacks) {
            let name = v8::String::new(scope, call.state.spaces.all.get(*at)?.name())?;
            names.set_index(scope, names.length(), name.into())?;
        }
        let without = v8::Local::new(scope, &call.without);
        let undefined = v8::undefined(scope).into();
        without.call(scope, undefined, &[object.into(), names.into()])?;
    }
    Some(object)
}

/// The handle and space of an object, if it is one of `ctx`.
pub(crate) fn receiver(object: v8::Local<'_, v8::Object>) -> Option<(Handle, usize)> {
    if object.internal_field_count() != FIELDS {
        return None;
    }
    // SAFETY: an object with so many fields was made by `make`, the only one that can, which set this field before anybody saw it.
    let number = unsafe { object.get_aligned_pointer_from_internal_field(0, TAG) };
    Some(Handle::unpack(number.addr()))
}

/// The constructor's own work: none.
pub(crate) fn plain<'s>(_scope: &mut v8::PinScope<'s, '_>, _args: Args<'s>, _rv: Return<'s>) {}

/// The getter of a group: makes its object at the first look and leaves it on its parent.
pub(crate) fn sub<'s>(scope: &mut v8::PinScope<'s, '_>, args: Args<'s>, mut rv: Return<'s>) {
    let Some(call) = active() else { return };
    if call.control.is_killed() {
        return halt(scope, &call);
    }
    let Some(space) = args.data().uint32_value(scope).map(|space| space as usize) else { return };
    let Some(decl) = call.state.spaces.all.get(space) else { return };
    let parent = args.this();
    match receiver(parent) {
        Some((handle, at)) if handle == call.handle && at == decl.parent && !call.absent.contains(&space) => {}
        _ => return,
    }
    let Some(object) = make(scope, &call, space) else { return };
    if let Some(name) = v8::String::new(scope, decl.name()) {
        // A script may have sealed its ctx; then each look makes an object, as good as any.
        v8::tc_scope!(let scope, scope);
        let kept = v8::PropertyAttribute::READ_ONLY | v8::PropertyAttribute::DONT_ENUM;
        parent.define_own_property(scope, name.into(), object.into(), kept);
    }
    rv.set(object.into());
}

/// `ctx.Release()`.
pub(crate) fn release<'s>(scope: &mut v8::PinScope<'s, '_>, args: Args<'s>, mut rv: Return<'s>) {
    rv.set_undefined();
    let Some(call) = active() else { return };
    if call.control.is_killed() {
        return halt(scope, &call);
    }
    match receiver(args.this()) {
        Some((handle, _)) => call.state.handles.borrow_mut().release(handle),
        None => {
            let message = "Release was called on something else than ctx".to_owned();
            let error = OpError { code: "ERR_RECEIVER".to_owned(), message, class: "TypeError" };
            let value = exceptions::make(scope, &error);
            scope.throw_exception(value);
        }
    }
}
