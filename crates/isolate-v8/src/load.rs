//! Loading a script into a context and finding its functions.
//!
//! Invariant: the source is compiled as it is, so positions are those of the file. What parses as a classic script is one (its
//! global functions can be called); what only parses as a module is one (its exports can). What it imports is in `modules`.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use greenroom_boundary::isolate::{IsolateError, JsException, Script};

use crate::call::Stop;
use crate::control::CallControl;
use crate::exceptions;
use crate::modules;
use crate::plan::{Known, PRIVATE, Plan, examine};
use crate::snapshot::BOOTSTRAP_NAME;
use crate::state::{ThreadState, active};
use crate::values::property;

/// A script whose top level has run.
pub(crate) enum Loaded<'s> {
    /// The namespace of a module.
    Module(v8::Local<'s, v8::Object>),
    /// The global object and the names it had before.
    Classic { global: v8::Local<'s, v8::Object>, before: Rc<BTreeSet<String>> },
}

/// A script whose top level has run ahead of the call.
pub(crate) enum Ready {
    Module(v8::Global<v8::Object>),
    Classic,
}

/// Where the code comes from, as V8 wants to know it.
pub(crate) fn origin<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    name: v8::Local<'s, v8::String>,
    is_module: bool,
    column: i32,
) -> v8::ScriptOrigin<'s> {
    v8::ScriptOrigin::new(scope, name.into(), 0, column, false, -1, None, false, false, is_module, None)
}

/// A compiled script.
pub(crate) enum Compiled<'s> {
    Classic(v8::Local<'s, v8::Script>),
    Module(v8::Local<'s, v8::Module>),
}

/// Compiles code; `None` with an exception pending, or when the code is too long for V8.
pub(crate) fn compile<'s>(scope: &mut v8::PinScope<'s, '_>, name: &str, code: &str, is_module: bool) -> Option<Compiled<'s>> {
    let name = v8::String::new(scope, name)?;
    let code = v8::String::new(scope, code)?;
    let origin = origin(scope, name, is_module, 0);
    if is_module {
        let mut source = v8::script_compiler::Source::new(code, Some(&origin));
        return v8::script_compiler::compile_module(scope, &mut source).map(Compiled::Module);
    }
    v8::Script::compile(scope, code, Some(&origin)).map(Compiled::Classic)
}

/// What the isolate knows of the script; examines it if it is new.
pub(crate) fn known(
    scope: &mut v8::PinScope<'_, '_>,
    state: &ThreadState,
    script: &Arc<Script>,
    control: Option<&CallControl>,
) -> Result<Rc<Known>, Stop> {
    let known = state.plans.borrow().find(script);
    if let Some(known) = known {
        return Ok(known);
    }
    let plan = examine(scope, script).map_err(|error| load_error(control, error))?;
    Ok(state.plans.borrow_mut().keep(script, plan))
}

/// Compiles the script and runs its top level.
pub(crate) fn load<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    state: &ThreadState,
    script: &Arc<Script>,
    known: &Known,
    control: Option<&CallControl>,
) -> Result<Loaded<'s>, Stop> {
    let code = match &known.plan {
        Plan::Classic => {
            let classic = classic(scope, script, known).map_err(|error| load_error(control, error))?;
            return run_classic(scope, state, classic, control);
        }
        Plan::Module { code } => code,
    };
    let compiled = {
        v8::tc_scope!(let scope, scope);
        compile(scope, &script.name, code, true).ok_or_else(|| caught(scope))
    };
    match compiled.map_err(|error| load_error(control, error))? {
        Compiled::Classic(classic) => run_classic(scope, state, classic, control),
        Compiled::Module(module) => run_module(scope, module, script, control),
    }
}

/// The script in this context; compiled once per isolate.
fn classic<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    script: &Script,
    known: &Known,
) -> Result<v8::Local<'s, v8::Script>, JsException> {
    let compiled = known.compiled.borrow().clone();
    if let Some(compiled) = compiled {
        return Ok(v8::Local::new(scope, compiled).bind_to_current_context(scope));
    }
    v8::tc_scope!(let scope, scope);
    match compile(scope, &script.name, &script.code, false) {
        Some(Compiled::Classic(classic)) => {
            let unbound = classic.get_unbound_script(scope);
            *known.compiled.borrow_mut() = Some(v8::Global::new(scope, unbound));
            Ok(classic)
        }
        _ => Err(caught(scope)),
    }
}

