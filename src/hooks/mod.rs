//! Hooks: which run, in which order, and what their word does.
//!
//! Invariant: no silent change. Every decision is in the trace; a mutation is also recorded in the result; a failing hook
//! fails closed unless it says `failOpen`. The chain is captured when the call is issued. Deliberately no transport
//! here: a hook is one `Router::call`.

mod answer;
mod cascade;
pub mod explain;
mod key;
mod record;
mod table;

pub(crate) use answer::type_of;
pub use cascade::{Exchange, HookFailure, HookRunner, Message};
pub use key::{HookBinding, HookForm, HookKey, HookKeyError, HookOptions, HookTarget, Matcher, Side};
pub use record::{MUTATIONS_KEY, MutationRecord};
pub use table::{Chain, HookTable};
