//! Scripts in a frozen context: the top level as the body of a function, so that each call runs it anew on its own variables.
//!
//! Invariant: V8 decides what a declaration is and what an `export` is, never the text alone; a script that does not fit into a
//! function (imports, a default export, an export list, a top-level `await`) is loaded as a module per call instead, which costs more and
//! means the same. Code that runs keeps its positions.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_boundary::isolate::{IsolateError, JsException, Script};

use crate::call::Stop;
use crate::control::CallControl;
use crate::exceptions;
use crate::load::{self, Compiled, caught, compile, is_class, load_error};
use crate::plan::{Plan, function_names, is_name_part};
use crate::realm::Realm;
use crate::state::ThreadState;

/// Makes the body of a module as strict as the module; the columns of the first line are counted without it.
const STRICT: &str = "'use strict';";

/// The frozen context of one script, and its functions as far as they have been asked for.
pub(crate) struct FrozenRealm {
    pub(crate) script: Arc<Script>,
    pub(crate) realm: Realm,
    pub(crate) bodies: BTreeMap<String, Body>,
}

/// How a function of the script is reached.
pub(crate) enum Body {
    /// Calling this runs the top level and returns the function.
    Wrapped { body: v8::Global<v8::Function>, is_strict: bool },
    /// It is found among what a module of its own exports.
    Module,
    /// There is none.
    Absent,
}

/// The function of this name, made by a fresh run of the script's top level.
pub(crate) fn function<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    state: &ThreadState,
    frozen: &mut FrozenRealm,
    name: &str,
    control: &CallControl,
) -> Result<Option<v8::Local<'s, v8::Function>>, Stop> {
    if !frozen.bodies.contains_key(name) {
        let known = load::known(scope, state, &frozen.script, Some(control))?;
        let body =
            body_of(scope, state, &frozen.script, &known.plan, name).map_err(|error| load_error(Some(control), error))?;
        frozen.bodies.insert(name.to_owned(), body);
    }
    match frozen.bodies.get(name) {
        Some(Body::Wrapped { body, is_strict }) => {
            let body = v8::Local::new(scope, body);
            let this: v8::Local<'_, v8::Value> =
                if *is_strict { v8::undefined(scope).into() } else { scope.get_current_context().global(scope).into() };
            v8::tc_scope!(let scope, scope);
            let Some(value) = body.call(scope, this, &[]) else {
                let error = caught(scope);
                return Err(load_error(Some(control), error));
            };
            let function = v8::Local::<v8::Function>::try_from(value).ok();
            Ok(function.filter(|function| !is_class(scope, *function)))
        }
        Some(Body::Module) => from_module(scope, state, &frozen.script, control, name),
        Some(Body::Absent) | None => Ok(None),
    }
}

fn from_module<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    state: &ThreadState,
    script: &Arc<Script>,
    control: &CallControl,
    name: &str,
) -> Result<Option<v8::Local<'s, v8::Function>>, Stop> {
    let known = load::known(scope, state, script, Some(control))?;
    let Plan::Module { code } = &known.plan else {
        return Err(Stop::Error(IsolateError::Engine { message: "a classic script was taken for a module".to_owned() }));
    };
    let compiled = {
        v8::tc_scope!(let scope, scope);
        compile(scope, &script.name, code, true).ok_or_else(|| caught(scope))
    };
    match compiled.map_err(|error| load_error(Some(control), error))? {
        Compiled::Module(module) => Ok(load::run_module(scope, module, script, Some(control))?.function(scope, name)),
        Compiled::Classic(_) => Ok(None),
    }
}

