//! Hooks: which run, in which order, and what their word does.
//!
//! Invariant: no silent change. Every decision is in the trace; a mutation is also recorded in the result; a failing hook
//! fails closed unless it says `failOpen`. The chain is captured when the call is issued. Deliberately no transport
//! here: a hook is one `Router::call`.

pub mod audit;
mod binding;
mod cascade;
pub mod explain;
mod failure;
mod fields;
mod key;
mod message;
mod method;
mod record;
mod result;
mod subject;
mod table;
mod write_back;

pub use binding::{HookBinding, HookForm, HookTarget, Matcher, Side};
pub use cascade::{Exchange, HookRunner};
pub use failure::HookFailure;
pub(crate) use fields::Fields;
pub use key::{AgentHookKey, HookKey, HookKeyError, HookOptions, HookType, HostHookKey};
pub use message::Message;
pub use record::{HookStatus, MUTATIONS_KEY, MutationRecord, NoteMode};
pub(crate) use record::{notes, without_notes};
pub(crate) use table::in_order;
pub use table::{Chain, HookTable, OwnHooks};
pub(crate) use write_back::{WrittenBack, write_back};
