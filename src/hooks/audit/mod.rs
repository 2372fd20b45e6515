//! The audit stream: one record for each exchange and each turn that hooks looked at, sent in batches.
//!
//! Invariant: hooks that said nothing are in it, too; secrets of the config are masked; the memory that it takes is bounded,
//! and what had to be dropped is counted in the stream itself. Deliberately no files and no network here: the sink is a
//! boundary.

mod entry;
mod queue;

pub use queue::AuditLog;
