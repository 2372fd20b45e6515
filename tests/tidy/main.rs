//! House rules that no compiler checks: about source files, texts, and documents that must agree with the code.
//!
//! Invariant: a failing rule names file, line and what to do. Deliberately no processes and no network: the tree is read
//! as it lies there.

mod cases;
mod commands;
mod documents;
mod reference;
mod sources;
mod tree;