/// Reads the exception that was just caught.
pub(crate) fn caught(scope: &mut v8::PinnedRef<'_, v8::TryCatch<'_, '_, v8::HandleScope<'_>>>) -> JsException {
    let message = scope.message();
    match scope.exception() {
        Some(value) if !scope.has_terminated() => exceptions::read(scope, value, message),
        _ => exceptions::plain("the script was stopped"),
    }
}

pub(crate) fn load_error(control: Option<&CallControl>, error: JsException) -> Stop {
    if control.is_some_and(CallControl::is_killed) { Stop::Killed } else { Stop::Error(IsolateError::Load(error)) }
}

fn run_classic<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    state: &ThreadState,
    script: v8::Local<'s, v8::Script>,
    control: Option<&CallControl>,
) -> Result<Loaded<'s>, Stop> {
    let global = scope.get_current_context().global(scope);
    let before = global_names(scope, state, global);
    v8::tc_scope!(let scope, scope);
    if script.run(scope).is_none() {
        let error = caught(scope);
        return Err(load_error(control, error));
    }
    Ok(Loaded::Classic { global, before })
}

pub(crate) fn run_module<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    module: v8::Local<'s, v8::Module>,
    script: &Script,
    control: Option<&CallControl>,
) -> Result<Loaded<'s>, Stop> {
    v8::tc_scope!(let scope, scope);
    modules::link(scope, module, script).map_err(|error| load_error(control, error))?;
    let promise = module.evaluate(scope);
    let Some(promise) = promise.and_then(|value| v8::Local::<v8::Promise>::try_from(value).ok()) else {
        let error = caught(scope);
        return Err(load_error(control, error));
    };
    promise.mark_as_handled();
    if promise.state() == v8::PromiseState::Pending {
        // Ahead of a call nothing waits: a top level that does is run with its call.
        let Some(call) = active().filter(|_| control.is_some()) else { return Err(Stop::Error(IsolateError::NeverSettles)) };
        call.queue.perform_checkpoint(scope);
    }
    if control.is_some_and(CallControl::is_killed) {
        return Err(Stop::Killed);
    }
    match promise.state() {
        v8::PromiseState::Pending => Err(Stop::Error(IsolateError::NeverSettles)),
        v8::PromiseState::Rejected => {
            let value = promise.result(scope);
            let error = exceptions::read(scope, value, None);
            Err(load_error(control, error))
        }
        v8::PromiseState::Fulfilled => match module.get_module_namespace().try_into() {
            Ok(namespace) => Ok(Loaded::Module(namespace)),
            Err(_) => Err(Stop::Error(IsolateError::Engine { message: "the module has no namespace".to_owned() })),
        },
    }
}

/// The names of a fresh context's global object; they are the same in every context of the isolate.
fn global_names(
    scope: &mut v8::PinScope<'_, '_>,
    state: &ThreadState,
    global: v8::Local<'_, v8::Object>,
) -> Rc<BTreeSet<String>> {
    let known = state.global_names.borrow().clone();
    known.unwrap_or_else(|| {
        let found: Rc<BTreeSet<String>> = Rc::new(names(scope, global).into_iter().collect());
        *state.global_names.borrow_mut() = Some(Rc::clone(&found));
        found
    })
}

impl<'s> Loaded<'s> {
    /// To be used by a later call in this context.
    pub(crate) fn keep(&self, scope: &mut v8::PinScope<'s, '_>) -> Ready {
        match self {
            Self::Module(namespace) => Ready::Module(v8::Global::new(scope, *namespace)),
            Self::Classic { .. } => Ready::Classic,
        }
    }

    /// What a call before kept in this context.
    pub(crate) fn of(scope: &mut v8::PinScope<'s, '_>, state: &ThreadState, ready: &Ready) -> Self {
        match ready {
            Ready::Module(namespace) => Self::Module(v8::Local::new(scope, namespace)),
            Ready::Classic => {
                let global = scope.get_current_context().global(scope);
                Self::Classic { global, before: global_names(scope, state, global) }
            }
        }
    }

