//! `docs/hooks.md`, as the host makes it.
//!
//! Invariant: an operation without a signature fails here, and so does a signature without an operation.

use greenroom::context::{PARTS, TABLE};
use greenroom_boundary::web::is_web;

/// The page.
pub(crate) fn hooks_reference() -> String {
    let described: Vec<String> = PARTS
        .iter()
        .flat_map(|part| part.operations.iter().map(move |operation| format!("{}{}", part.prefix, operation.name)))
        .collect();
    for path in &described {
        assert!(TABLE.iter().any(|decl| decl.path == path), "ctx.{path} is described but does not exist");
    }
    // What stands behind a global is described with it.
    for decl in TABLE.iter().filter(|decl| !is_web(decl.path)) {
        assert!(described.iter().any(|path| path == decl.path), "ctx.{} has no signature", decl.path);
    }
    greenroom::context::hooks_reference()
}
