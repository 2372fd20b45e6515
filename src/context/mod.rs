//! `ctx`: the operations that a hook script may ask of the host.
//!
//! Invariant: each operation is declared once, in one table, independent of the engine; it reaches servers, agents and
//! models only through the router and the turn. Deliberately not the whole of Yao's surface: docs/hooks.md says what differs.

mod agent_ops;
mod arguments;
mod batch;
mod chunks;
mod delta;
mod docs;
mod expressions;
mod facade_ops;
mod fetch_ops;
mod globals;
mod hook_context;
mod llm_ops;
mod mcp_ops;
mod memory;
mod memory_lists;
mod memory_ops;
mod output;
mod person;
mod place_ops;
mod search_ops;
mod signatures;
mod table;
mod trace_board;
mod types;
mod verbs;
mod watch;
mod web_ops;

pub use docs::hooks_reference;
pub use expressions::{ExpressionError, instructions, template_text};
pub use globals::{GLOBALS, Global};
pub use hook_context::HookContext;
pub use memory::Memory;
pub use output::{Author, OutputListener, OutputStream, SendError};
pub use person::{People, Person};
pub use signatures::{PARTS, Part, Signature};
pub use table::{TABLE, op_at};
pub use trace_board::TraceBoard;
pub use types::declarations;
pub use verbs::{
    AgentVerb, ComputerVerb, FacadeVerb, LlmVerb, McpVerb, MemorySpace, MemoryVerb, Op, OutputVerb, SearchVerb, TraceVerb,
    WebVerb, WorkspaceVerb,
};
pub use watch::{ContextWatch, UseIndex};
