//! Sessions of outside clients: the roots of all work.
//!
//! Invariant: what is made for a session ends with it. Deliberately no transport and no conversation here: those are the
//! fronts' and the agents'.

mod root;

pub use root::{Client, RootId, RootSession};
