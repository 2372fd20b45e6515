//! Why a live request has no recorded exchange.
//!
//! Invariant: an explanation has at most 12 lines and shows redacted bodies only. Near candidates are shown, never served.
//! Deliberately no structural diff: leaves are compared by their place.

use std::collections::BTreeMap;
use std::fmt;

use super::schedule::{Event, Fate, Schedule, What};
use super::session::Asked;
use crate::cassette::identity::projected;
use crate::cassette::json::{Node, Value};

/// Most candidates that are shown.
const MAX_CANDIDATES: usize = 3;
/// Most recorded exchanges that are compared.
const MAX_COMPARED: usize = 256;
/// Longest value that is shown, in characters.
const MAX_VALUE: usize = 60;

/// A live request that was not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayMiss {
    /// Where it went.
    pub lane: String,
    /// `tools/call`, `chat`, …
    pub op: String,
    /// How often exactly this request was recorded; above 0 means it was asked more often than recorded.
    pub recorded: usize,
    /// Operations that the lane has, if it has not this one.
    pub known_ops: Vec<String>,
    /// The recording broke off: the request may have come after its end.
    pub torn: bool,
    /// The nearest recorded requests.
    pub candidates: Vec<Candidate>,
}

/// A recorded request that is near.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its event.
    pub seq: u64,
    /// The host asked it already.
    pub used: bool,
    /// How many leaves differ.
    pub differing: usize,
    /// The first of them: its JSON pointer.
    pub path: String,
    /// What was recorded there.
    pub was: String,
    /// What is there now.
    pub now: String,
}

impl fmt::Display for ReplayMiss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "replay miss: {} {}", self.lane, self.op)?;
        if self.torn {
            write!(f, " (the recording breaks off; this may lie behind its end)")?;
        }
        if self.recorded > 0 {
            return write!(f, "\n  recorded {} times, asked once more", self.recorded);
        }
        if self.candidates.is_empty() {
            let known = if self.known_ops.is_empty() { "nothing".to_owned() } else { self.known_ops.join(", ") };
            return write!(f, "\n  the cassette has no such request; on this lane it has: {known}");
        }
        write!(f, "\n  no recorded request is the same; nearest:")?;
        for candidate in &self.candidates {
            let Candidate { seq, used, differing, path, was, now } = candidate;
            let used = if *used { ", used already" } else { "" };
            write!(f, "\n  #{seq} ({differing} differing{used}) at {path}\n    recorded {was}\n    now      {now}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ReplayMiss {}

impl ReplayMiss {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        "REPLAY_MISS"
    }
}

/// Something that makes a replay unfaithful.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplayProblem {
    /// A request or one-way frame that was not recorded.
    Miss(ReplayMiss),
    /// The host gave an exchange up that it did not give up when it was recorded.
    Abandoned {
        /// The next recorded event of the exchange.
        seq: u64,
        /// Where.
        lane: String,
    },
}

impl ReplayProblem {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Miss(miss) => miss.code(),
            Self::Abandoned { .. } => "REPLAY_ABANDONED",
        }
    }
}

impl fmt::Display for ReplayProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Miss(miss) => miss.fmt(f),
            Self::Abandoned { seq, lane } => {
                write!(
                    f,
                    "{lane}: the host gave up an exchange before event #{seq}, which it had waited for when it was recorded"
                )
            }
        }
    }
}

/// A recorded exchange that was never asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unused {
    /// Its event.
    pub seq: u64,
    /// Where.
    pub lane: String,
    /// `tools/call`, `chat`, …
    pub op: String,
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {} {} was never asked for", self.seq, self.lane, self.op)
    }
}

/// Compares a request with what was recorded.
pub(super) fn explain(schedule: &Schedule, asked: &Asked<'_>, body: &str, key: &str) -> ReplayMiss {
    let mut miss = ReplayMiss {
        lane: asked.lane.to_owned(),
        op: asked.op.to_owned(),
        recorded: 0,
        known_ops: Vec::new(),
        torn: false,
        candidates: Vec::new(),
    };
    let now = leaves(&projected(asked.lane, body));
    for (index, event) in schedule.events.iter().enumerate().filter(|(_, event)| event.lane == asked.lane) {
        let Some((op, recorded_key, recorded_body)) = outgoing(event) else { continue };
        if op != asked.op {
            if !miss.known_ops.contains(op) {
                miss.known_ops.push(op.clone());
            }
        } else if recorded_key == key {
            miss.recorded += 1;
        } else if miss.candidates.len() < MAX_COMPARED {
            let used = schedule.fate(index) != Fate::Pending;
            miss.candidates.push(compare(event.seq, used, &leaves(&projected(asked.lane, recorded_body)), &now));
        }
    }
    miss.candidates.sort_by_key(|candidate| (candidate.differing, candidate.used, candidate.seq));
    miss.candidates.truncate(MAX_CANDIDATES);
    miss
}

fn outgoing(event: &Event) -> Option<(&String, &String, &String)> {
    match &event.what {
        What::Open { op, key, body, .. } | What::NoteOut { op, key, body } => Some((op, key, body)),
        _ => None,
    }
}

fn compare(seq: u64, used: bool, was: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Candidate {
    let paths: std::collections::BTreeSet<&String> = was.keys().chain(now.keys()).collect();
    let differing: Vec<&String> = paths.into_iter().filter(|path| was.get(*path) != now.get(*path)).collect();
    let path = differing.first().map(|path| (*path).clone()).unwrap_or_default();
    let show = |side: &BTreeMap<String, String>| side.get(&path).map_or_else(|| "(absent)".to_owned(), |value| shorten(value));
    Candidate { seq, used, differing: differing.len(), was: show(was), now: show(now), path }
}

fn shorten(value: &str) -> String {
    let mut short: String = value.chars().take(MAX_VALUE).collect();
    if short.len() < value.len() {
        short.push('…');
    }
    short
}

/// Every leaf of a JSON text by its pointer.
fn leaves(text: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    match Node::parse(text) {
        Ok(node) => collect(&node, text, String::new(), &mut all),
        Err(_) => {
            all.insert(String::new(), text.to_owned());
        }
    }
    all
}

fn collect(node: &Node, text: &str, path: String, all: &mut BTreeMap<String, String>) {
    match &node.value {
        Value::Object(members) if !members.is_empty() => {
            for member in members {
                // What stands in a string as JSON is compared as if it stood there plainly.
                let below = if member.name == "$json" { path.clone() } else { format!("{path}/{}", member.name) };
                collect(&member.node, text, below, all);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                collect(item, text, format!("{path}/{index}"), all);
            }
        }
        _ => {
            all.insert(path, text[node.span.clone()].to_owned());
        }
    }
}