    /// The function of this name, if the script offers it.
    pub(crate) fn function(&self, scope: &mut v8::PinScope<'s, '_>, name: &str) -> Option<v8::Local<'s, v8::Function>> {
        match self {
            Self::Module(namespace) => {
                own_function(scope, *namespace, name).or_else(|| own_function(scope, *namespace, &format!("{PRIVATE}{name}")))
            }
            Self::Classic { before, global } if before.contains(name) && !is_redeclared(scope, *global, name) => None,
            Self::Classic { global, .. } => own_function(scope, *global, name),
        }
    }

    /// The names of all functions: those of the script in source order, then those that it exports from other modules by name.
    pub(crate) fn functions(&self, scope: &mut v8::PinScope<'s, '_>, script: &Script) -> Vec<String> {
        let (Self::Module(object) | Self::Classic { global: object, .. }) = self;
        let all: BTreeSet<String> = names(scope, *object)
            .into_iter()
            .map(|name| name.strip_prefix(PRIVATE).map_or(name.clone(), str::to_owned))
            .collect();
        let mut found = Vec::new();
        for name in all {
            if let Some(function) = self.function(scope, &name) {
                let file = function.get_script_origin(scope).resource_name();
                let is_own = file.is_some_and(|file| file.to_rust_string_lossy(scope) == script.name);
                let line = function.get_script_line_number().filter(|_| is_own).unwrap_or(u32::MAX);
                let column = function.get_script_column_number().filter(|_| is_own).unwrap_or(u32::MAX);
                found.push((line, column, name));
            }
        }
        found.sort();
        found.into_iter().map(|(_, _, name)| name).collect()
    }
}

/// Whether a script has declared a function in the place of what the global object had.
fn is_redeclared(scope: &mut v8::PinScope<'_, '_>, global: v8::Local<'_, v8::Object>, name: &str) -> bool {
    let declared = (|| {
        let key = v8::String::new(scope, name)?;
        let descriptor = global.get_own_property_descriptor(scope, key.into())?;
        let value = property(scope, v8::Local::<v8::Object>::try_from(descriptor).ok()?, "value")?;
        let function = v8::Local::<v8::Function>::try_from(value).ok()?;
        let file = v8::Local::<v8::String>::try_from(function.get_script_origin(scope).resource_name()?).ok()?;
        Some(file.to_rust_string_lossy(scope) != BOOTSTRAP_NAME)
    })();
    declared == Some(true)
}

/// An own property that is a function and can be called; runs script code if it is a getter.
fn own_function<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    object: v8::Local<'s, v8::Object>,
    name: &str,
) -> Option<v8::Local<'s, v8::Function>> {
    v8::tc_scope!(let scope, scope);
    let key = v8::String::new(scope, name)?;
    if !object.has_own_property(scope, key.into())? {
        return None;
    }
    let function = v8::Local::<v8::Function>::try_from(object.get(scope, key.into())?).ok()?;
    (!is_class(scope, function)).then_some(function)
}

fn names(scope: &mut v8::PinScope<'_, '_>, object: v8::Local<'_, v8::Object>) -> Vec<String> {
    let all = v8::GetPropertyNamesArgs {
        mode: v8::KeyCollectionMode::OwnOnly,
        property_filter: v8::PropertyFilter::SKIP_SYMBOLS,
        index_filter: v8::IndexFilter::SkipIndices,
        key_conversion: v8::KeyConversionMode::ConvertToString,
    };
    let Some(keys) = object.get_own_property_names(scope, all) else { return Vec::new() };
    (0..keys.length()).filter_map(|index| keys.get_index(scope, index).map(|key| key.to_rust_string_lossy(scope))).collect()
}

/// Classes are functions that cannot be called; their `prototype` is read-only, that of functions is not.
pub(crate) fn is_class(scope: &mut v8::PinScope<'_, '_>, function: v8::Local<'_, v8::Function>) -> bool {
    let Some(key) = v8::String::new(scope, "prototype") else { return false };
    if function.has_own_property(scope, key.into()) != Some(true) {
        return false;
    }
    let attributes = function.get_property_attributes(scope, key.into());
    attributes.is_some_and(|attributes| attributes.is_read_only())
}
