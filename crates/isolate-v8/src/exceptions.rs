//! Exceptions in both directions: what a script threw as a plain [`JsException`], and host errors as script errors.
//!
//! Invariant: frames come from V8's structured stack, never from parsing text; frames of the engine's own code are left out.
//! Reading an exception may run getters of the script, so it happens while the call's limits are still armed.

use greenroom_boundary::isolate::{JsException, OpError, StackFrame};

use crate::snapshot::BOOTSTRAP_NAME;
use crate::values::property;

/// Most frames kept.
const FRAMES: usize = 10;
/// Deepest chain of causes kept.
const CAUSES: usize = 8;
/// Longest message kept, in UTF-16 units.
const MESSAGE_UNITS: usize = 16 << 10;

/// Reads an exception. `message` is V8's report of it, for what carries no stack itself (a syntax error, a thrown number).
pub(crate) fn read(
    scope: &mut v8::PinScope<'_, '_>,
    value: v8::Local<'_, v8::Value>,
    message: Option<v8::Local<'_, v8::Message>>,
) -> JsException {
    let mut exception = read_chain(scope, value, CAUSES);
    if exception.frames.is_empty()
        && let Some(frame) = message.and_then(|message| message_frame(scope, message))
    {
        exception.frames.push(frame);
    }
    exception
}

/// An exception that is only a text.
pub(crate) fn plain(message: impl Into<String>) -> JsException {
    JsException { class: "Error".to_owned(), message: message.into(), code: None, frames: Vec::new(), cause: None }
}

fn read_chain(scope: &mut v8::PinScope<'_, '_>, value: v8::Local<'_, v8::Value>, budget: usize) -> JsException {
    v8::tc_scope!(let scope, scope);
    let Ok(object) = v8::Local::<v8::Object>::try_from(value) else {
        return plain(detail(scope, value));
    };
    let is_error = value.is_native_error();
    let class = if is_error { class_of(scope, object) } else { "Error".to_owned() };
    let message = message_of(scope, object, is_error);
    let code = property(scope, object, "code").filter(|code| code.is_string() || code.is_number());
    let code = code.map(|code| detail(scope, code));
    let cause = property(scope, object, "cause").filter(|cause| budget > 0 && is_error && !cause.is_null_or_undefined());
    let cause = cause.map(|cause| Box::new(read_chain(scope, cause, budget - 1)));
    JsException { class, message, code, frames: frames_of(scope, value), cause }
}

/// Its own `name` if it has a telling one, else the name of its constructor: `class Denied extends Error` is `Denied`.
fn class_of(scope: &mut v8::PinScope<'_, '_>, object: v8::Local<'_, v8::Object>) -> String {
    let name = property(scope, object, "name").filter(|name| name.is_string()).map(|name| detail(scope, name));
    match name {
        Some(name) if !name.is_empty() && name != "Error" => name,
        _ => {
            let constructor = object.get_constructor_name().to_rust_string_lossy(scope);
            if constructor.is_empty() || constructor == "Object" { "Error".to_owned() } else { constructor }
        }
    }
}

fn message_of(scope: &mut v8::PinScope<'_, '_>, object: v8::Local<'_, v8::Object>, is_error: bool) -> String {
    if let Some(text) = property(scope, object, "message").filter(|text| text.is_string()) {
        return detail(scope, text);
    }
    if is_error {
        return String::new();
    }
    match crate::values::to_text(scope, object.into(), MESSAGE_UNITS) {
        Ok(Some(text)) => text.get().to_owned(),
        _ => detail(scope, object.into()),
    }
}

/// Text without running script code, cut to a sane length.
fn detail(scope: &mut v8::PinScope<'_, '_>, value: v8::Local<'_, v8::Value>) -> String {
    let Some(text) = value.to_detail_string(scope) else { return String::new() };
    let text = text.to_rust_string_lossy(scope);
    match text.char_indices().nth(MESSAGE_UNITS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn frames_of(scope: &mut v8::PinScope<'_, '_>, value: v8::Local<'_, v8::Value>) -> Vec<StackFrame> {
    let Some(stack) = v8::Exception::get_stack_trace(scope, value) else { return Vec::new() };
    let mut frames = Vec::new();
    for index in 0..stack.get_frame_count().min(FRAMES) {
        let Some(frame) = stack.get_frame(scope, index) else { continue };
        let file = frame.get_script_name(scope).map(|name| name.to_rust_string_lossy(scope)).unwrap_or_default();
        if file.is_empty() || file == BOOTSTRAP_NAME {
            continue;
        }
        let function = frame.get_function_name(scope).map(|name| name.to_rust_string_lossy(scope)).unwrap_or_default();
        frames.push(StackFrame { function, file, line: frame.get_line_number() as u32, column: frame.get_column() as u32 });
    }
    frames
}

fn message_frame(scope: &mut v8::PinScope<'_, '_>, message: v8::Local<'_, v8::Message>) -> Option<StackFrame> {
    let file = message.get_script_resource_name(scope).map(|name| name.to_rust_string_lossy(scope))?;
    let line = message.get_line_number(scope)? as u32;
    if file == BOOTSTRAP_NAME || line == 0 {
        return None;
    }
    Some(StackFrame { function: String::new(), file, line, column: message.get_start_column() as u32 + 1 })
}

/// A script error object for a host error, made from V8's own constructors.
pub(crate) fn make<'s>(scope: &mut v8::PinScope<'s, '_>, error: &OpError) -> v8::Local<'s, v8::Value> {
    let text = v8::String::new(scope, &error.message).unwrap_or_else(|| v8::String::empty(scope));
    let (value, named) = match error.class {
        "TypeError" => (v8::Exception::type_error(scope, text), true),
        "RangeError" => (v8::Exception::range_error(scope, text), true),
        "ReferenceError" => (v8::Exception::reference_error(scope, text), true),
        "SyntaxError" => (v8::Exception::syntax_error(scope, text), true),
        class => (v8::Exception::error(scope, text), class == "Error"),
    };
    if let Ok(object) = v8::Local::<v8::Object>::try_from(value) {
        set(scope, object, "code", &error.code);
        if !named {
            set(scope, object, "name", error.class);
        }
    }
    value
}

fn set(scope: &mut v8::PinScope<'_, '_>, object: v8::Local<'_, v8::Object>, name: &str, text: &str) {
    let (Some(key), Some(text)) = (v8::String::new(scope, name), v8::String::new(scope, text)) else { return };
    object.create_data_property(scope, key.into(), text.into());
}

/// Adds what a callback threw as the cause of the error of its operation.
pub(crate) fn set_cause(scope: &mut v8::PinScope<'_, '_>, error: v8::Local<'_, v8::Value>, cause: &v8::Global<v8::Value>) {
    let (Ok(object), Some(key)) = (v8::Local::<v8::Object>::try_from(error), v8::String::new(scope, "cause")) else { return };
    let cause = v8::Local::new(scope, cause);
    object.define_own_property(scope, key.into(), cause, v8::PropertyAttribute::DONT_ENUM);
}
