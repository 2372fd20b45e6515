//! How a script is to be compiled: as a classic script, or as a module whose private top-level functions can be called too.
//!
//! Invariant: V8 itself decides what is a top-level declaration; the text scan below only proposes names, and the source keeps its
//! positions because the extra exports come after its end. Plans are kept per isolate, so a script is examined once per isolate.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;

use greenroom_boundary::isolate::{JsException, Script};

use crate::exceptions;

/// Before the name of a private function among a module's exports. No script can export by accident what starts so.
pub(crate) const PRIVATE: &str = "greenroom:";

/// Most scripts that an isolate remembers.
const MOST_PLANS: usize = 64;
/// Most private functions looked for in a module.
const MOST_CANDIDATES: usize = 512;

/// How to compile a script.
#[derive(Clone, Debug)]
pub(crate) enum Plan {
    Classic,
    /// The code with the extra exports.
    Module {
        code: Arc<str>,
    },
}

/// What one isolate knows of a script.
pub(crate) struct Known {
    pub(crate) plan: Plan,
    /// A classic script, compiled.
    pub(crate) compiled: RefCell<Option<v8::Global<v8::UnboundScript>>>,
    /// Whether its top level may run before a call asks for it: it is short and asks the host for nothing. Unknown until it has run.
    pub(crate) may_run_ahead: Cell<Option<bool>>,
}

/// The scripts that one isolate knows, oldest first.
#[derive(Default)]
pub(crate) struct Plans {
    kept: Vec<(Arc<Script>, Rc<Known>)>,
}

impl Plans {
    pub(crate) fn find(&self, script: &Arc<Script>) -> Option<Rc<Known>> {
        let known = self.kept.iter().rev().find(|(known, _)| Arc::ptr_eq(known, script) || known == script);
        known.map(|(_, known)| Rc::clone(known))
    }

    pub(crate) fn keep(&mut self, script: &Arc<Script>, plan: Plan) -> Rc<Known> {
        if self.kept.len() >= MOST_PLANS {
            self.kept.remove(0);
        }
        let known = Rc::new(Known { plan, compiled: RefCell::default(), may_run_ahead: Cell::default() });
        self.kept.push((Arc::clone(script), Rc::clone(&known)));
        known
    }
}

/// A compilation that failed, and where in the code.
struct Failed {
    error: JsException,
    at: usize,
}

/// Examines a script; the error is the one that a reader of the source can use.
pub(crate) fn examine(scope: &mut v8::PinScope<'_, '_>, script: &Script) -> Result<Plan, JsException> {
    let classic = match compiles(scope, script, &script.code, false) {
        Ok(()) => return Ok(Plan::Classic),
        Err(failed) => failed.error,
    };
    if let Err(module) = compiles(scope, script, &script.code, true) {
        return Err(further(classic, module.error));
    }
    let mut names = function_names(&script.code);
    let end = script.code.encode_utf16().count();
    loop {
        let code = with_exports(&script.code, &names);
        match compiles(scope, script, &code, true) {
            Ok(()) => return Ok(Plan::Module { code: code.into() }),
            Err(failed) => match name_at(&names, failed.at.checked_sub(end)) {
                Some(index) => drop(names.remove(index)),
                None => return Ok(Plan::Module { code: Arc::clone(&script.code) }),
            },
        }
    }
}

fn compiles(scope: &mut v8::PinScope<'_, '_>, script: &Script, code: &str, is_module: bool) -> Result<(), Failed> {
    v8::scope!(let scope, scope);
    v8::tc_scope!(let scope, scope);
    if crate::load::compile(scope, &script.name, code, is_module).is_some() {
        return Ok(());
    }
    let message = scope.message();
    let at = message.map_or(0, |message| usize::try_from(message.get_start_position()).unwrap_or(0));
    let error = match scope.exception() {
        Some(value) => exceptions::read(scope, value, message),
        None => exceptions::plain("the script is too long for V8"),
    };
    Err(Failed { error, at })
}

/// Of two parses that failed, the one that got further says what is wrong.
fn further(classic: JsException, module: JsException) -> JsException {
    let position = |error: &JsException| error.frames.first().map(|frame| (frame.line, frame.column));
    if position(&module) >= position(&classic) { module } else { classic }
}

fn with_exports(code: &str, names: &[String]) -> String {
    let mut text = code.to_owned();
    for name in names {
        let _ = write!(text, "{}", export_of(name));
    }
    text
}

fn export_of(name: &str) -> String {
    format!("\nexport {{ {name} as \"{PRIVATE}{name}\" }};")
}

/// Which of the extra exports lies at this offset behind the end of the code.
fn name_at(names: &[String], offset: Option<usize>) -> Option<usize> {
    let mut end = 0;
    let offset = offset?;
    names.iter().position(|name| {
        end += export_of(name).encode_utf16().count();
        offset < end
    })
}

/// Every name that follows the word `function`, wherever it stands: proposals only.
pub(crate) fn function_names(code: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (at, word) in code.match_indices("function") {
        let joined = code[..at].chars().next_back().is_some_and(is_name_part);
        let after = &code[at + word.len()..];
        let joined = joined || after.starts_with(is_name_part);
        let rest = after.trim_start().trim_start_matches('*').trim_start();
        let name: String = rest.chars().take_while(|c| is_name_part(*c)).collect();
        let starts = name.chars().next().is_some_and(|c| !c.is_ascii_digit());
        if !joined && starts && !names.contains(&name) && names.len() < MOST_CANDIDATES {
            names.push(name);
        }
    }
    names
}

pub(crate) fn is_name_part(c: char) -> bool {
    c == '_' || c == '$' || c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposes_each_name_once() {
        let code = "function a() {} async function  b(){} function* c(){} function *d(){} functional(); myfunction x; function a(){} \
                    export default function () {}";
        assert_eq!(function_names(code), ["a", "b", "c", "d"]);
    }

    #[test]
    fn finds_the_export_that_failed() {
        let names = ["a", "über"].map(str::to_owned).to_vec();
        let first = export_of("a").encode_utf16().count();
        assert_eq!(name_at(&names, Some(0)), Some(0));
        assert_eq!(name_at(&names, Some(first)), Some(1));
        assert_eq!(name_at(&names, Some(first * 9)), None);
        assert_eq!(name_at(&names, None), None);
    }
}
