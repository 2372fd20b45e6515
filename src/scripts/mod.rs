//! Scripts as the host loads them: plain JavaScript made from what the user wrote, with all modules that it imports.
//!
//! Invariant: what an engine runs leads back to the places that the user wrote. Deliberately no engine here.

mod full;
mod graph;
mod library;
mod prepare;
mod problem;
mod record;
mod resolve;
mod signature;
mod tools;
pub mod typescript;

pub use library::{LoadedScript, ScriptLibrary};
pub use prepare::TypeScriptMode;
pub use problem::{ImportProblem, ScriptError};
pub use signature::Signature;
pub use tools::ToolSet;
pub use typescript::{NoExpression, ScriptSyntaxError, check_expression, is_variable_name, snippet_at, strip_types};
