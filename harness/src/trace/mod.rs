//! The trace of a run: collecting it, writing it down and pointing into it.
//!
//! Invariant: a trace is a sequence of closed events, one stable JSON line each; expectations read nothing else.
//! Deliberately no interpretation of bodies here.

mod address;
mod excerpt;
mod jsonl;
mod log;

pub use address::Sides;
pub use excerpt::{brief, excerpt};
pub use jsonl::{TraceParseError, line, parse, to_jsonl};
pub use log::TraceLog;
