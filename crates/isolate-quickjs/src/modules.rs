//! Scripts that import: as a module of the engine, with the modules that the script brings.
//!
//! Invariant: an import means what [`Script::links_of`] says; nothing is looked up anywhere else, and nothing is loaded once
//! the script's top level has been linked. Deliberately no file system.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use greenroom_boundary::isolate::{LinkTarget, Script};
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Exception, Module, Result, Runtime};

/// Before the name of a private function among a module's exports. No script can export by accident what starts so.
pub(crate) const PRIVATE: &str = "greenroom:";

/// The modules of a script, for the engine that links them.
#[derive(Clone)]
pub(crate) struct Linker {
    script: Arc<Script>,
    is_linked: Rc<Cell<bool>>,
}

impl Linker {
    /// A linker of the script's modules, installed in the runtime.
    pub(crate) fn install(runtime: &Runtime, script: &Arc<Script>) -> Self {
        let linker = Self { script: Arc::clone(script), is_linked: Rc::default() };
        runtime.set_loader(linker.clone(), linker.clone());
        linker
    }

    /// From here on `import()` is refused.
    pub(crate) fn seal(&self) {
        self.is_linked.set(true);
    }

    fn named(&self, name: &str) -> Option<LinkTarget> {
        if name == self.script.name {
            return Some(LinkTarget::Script);
        }
        self.script.modules.iter().position(|module| module.name == name).map(LinkTarget::Module)
    }
}

impl Resolver for Linker {
    fn resolve<'js>(&mut self, ctx: &Ctx<'js>, base: &str, name: &str, _: Option<ImportAttributes<'js>>) -> Result<String> {
        if self.is_linked.get() {
            return Err(refused(
                ctx,
                &format!("import({name:?}): modules are not loaded at run time; write `import … from` at the top of the file"),
            ));
        }
        let target = self.named(base).and_then(|of| self.script.links_of(of).get(name));
        match target {
            Some(target) => Ok(self.script.name_of(*target).to_owned()),
            None => Err(refused(
                ctx,
                &format!("the import {name:?} means no module of this script; a script that imports must be a file"),
            )),
        }
    }
}

impl Loader for Linker {
    fn load<'js>(&mut self, ctx: &Ctx<'js>, name: &str, _: Option<ImportAttributes<'js>>) -> Result<Module<'js, Declared>> {
        match self.named(name) {
            Some(LinkTarget::Module(index)) => Module::declare(ctx.clone(), name, &*self.script.modules[index].code),
            _ => Err(refused(ctx, &format!("no module {name:?} is loaded now"))),
        }
    }
}

/// A `TypeError` with the code of refused imports.
fn refused(ctx: &Ctx<'_>, message: &str) -> rquickjs::Error {
    let thrown = Exception::from_message(ctx.clone(), message).and_then(|error| {
        error.as_object().set("name", "TypeError")?;
        error.as_object().set("code", "ERR_IMPORT")?;
        Ok(error)
    });
    match thrown {
        Ok(error) => error.throw(),
        Err(error) => error,
    }
}
