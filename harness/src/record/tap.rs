//! Takes stimuli and hook decisions for the cassette from the host's trace.
//!
//! Invariant: every event goes on to the next sink unchanged. Deliberately nothing about exchanges: the wrappers see them
//! nearer to the wire. Use it *or* call [`Recording::stim`], not both.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_boundary::trace::{EventKind, TraceEvent, TraceSink};

use super::Recording;
use crate::cassette::body;
use crate::cassette::line::Hook;

/// A trace sink in front of another.
pub struct RecordingTap {
    inner: Arc<dyn TraceSink>,
    recording: Arc<Recording>,
    stimuli: Mutex<BTreeMap<String, u64>>,
}

impl RecordingTap {
    /// Records on the way to `inner`.
    pub fn new(inner: Arc<dyn TraceSink>, recording: Arc<Recording>) -> Self {
        Self { inner, recording, stimuli: Mutex::new(BTreeMap::new()) }
    }

    fn record(&self, kind: &EventKind) {
        let mut stimuli = self.stimuli.lock().unwrap_or_else(PoisonError::into_inner);
        match kind {
            EventKind::Stimulus { id, method, body } => {
                stimuli.insert(id.clone(), self.recording.stim(method, id, body));
            }
            EventKind::StimulusEnd { id, outcome, body } => {
                if let Some(of) = stimuli.remove(id) {
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
            _ => {}
        }
    }
}

impl TraceSink for RecordingTap {
    fn emit(&self, event: TraceEvent) {
        self.record(&event.kind);
        self.inner.emit(event);
    }
}
