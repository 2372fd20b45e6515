//! Reads cassettes, whole ones and torn ones.
//!
//! Invariant: reading stops at the first line that has no newline or breaks the chain; what is before it is exactly what was
//! written. A cassette is untrusted: depth and line length are limited, and nothing in it is run. Deliberately no repair.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use greenroom_boundary::RawJson;
use greenroom_boundary::clock::UnixNanos;
use sha2::{Digest, Sha256};

use super::json::{MAX_DEPTH, Node, Value, quote, splice};
use super::line::{Head, Line, Seal};
use super::{body, chain, stamp};

/// Longest line that is read or written.
pub const MAX_LINE_BYTES: usize = 16 << 20;
const MAJOR: u32 = 1;
/// Features that this reader understands. `causal` adds fields that strict replay does not need.
const FEATURES: [&str; 1] = ["causal"];

/// Whether a recording came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It was sealed.
    Complete,
    /// It broke off, or is damaged; what is there is usable.
    Aborted,
}

/// A cassette in memory.
#[derive(Clone, Debug)]
pub struct Cassette {
    /// First line.
    pub head: Head,
    /// The lines between head and seal.
    pub lines: Vec<Line>,
    /// The seal of a complete recording.
    pub seal: Option<Seal>,
    /// Whether the recording came to its end.
    pub status: Status,
    /// Bytes at the end that could not be trusted and were left out.
    pub quarantined_bytes: usize,
}

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    /// The file cannot be read.
    #[error("cannot read cassette {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
    /// There is not even a head.
    #[error("not a cassette: no intact head line; record the session again")]
    NoHead,
    /// Written by a later major version.
    #[error("the cassette has format {found}, this version reads {MAJOR}.x; use a newer greenroom")]
    TooNew {
        /// Its version.
        found: String,
    },
    /// Needs a feature that is unknown here.
    #[error("the cassette needs feature {feature:?}, which this version does not know; use a newer greenroom")]
    Feature {
        /// The feature.
        feature: String,
    },
    /// A line is beyond a limit.
    #[error("cassette line {line} is beyond a limit: {what}")]
    Limit {
        /// The line, from 1.
        line: usize,
        /// Which limit.
        what: &'static str,
    },
    /// A line is intact, but is not what the format says.
    #[error("cassette line {line} is malformed: {message}")]
    Malformed {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
}

impl CassetteError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "CASSETTE_READ",
            Self::NoHead => "CASSETTE_NO_HEAD",
            Self::TooNew { .. } => "CASSETTE_TOO_NEW",
            Self::Feature { .. } => "CASSETTE_FEATURE",
            Self::Limit { .. } => "CASSETTE_LIMIT",
            Self::Malformed { .. } => "CASSETTE_MALFORMED",
        }
    }
}

/// Where a cassette is written before it is sealed.
pub fn partial_path(path: &Path) -> PathBuf {
    with_suffix(path, ".partial")
}

pub(crate) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

impl Cassette {
    /// Loads a file; if only its `.partial` is there, that.
    pub fn load(path: &Path) -> Result<Self, CassetteError> {
        let bytes = match std::fs::read(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                std::fs::read(partial_path(path)).map_err(|_| CassetteError::Read { path: path.to_owned(), source: error })?
            }
            other => other.map_err(|source| CassetteError::Read { path: path.to_owned(), source })?,
        };
        Self::parse(&bytes)
    }

    /// Reads the bytes of a file.
    pub fn parse(bytes: &[u8]) -> Result<Self, CassetteError> {
        let (texts, trusted) = intact_lines(bytes)?;
        let mut texts = texts.into_iter();
        let head = read_head(texts.next().ok_or(CassetteError::NoHead)?)?;
        let mut cassette =
            Self { head, lines: Vec::new(), seal: None, status: Status::Aborted, quarantined_bytes: bytes.len() - trusted };
        let mut blobs = BTreeMap::new();
        for (index, text) in texts.enumerate() {
            let line = index + 2;
            if cassette.seal.is_some() {
                return Err(CassetteError::Malformed { line, message: "lines after the seal".to_owned() });
            }
            check_depth(text, line)?;
            match Line::parse(text).map_err(|error| CassetteError::Malformed { line, message: error.to_string() })? {
                Line::Head(_) => return Err(CassetteError::Malformed { line, message: "a second head".to_owned() }),
                Line::Blob(blob) => {
                    if hex::encode(Sha256::digest(blob.data.as_bytes())) != blob.sha256 {
                        return Err(CassetteError::Malformed { line, message: "a blob's digest is wrong".to_owned() });
                    }
                    blobs.insert(blob.sha256, blob.data);
                }
                Line::Seal(seal) => cassette.seal = Some(seal),
                Line::Open(mut open) => {
                    open.body = expand(&open.body, &blobs);
                    cassette.lines.push(Line::Open(open));
                }
                other => cassette.lines.push(other),
            }
        }
        if cassette.seal.as_ref().is_some_and(|seal| seal.status == "complete") && cassette.quarantined_bytes == 0 {
            cassette.status = Status::Complete;
        }
        Ok(cassette)
    }

    /// When the recording started, by the wall clock.
    pub fn started(&self) -> Option<UnixNanos> {
        stamp::parse(&self.head.started)
    }
}

