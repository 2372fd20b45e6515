//! The one dispatcher: every call of every caller to every server goes through [`Router`].
//!
//! Invariant: nothing is special-cased around it. Built-in servers, script servers and agents get the same hooks,
//! overrides and traces as external ones. Deliberately no business logic: a server does the work.

mod ask;
mod call;
mod context;
mod error;
mod external;
mod handshake;
mod health;
mod lists;
mod methods;
mod names;
mod open;
mod params;
mod permitted;
mod question;
mod raw;
mod readable;
mod server;
mod slots;
mod tools;
mod under_way;
mod upstream;
mod well_formed;

pub(crate) use ask::structured;
pub use call::Router;
pub(crate) use call::{did_you_mean, rpc_error};
pub use context::{CallContext, Caller, ProgressSink, ProgressUpdate};
pub use error::CallError;
pub use external::ExternalServer;
pub use health::ServerState;
pub use lists::{ListMethod, Offer};
pub use names::{NameTable, Renamed, ToolEntry, nearest};
pub(crate) use open::OpenExchange;
pub use params::Params;
pub(crate) use question::changed;
pub use raw::RawParams;
pub(crate) use readable::readable;
pub use server::{Answered, CallLimits, Output, Sent, Server, ServerRequest};
pub(crate) use slots::Factory;
pub(crate) use tools::upstream_name;
