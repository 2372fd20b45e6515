//! The modules of one script: compiled in the context of a call and linked as the script says.
//!
//! Invariant: an import means what [`Script::links_of`] says or is refused with its place; nothing is looked up anywhere else. Modules
//! are made anew for each context, and in a frozen one for each call, so that their variables start fresh. V8 keeps their code.

use std::cell::RefCell;

use greenroom_boundary::isolate::{JsException, LinkTarget, OpError, Script, StackFrame};

use crate::exceptions;
use crate::load::{Compiled, caught, compile};

/// The modules that are being linked.
struct Linking {
    members: Vec<Member>,
}

/// One of them.
struct Member {
    /// Two modules may share it.
    hash: i32,
    module: v8::Global<v8::Module>,
    /// What its imports mean, as indices among the members.
    links: Vec<(String, usize)>,
}

impl Member {
    fn of(scope: &mut v8::PinScope<'_, '_>, module: v8::Local<'_, v8::Module>, script: &Script, target: LinkTarget) -> Self {
        let index = |target: &LinkTarget| match target {
            LinkTarget::Script => 0,
            LinkTarget::Module(index) => index + 1,
        };
        let links = script.links_of(target).iter().map(|(text, target)| (text.clone(), index(target))).collect();
        Self { hash: module.get_identity_hash().get(), module: v8::Global::new(scope, module), links }
    }
}

thread_local! {
    static LINKING: RefCell<Option<Linking>> = const { RefCell::new(None) };
}

/// Compiles what the script imports and links everything.
pub(crate) fn link<'s>(
    scope: &mut v8::PinnedRef<'_, v8::TryCatch<'_, 's, v8::HandleScope<'_>>>,
    root: v8::Local<'_, v8::Module>,
    script: &Script,
) -> Result<(), JsException> {
    if let Some(error) = refused_import(scope, root, script, LinkTarget::Script) {
        return Err(error);
    }
    let mut members = Vec::with_capacity(script.modules.len() + 1);
    members.push(Member::of(scope, root, script, LinkTarget::Script));
    for (index, module) in script.modules.iter().enumerate() {
        let Some(Compiled::Module(compiled)) = compile(scope, &module.name, &module.code, true) else {
            return Err(caught(scope));
        };
        let target = LinkTarget::Module(index);
        if let Some(error) = refused_import(scope, compiled, script, target) {
            return Err(error);
        }
        members.push(Member::of(scope, compiled, script, target));
    }
    LINKING.set(Some(Linking { members }));
    let linked = root.instantiate_module(scope, resolve);
    LINKING.set(None);
    if linked == Some(true) { Ok(()) } else { Err(caught(scope)) }
}

/// V8 asks which module an import means; all imports have been checked before.
fn resolve<'s>(
    context: v8::Local<'s, v8::Context>,
    specifier: v8::Local<'s, v8::String>,
    _attributes: v8::Local<'s, v8::FixedArray>,
    referrer: v8::Local<'s, v8::Module>,
) -> Option<v8::Local<'s, v8::Module>> {
    // SAFETY: V8 calls this while it instantiates a module in this context, and the scope ends with this function.
    v8::callback_scope!(unsafe scope, context);
    let text = specifier.to_rust_string_lossy(scope);
    let hash = referrer.get_identity_hash().get();
    let found = LINKING.with_borrow(|linking| {
        let members = &linking.as_ref()?.members;
        let asking = members.iter().find(|it| it.hash == hash && v8::Local::new(scope, &it.module) == referrer)?;
        let (_, target) = asking.links.iter().find(|(known, _)| *known == text)?;
        members.get(*target).map(|it| it.module.clone())
    })?;
    Some(v8::Local::new(scope, found))
}

/// The first import of a module that the script does not say the meaning of.
fn refused_import(
    scope: &mut v8::PinScope<'_, '_>,
    module: v8::Local<'_, v8::Module>,
    script: &Script,
    of: LinkTarget,
) -> Option<JsException> {
    let requests = module.get_module_requests();
    let links = script.links_of(of);
    for index in 0..requests.length() {
        let Some(request) = requests.get(scope, index).and_then(|it| v8::Local::<v8::ModuleRequest>::try_from(it).ok()) else {
            continue;
        };
        let text = request.get_specifier().to_rust_string_lossy(scope);
        if links.contains_key(&text) {
            continue;
        }
        let place = module.source_offset_to_location(request.get_source_offset());
        let frame = StackFrame {
            function: String::new(),
            file: script.name_of(of).to_owned(),
            line: place.get_line_number() as u32 + 1,
            column: place.get_column_number() as u32 + 1,
        };
        return Some(JsException {
            class: "SyntaxError".to_owned(),
            message: format!("the import {text:?} means no module of this script; a script that imports must be a file"),
            code: Some("ERR_IMPORT".to_owned()),
            frames: vec![frame],
            cause: None,
        });
    }
    None
}

/// `import()` at run time: always refused, for what runs is what was read when the script was loaded.
pub(crate) fn refuse_dynamic<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    _options: v8::Local<'s, v8::Data>,
    _file: v8::Local<'s, v8::Value>,
    specifier: v8::Local<'s, v8::String>,
    _attributes: v8::Local<'s, v8::FixedArray>,
) -> Option<v8::Local<'s, v8::Promise>> {
    let text = specifier.to_rust_string_lossy(scope);
    let message = format!("import({text:?}): modules are not loaded at run time; write `import … from` at the top of the file");
    let error = exceptions::make(scope, &OpError { code: "ERR_IMPORT".to_owned(), message, class: "TypeError" });
    let resolver = v8::PromiseResolver::new(scope)?;
    resolver.reject(scope, error)?;
    Some(resolver.get_promise(scope))
}
