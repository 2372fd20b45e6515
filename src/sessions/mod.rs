//! Sessions of outside clients: the roots of all work.
//!
//! Invariant: what is made for a session ends with it; what a server asks or tells stays in the session that it serves.
//! Deliberately no transport and no conversation here: those are the fronts' and the agents'.

mod depth;
mod level;
mod news;
mod question;
mod root;
mod shown;

pub(crate) use depth::{DEPTH_KEY, enter_depth};
pub use level::LogLevel;
pub(crate) use news::News;
pub(crate) use question::{Question, answer, capabilities};
pub use root::{Client, RootId, RootSession};
pub(crate) use shown::Owners;
