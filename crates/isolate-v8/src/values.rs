//! Values across the bridge, as JSON text.
//!
//! Invariant: V8's own JSON functions are used, never the script's globals, and a text over the limit crosses in no direction.
//! Lossy as JSON is: functions inside objects vanish, `NaN` becomes `null`; a function at top level is `undefined`, a symbol is refused.

use std::mem::MaybeUninit;

use greenroom_boundary::RawJson;
use greenroom_boundary::isolate::well_formed_json;
use serde_json::value::{RawValue, to_raw_value};

use crate::state::is_stopped;

/// Why a script's value did not become JSON text.
#[derive(Debug)]
pub(crate) enum ToTextError {
    /// An exception is pending in V8 (a cycle, a BigInt, a `toJSON` that threw).
    Threw,
    /// Longer than the limit.
    TooLarge,
    /// A kind of value that has no JSON form.
    NoForm(&'static str),
}

/// JSON text of a value; `None` for `undefined` and functions. Runs script code (`toJSON`, getters).
pub(crate) fn to_text(
    scope: &mut v8::PinScope<'_, '_>,
    value: v8::Local<'_, v8::Value>,
    limit_bytes: usize,
) -> Result<Option<RawJson>, ToTextError> {
    if value.is_undefined() || value.is_function() {
        return Ok(None);
    }
    if value.is_symbol() {
        return Err(ToTextError::NoForm("a symbol"));
    }
    if let Ok(text) = v8::Local::<v8::String>::try_from(value) {
        return string_text(scope, text, limit_bytes).map(Some);
    }
    if is_stopped() {
        return Err(ToTextError::Threw);
    }
    let text = v8::json::stringify(scope, value).ok_or(ToTextError::Threw)?;
    if text.length() > limit_bytes || text.utf8_length(scope) > limit_bytes {
        return Err(ToTextError::TooLarge);
    }
    let text = text.to_rust_string_lossy(scope);
    // The engine's way to say that the value has no text; real JSON text never reads so.
    if text == "undefined" {
        return Ok(None);
    }
    RawValue::from_string(well_formed_json(text)).map(Some).map_err(|_| ToTextError::NoForm("not JSON"))
}

/// JSON text of a string, without asking V8 for it: the commonest value by far.
fn string_text(scope: &mut v8::Isolate, text: v8::Local<'_, v8::String>, limit_bytes: usize) -> Result<RawJson, ToTextError> {
    if text.length() > limit_bytes {
        return Err(ToTextError::TooLarge);
    }
    let mut buffer = [MaybeUninit::uninit(); 256];
    let text = text.to_rust_cow_lossy(scope, &mut buffer);
    let text = to_raw_value(&*text).map_err(|_| ToTextError::NoForm("not JSON"))?;
    if text.get().len() > limit_bytes { Err(ToTextError::TooLarge) } else { Ok(text) }
}

/// A value of JSON text; `None` with an exception pending.
pub(crate) fn from_text<'s>(scope: &mut v8::PinScope<'s, '_>, text: &RawValue) -> Option<v8::Local<'s, v8::Value>> {
    let inner = text.get().strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    if let Some(inner) = inner.filter(|inner| !inner.contains('\\')) {
        return v8::String::new(scope, inner).map(Into::into);
    }
    let text = v8::String::new(scope, text.get())?;
    v8::json::parse(scope, text)
}

/// A property of an object, `None` if it throws or is absent. Runs script code (getters); the exception stays pending.
pub(crate) fn property<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    object: v8::Local<'_, v8::Object>,
    name: &str,
) -> Option<v8::Local<'s, v8::Value>> {
    if is_stopped() {
        return None;
    }
    let key = v8::String::new(scope, name)?;
    object.get(scope, key.into())
}

/// JSON `null`.
pub(crate) fn null_text() -> RawJson {
    RawValue::NULL.to_owned()
}