/// How to reach a function of a script that loads.
fn body_of(
    scope: &mut v8::PinScope<'_, '_>,
    state: &ThreadState,
    script: &Script,
    plan: &Plan,
    name: &str,
) -> Result<Body, JsException> {
    let (code, is_strict) = match plan {
        Plan::Classic => (script.code.to_string(), false),
        // Each call gets modules of its own.
        Plan::Module { .. } if !script.links.is_empty() => return Ok(Body::Module),
        Plan::Module { .. } => match without_exports(scope, script, name) {
            Some(code) => (format!("{STRICT}{code}"), true),
            None => return Ok(Body::Module),
        },
    };
    let column = if is_strict { -(STRICT.len() as i32) } else { 0 };
    // A name is declared at top level, as a function or with `var`, if it can be declared so again but not with `let`.
    let is_name = !name.is_empty() && name.chars().all(is_name_part) && !name.starts_with(|c: char| c.is_ascii_digit());
    let declared = is_name
        && wrap(scope, &script.name, &format!("{code}\nlet {name};"), column).is_err()
        && (is_strict || wrap(scope, &script.name, &format!("{code}\nvar {name};"), column).is_ok());
    if !declared {
        return Ok(if is_strict { Body::Module } else { Body::Absent });
    }
    match wrap(scope, &script.name, &format!("{code}\nreturn {name};"), column) {
        Ok(body) => {
            let id = v8::Local::new(scope, &body).script_id();
            state.prefixes.borrow_mut().insert(id.to_string(), column.unsigned_abs());
            Ok(Body::Wrapped { body, is_strict })
        }
        Err(_) if is_strict => Ok(Body::Module),
        Err(error) => Err(error),
    }
}

fn wrap(
    scope: &mut v8::PinScope<'_, '_>,
    file: &str,
    code: &str,
    column: i32,
) -> Result<v8::Global<v8::Function>, JsException> {
    v8::scope!(let scope, scope);
    v8::tc_scope!(let scope, scope);
    let made = (|| {
        let file = v8::String::new(scope, file)?;
        let code = v8::String::new(scope, code)?;
        let origin = load::origin(scope, file, false, column);
        let mut source = v8::script_compiler::Source::new(code, Some(&origin));
        let (options, reason) =
            (v8::script_compiler::CompileOptions::NoCompileOptions, v8::script_compiler::NoCacheReason::NoReason);
        let function = v8::script_compiler::compile_function(scope, &mut source, &[], &[], options, reason)?;
        Some(v8::Global::new(scope, function))
    })();
    made.ok_or_else(|| {
        let message = scope.message();
        match scope.exception() {
            Some(value) => exceptions::read(scope, value, message),
            None => exceptions::plain("the script is too long for V8"),
        }
    })
}

/// The code with blanks in place of the word `export`, where all exports are plain declarations and the function wanted is one that a
/// module offers.
fn without_exports(scope: &mut v8::PinScope<'_, '_>, script: &Script, name: &str) -> Option<String> {
    let code = &*script.code;
    let mut blanked = code.to_owned();
    let mut offers = function_names(code).iter().any(|known| known == name);
    for at in words(code, "export") {
        if !is_keyword(scope, script, at) {
            continue;
        }
        let rest = code.get(at + "export".len()..)?.trim_start();
        let declares = ["function", "async function", "class", "const", "let", "var"]
            .into_iter()
            .find(|word| rest.strip_prefix(word).is_some_and(|after| !after.starts_with(is_name_part)))?;
        if matches!(declares, "const" | "let" | "var") {
            let declared: String = rest.get(declares.len()..)?.trim_start().chars().take_while(|c| is_name_part(*c)).collect();
            offers |= declared == name;
        }
        blanked.replace_range(at..at + "export".len(), "      ");
    }
    offers.then_some(blanked)
}

/// Where a word stands by itself.
fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    code.match_indices(word).map(|(at, _)| at).filter(move |at| {
        let joined = code[..*at].chars().next_back().is_some_and(|c| is_name_part(c) || c == '.');
        !joined && !code[at + word.len()..].starts_with(is_name_part)
    })
}

/// Whether the word `export` here is the keyword: spelt with an escape a keyword is an error, and anything else means the same.
fn is_keyword(scope: &mut v8::PinScope<'_, '_>, script: &Script, at: usize) -> bool {
    let mut code = script.code.to_string();
    code.replace_range(at..at + "export".len(), "exp\\u006frt");
    v8::scope!(let scope, scope);
    v8::tc_scope!(let scope, scope);
    compile(scope, &script.name, &code, true).is_none()
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn finds_words_that_stand_alone() {
        let code = "export a; exported; x.export; 'export'; _export; (export)";
        assert_eq!(words(code, "export").collect::<Vec<_>>(), [0, 31, 50]);
    }
}