/// The lines that continue the chain, and how many bytes they take.
fn intact_lines(bytes: &[u8]) -> Result<(Vec<&str>, usize), CassetteError> {
    let mut h = chain::START.to_owned();
    let mut lines = Vec::new();
    let mut at = 0;
    while let Some(length) = bytes[at..].iter().position(|byte| *byte == b'\n') {
        let line = &bytes[at..at + length];
        let Some(next) = chain::check_line(&h, line) else { break };
        if length > MAX_LINE_BYTES {
            return Err(CassetteError::Limit { line: lines.len() + 1, what: "longer than 16 MiB" });
        }
        let Ok(text) = std::str::from_utf8(line) else { break };
        lines.push(text);
        h = next;
        at += length + 1;
    }
    Ok((lines, at))
}

fn read_head(text: &str) -> Result<Head, CassetteError> {
    check_depth(text, 1)?;
    let head = match Line::parse(text) {
        Ok(Line::Head(head)) => *head,
        Ok(_) => return Err(CassetteError::NoHead),
        Err(error) => return Err(CassetteError::Malformed { line: 1, message: error.to_string() }),
    };
    let major = head.v.split('.').next().and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(MAJOR) => {}
        Some(_) => return Err(CassetteError::TooNew { found: head.v }),
        None => return Err(CassetteError::Malformed { line: 1, message: format!("version {:?} is not MAJOR.MINOR", head.v) }),
    }
    match head.features.iter().find(|feature| !FEATURES.contains(&feature.as_str())) {
        Some(feature) => Err(CassetteError::Feature { feature: feature.clone() }),
        None => Ok(head),
    }
}

/// Counts brackets outside strings; the line itself is one level.
fn check_depth(text: &str, line: usize) -> Result<(), CassetteError> {
    let (mut depth, mut in_string, mut escaped) = (0usize, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH + 1 {
            return Err(CassetteError::Limit { line, what: "nested deeper than 128 levels" });
        }
    }
    Ok(())
}

/// The body with each `{"$blob": digest}` replaced by its text.
fn expand(raw: &RawJson, blobs: &BTreeMap<String, String>) -> RawJson {
    let text = raw.get();
    if blobs.is_empty() || !text.contains("$blob") {
        return raw.clone();
    }
    let Ok(node) = Node::parse(text) else { return raw.clone() };
    let mut edits = Vec::new();
    find_blobs(&node, blobs, &mut edits);
    body::raw(splice(text, edits))
}

fn find_blobs(node: &Node, blobs: &BTreeMap<String, String>, edits: &mut Vec<(std::ops::Range<usize>, String)>) {
    match &node.value {
        Value::Object(members) if members.len() == 1 && members[0].name == "$blob" => {
            if let Some(data) = members[0].node.text().and_then(|digest| blobs.get(digest)) {
                edits.push((node.span.clone(), quote(data)));
            }
        }
        Value::Object(members) => members.iter().for_each(|member| find_blobs(&member.node, blobs, edits)),
        Value::Array(items) => items.iter().for_each(|item| find_blobs(item, blobs, edits)),
        Value::Atom(_) | Value::Text(_) => {}
    }
}
