//! The last look before a cassette is sealed: no secret left, and every request finds its own exchange.
//!
//! Invariant: it reads what is on disk, not what was meant to be written. A secret that a stream cut into pieces is found by
//! joining them. Deliberately no repair: a hit leaves the file unsealed.

use std::collections::BTreeMap;

use super::identity::{Occurrences, exchange_key};
use super::json::Node;
use super::line::Line;
use super::reader::Cassette;
use super::redact::Redactor;

/// What the sweep found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Events with a secret in them, by `seq`.
    pub secrets: Vec<u64>,
    /// Opens that do not find themselves, by `seq`.
    pub strangers: Vec<u64>,
    /// How many exchanges there are.
    pub exchanges: u64,
    /// How many share their key with an earlier one of their scope.
    pub repeated_keys: u64,
}

/// Looks at a cassette and at the bytes that it was read from.
pub fn sweep(cassette: &Cassette, bytes: &[u8], redactor: &Redactor) -> Findings {
    let mut findings = Findings::default();
    let mut occurrences = Occurrences::default();
    let mut joined: BTreeMap<u64, Joined> = BTreeMap::new();
    for line in &cassette.lines {
        for (seq, text) in texts(line) {
            if redactor.finds(text) {
                findings.secrets.push(seq);
            }
        }
        match line {
            Line::Open(open) => {
                findings.exchanges += 1;
                let key = exchange_key(&open.lane, &open.op, open.body.get());
                let occ = occurrences.next(&open.scope, &key);
                if (&key, occ) != (&open.key, open.occ) {
                    findings.strangers.push(open.seq);
                }
            }
            Line::Chunk(chunk) => joined.entry(chunk.of).or_default().add(&chunk.raw),
            _ => {}
        }
    }
    for (seq, pieces) in &joined {
        if pieces.texts().any(|text| redactor.finds(text)) {
            findings.secrets.push(*seq);
        }
    }
    if findings.secrets.is_empty() && redactor.long_values().iter().any(|value| contains(bytes, value.as_bytes())) {
        findings.secrets.push(0);
    }
    findings.repeated_keys = occurrences.repeated();
    findings
}

/// The parts of a line that came from outside.
fn texts(line: &Line) -> Vec<(u64, &str)> {
    match line {
        Line::Stim(stim) => vec![(stim.seq, stim.body.get())],
        Line::StimEnd(end) => end.body.iter().map(|body| (end.seq, body.get())).collect(),
        Line::Open(open) => vec![(open.seq, open.body.get())],
        Line::Chunk(chunk) => vec![(chunk.seq, chunk.raw.as_str())],
        Line::Note(note) => vec![(note.seq, note.body.get())],
        Line::Close(close) => close.body.iter().map(|body| (close.seq, body.get())).collect(),
        Line::Hook(hook) => {
            hook.patch.iter().map(|patch| patch.get()).chain(hook.reason.as_deref()).map(|text| (hook.seq, text)).collect()
        }
        Line::In(input) => vec![(input.seq, input.value.get())],
        Line::Head(_) | Line::Seal(_) | Line::Blob(_) | Line::Other => Vec::new(),
    }
}

/// The pieces of one exchange, joined by what they continue.
#[derive(Debug, Default)]
struct Joined(BTreeMap<String, String>);

impl Joined {
    fn add(&mut self, raw: &str) {
        let Ok(node) = Node::parse(raw) else { return };
        let field = |name: &str| node.get(name).and_then(Node::text);
        let index = node.get("index").map(|index| index.span.clone()).and_then(|span| raw.get(span)).unwrap_or_default();
        for name in ["delta", "arguments", "stdout", "stderr"] {
            if let Some(piece) = field(name) {
                let stream = format!("{}/{name}/{index}", field("type").unwrap_or_default());
                self.0.entry(stream).or_default().push_str(piece);
            }
        }
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.values().map(String::as_str)
    }
}

fn contains(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}
