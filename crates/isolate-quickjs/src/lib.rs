//! The QuickJS engine behind Greenroom's isolate boundary.
//!
//! Invariant: a call has its own runtime, made and dropped on one thread; when the call ends, so does everything it made.
//! Memory is reference counted, so release is prompt and repeatable. Deliberately no `unsafe`, no reading of
//! modules (a script brings what it imports) and no bytecode cache.
//!
//! A limit that passes while a script computes is noticed at the engine's next poll, some thousand loop turns or calls
//! later; until then the script may still compute, but nothing it does reaches the host. A long native operation, a sort of
//! a huge array, ends first; one that never ends costs its call the limit plus a grace, and the process a thread, for
//! nothing can stop it. Exhausted memory is noticed when the engine makes its error; where not even that can be
//! allocated it throws `null`, so a `null` that a script throws counts as exhausted memory too (pinned in the suite's
//! `DIFFERENCES`).

mod engine;
mod exceptions;
mod lexer;
mod link;
mod modules;
mod natives;
mod pump;
mod session;
mod surface;
mod worker;

pub use engine::QuickJs;
