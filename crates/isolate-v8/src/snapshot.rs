//! The startup snapshot: a context in which `bootstrap.js` has run over an operation table.
//!
//! Invariant: it holds plain script objects and host functions, but no `ctx` object and nothing of any call; the addresses of the
//! host functions are those of [`external_references`]. Made once per table and process, and kept for its life. Not kept on disk.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use greenroom_boundary::isolate::OpDecl;

use crate::natives::{external_references, parts};
use crate::platform::V8Initialised;
use crate::spaces::Spaces;

/// The script name of the engine's own code; its frames are left out of stacks.
pub(crate) const BOOTSTRAP_NAME: &str = "greenroom:bootstrap";

const BOOTSTRAP: &str = include_str!("bootstrap.js");

/// A snapshot and where its `install` function lies in it.
#[derive(Clone, Copy)]
pub(crate) struct Snapshot {
    pub(crate) blob: &'static [u8],
    pub(crate) install: usize,
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Snapshot({} bytes)", self.blob.len())
    }
}

static MADE: Mutex<BTreeMap<(usize, usize), Snapshot>> = Mutex::new(BTreeMap::new());

/// The snapshot of a table.
pub(crate) fn of_table(_init: V8Initialised, table: &'static [OpDecl]) -> Result<Snapshot, String> {
    let key = (table.as_ptr() as usize, table.len());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(snapshot) = made.get(&key) {
        return Ok(*snapshot);
    }
    // V8 enters the isolate that makes the snapshot, so it gets a thread of its own, made after V8's start.
    let thread = std::thread::Builder::new().name("v8-snapshot".to_owned()).stack_size(crate::pool::STACK_BYTES);
    let maker = thread.spawn(move || make(table)).map_err(|error| format!("no thread for the snapshot: {error}"))?;
    let snapshot = maker.join().map_err(|_| "making the startup snapshot panicked".to_owned())??;
    made.insert(key, snapshot);
    Ok(snapshot)
}

fn make(table: &[OpDecl]) -> Result<Snapshot, String> {
    let mut creator = v8::Isolate::snapshot_creator(Some(external_references().into()), None);
    let install = {
        v8::scope!(let scope, &mut creator);
        let context = v8::Context::new(scope, v8::ContextOptions::default());
        let scope = &mut v8::ContextScope::new(scope, context);
        let install = bootstrap(scope, table);
        scope.set_default_context(context);
        install.map(|function| scope.add_context_data(context, function))
    };
    let blob = creator.create_blob(v8::FunctionCodeHandling::Keep);
    let install = install.ok_or_else(|| "bootstrap.js failed".to_owned())?;
    let blob = blob.ok_or_else(|| "V8 could not make the startup snapshot".to_owned())?;
    Ok(Snapshot { blob: Box::leak(blob.to_vec().into_boxed_slice()), install })
}

/// Runs `bootstrap.js` over the table; gives its `install` function.
fn bootstrap<'s>(scope: &mut v8::PinScope<'s, '_>, table: &[OpDecl]) -> Option<v8::Local<'s, v8::Function>> {
    let parts = parts(scope, table, &Spaces::of(table))?;
    let name = v8::String::new(scope, BOOTSTRAP_NAME)?;
    let source = v8::String::new(scope, BOOTSTRAP)?;
    let origin = crate::load::origin(scope, name, false, 0);
    let script = v8::Script::compile(scope, source, Some(&origin))?;
    let main: v8::Local<'s, v8::Function> = script.run(scope)?.try_into().ok()?;
    let undefined = v8::undefined(scope).into();
    main.call(scope, undefined, &parts)?.try_into().ok()
}
