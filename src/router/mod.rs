//! The one dispatcher: every call of every caller to every server goes through [`Router`].
//!
//! Invariant: nothing is special-cased around it. Built-in servers, script servers and agents get the same hooks,
//! overrides and traces as external ones. Deliberately no business logic: a server does the work.

mod call;
mod context;
mod error;
mod external;
mod names;
mod open;
mod raw;
mod readable;
mod server;
mod tools;
mod upstream;

pub use call::Router;
pub(crate) use call::{Factory, did_you_mean, structured};
pub use context::{CallContext, ProgressSink};
pub use error::CallError;
pub use external::ExternalServer;
pub use names::{NameTable, ToolEntry, nearest};
pub(crate) use open::OpenExchange;
pub use raw::RawParams;
pub(crate) use readable::readable;
pub use server::{Output, Sent, Server, ServerRequest};
pub(crate) use tools::upstream_name;
