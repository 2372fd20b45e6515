//! The cassette: a recorded session as an append-only file of JSON lines, format version 1.0.
//!
//! Invariant: a complete line is never lost or changed unseen (hash chain), no registered secret reaches the file
//! (redaction comes before the write), and one function ([`identity::exchange_key`]) gives an exchange its identity for the
//! recorder, the replayer and the check at seal. Deliberately not written yet: `blob`, `mark` and `sched` lines and the
//! `cause` lists of feature `causal`; `blob` is understood when read.
//!
//! A line of the `mcp.NAME` lanes carries a whole JSON-RPC frame as it was on the wire. A frame that cannot stand in a line
//! as it is (not JSON, or with line breaks between its tokens) is kept as `{"$text": …}` or `{"$b64": …}`.

pub mod body;
pub mod chain;
pub mod envelope;
pub mod failure;
pub mod identity;
pub mod json;
pub mod line;
pub mod reader;
pub mod redact;
pub mod stamp;
pub mod sweep;
pub mod writer;

pub use line::{Head, HostInfo, LaneInfo, Line};
pub use reader::{Cassette, CassetteError, Status};
pub use redact::{RedactionKey, Redactor};
pub use writer::{WriteError, Writer};
