//! `ctx`: the operations that a hook script may ask of the host.
//!
//! Invariant: each operation is declared once, in one table, independent of the engine; it reaches servers, agents and
//! models only through the router and the turn. Deliberately not the whole of Yao's surface yet: see docs/hooks.md.

mod hook_context;
mod memory_ops;
mod output;
mod table;
mod work_ops;

pub use hook_context::HookContext;
pub use output::{Author, OutputListener, OutputStream, SendError};
pub use table::{MemorySpace, MemoryVerb, Op, OutputVerb, TABLE, op_at};
