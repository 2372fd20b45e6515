//! Scripts as the host loads them: plain JavaScript made from what the user wrote.
//!
//! Invariant: what comes out has the positions of what went in. Deliberately no engine here.

mod imports;
mod library;
pub mod typescript;

pub use imports::imported_files;
pub use library::{ScriptError, ScriptLibrary};
pub use typescript::{NoExpression, ScriptSyntaxError, check_expression, is_variable_name, snippet_at, strip_types};
