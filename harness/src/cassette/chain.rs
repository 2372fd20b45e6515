//! The hash chain that binds each line to all lines before it.
//!
//! Invariant: the digest is taken over raw bytes, never over re-serialized ones, so a reader needs no parser to check it.
//! Deliberately not a signature: it finds damage, not a forger.

use sha2::{Digest, Sha256};

/// The digest before the first line.
pub const START: &str = "0000000000000000";
/// Length of `,"h":"` + 16 digits + `"}`.
const TAIL: usize = 24;

/// Digest of a line: of the digest before it, and of its bytes up to `,"h":`.
pub fn digest(previous: &str, bytes: &[u8]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(previous.as_bytes());
    hasher.update(bytes);
    hex::encode(&hasher.finalize()[..8])
}

/// Closes a line: `object` is a JSON object without an `h`; the answer is the line with its newline, and its digest.
pub fn close_line(previous: &str, object: &str) -> (String, String) {
    let body = object.strip_suffix('}').unwrap_or(object);
    let h = digest(previous, body.as_bytes());
    (format!("{body},\"h\":\"{h}\"}}\n"), h)
}

/// Checks a line without its newline; the answer is its digest if it continues the chain.
pub fn check_line(previous: &str, line: &[u8]) -> Option<String> {
    let split = line.len().checked_sub(TAIL)?;
    let (body, tail) = line.split_at(split);
    let h = digest(previous, body);
    (tail == format!(",\"h\":\"{h}\"}}").as_bytes()).then_some(h)
}
