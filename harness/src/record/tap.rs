//! Takes stimuli, hook decisions and what outside clients are told and asked for the cassette from the host's trace.
//!
//! Invariant: every event goes on to the next sink unchanged. Deliberately nothing about other exchanges: the wrappers see
//! them nearer to the wire. Use it *or* call [`Recording::stim`], not both.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_boundary::SpanId;
use greenroom_boundary::trace::{Direction, EventKind, Outcome, TraceEvent, TraceSink};
use serde_json::{Value, json};

use super::Recording;
use super::recording::{NoteAt, Opening};
use crate::cassette::body;
use crate::cassette::line::Hook;
use crate::replay::client::notice;

/// A trace sink in front of another.
pub struct RecordingTap {
    inner: Arc<dyn TraceSink>,
    recording: Arc<Recording>,
    under_way: Mutex<UnderWay>,
}

/// The events that have no end yet.
#[derive(Default)]
struct UnderWay {
    stimuli: BTreeMap<String, u64>,
    questions: BTreeMap<SpanId, u64>,
}

impl RecordingTap {
    /// Records on the way to `inner`.
    pub fn new(inner: Arc<dyn TraceSink>, recording: Arc<Recording>) -> Self {
        Self { inner, recording, under_way: Mutex::default() }
    }

    fn record(&self, kind: &EventKind) {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        match kind {
            EventKind::Stimulus { id, method, body } => {
                under_way.stimuli.insert(id.clone(), self.recording.stim(method, id, body));
            }
            EventKind::StimulusEnd { id, outcome, body } => {
                if let Some(of) = under_way.stimuli.remove(id) {
                    self.recording.stim_end(of, *outcome, body);
                }
            }
            EventKind::Hook { hook, of, phase, mode, verdict, patch, reason, .. } => {
                self.recording.hook(Hook {
                    seq: 0,
                    vt: 0,
                    of: None,
                    span: Some(of.0),
                    hook: hook.clone(),
                    phase: *phase,
                    mode: *mode,
                    verdict: *verdict,
                    patch: patch.as_ref().map(|patch| body::raw(patch.to_string())),
                    reason: reason.clone(),
                });
            }
            EventKind::Request { span, boundary, method, body, .. } if is_client(boundary) => {
                let (lane, body) = (boundary.as_str(), body.to_string());
                let opening = Opening { lane, op: method, scope: lane, conn: 0, body: &body };
                under_way.questions.insert(*span, self.recording.open(&opening));
            }
            EventKind::Response { span, outcome, body, .. } => {
                if let Some(of) = under_way.questions.remove(span) {
                    self.recording.close(of, *outcome, Some(&body.to_string()), None);
                }
            }
            EventKind::Notification { boundary, method, direction, body } if is_client(boundary) => {
                self.told(boundary, method, *direction, &body["params"]);
            }
            _ => {}
        }
    }

    /// What a client tells the host is an input, and over at once.
    fn told(&self, boundary: &str, method: &str, direction: Direction, params: &Value) {
        if direction == Direction::In {
            let session = boundary.strip_prefix(CLIENT).unwrap_or(boundary);
            let seq = self.recording.stim(method, session, &json!({"session": session, "params": params}));
            self.recording.stim_end(seq, Outcome::Ok, &Value::Null);
            return;
        }
        let at = NoteAt { lane: boundary, dir: direction, of: None, anchor: None, conn: 0 };
        self.recording.note(&at, &notice(method, params));
    }
}

/// How the boundaries of outside clients begin.
const CLIENT: &str = "client.";

fn is_client(boundary: &str) -> bool {
    boundary.starts_with(CLIENT)
}

impl TraceSink for RecordingTap {
    fn emit(&self, event: TraceEvent) {
        self.record(&event.kind);
        self.inner.emit(event);
    }
}
