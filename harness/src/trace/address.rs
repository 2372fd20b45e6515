//! Finding the events that a [`Where`] means.
//!
//! Invariant: without `phase`, `outcome` or `hook` an address means the start of something (a request, a stimulus, a
//! one-way message), so that `nth: 2` is the second call and not the answer to the first; only "never" looks at every
//! side. Deliberately no search order of its own: whoever asks decides what comes after what.

use std::borrow::Cow;

use greenroom_boundary::trace::{EventKind, Outcome, TraceEvent};
use greenroom_mocks::pattern::Mismatch;
use serde_json::{Value, json};

use crate::model::{Phase, Where, glob};

/// Which sides of an exchange an address without a phase means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sides {
    /// The start.
    Start,
    /// Every one.
    Any,
}

impl Where {
    /// Does the event fit in everything but `match` and `nth`?
    pub fn names(&self, event: &TraceEvent, sides: Sides) -> bool {
        let fits = |wanted: &Option<String>, found: Option<&str>| match wanted {
            Some(wanted) => found.is_some_and(|found| glob(wanted, found)),
            None => true,
        };
        self.side_fits(&event.kind, sides)
            && self.boundary_fits(&event.kind)
            && fits(&self.method, Some(event.kind.method()))
            && fits(&self.assistant, event.agent.as_ref().map(|agent| agent.as_str()))
            && fits(&self.hook, hook_id(&event.kind))
            && self.outcome.is_none_or(|wanted| outcome(&event.kind) == Some(wanted))
    }

    fn side_fits(&self, kind: &EventKind, sides: Sides) -> bool {
        let found = Phase::of(kind);
        match self.phase {
            Some(wanted) => wanted == found,
            None if self.hook.is_some() || self.boundary.as_str() == "hook" => found == Phase::Hook,
            None if self.outcome.is_some() || sides == Sides::Any => true,
            None => !matches!(found, Phase::Chunk | Phase::Response | Phase::StimulusEnd | Phase::Hook | Phase::Fault),
        }
    }

    fn boundary_fits(&self, kind: &EventKind) -> bool {
        match (self.boundary.as_str(), kind) {
            // A hook event carries the boundary of the exchange that it looks at.
            ("hook", EventKind::Hook { .. }) => true,
            // What the host itself noticed, wherever it was.
            ("host", EventKind::Warning { .. }) => true,
            _ => self.boundary.matches(kind.boundary()),
        }
    }

    /// Holds the event's body against `match`.
    pub fn body_fits(&self, event: &TraceEvent) -> Result<(), Mismatch> {
        self.body.as_ref().map_or(Ok(()), |wanted| wanted.matches(Some(&body(&event.kind))))
    }

    /// Does the event fit in everything but `nth`?
    pub fn fits(&self, event: &TraceEvent, sides: Sides) -> bool {
        self.names(event, sides) && self.body_fits(event).is_ok()
    }

    /// The positions of the events that are meant, in order.
    pub fn positions(&self, events: &[TraceEvent], sides: Sides) -> Vec<usize> {
        let all = (0..events.len()).filter(|index| self.fits(&events[*index], sides));
        match self.nth {
            Some(nth) => all.skip(nth.get() as usize - 1).take(1).collect(),
            None => all.collect(),
        }
    }

    /// The first event that is meant.
    pub fn find(&self, events: &[TraceEvent]) -> Option<usize> {
        self.positions(events, Sides::Start).first().copied()
    }

    /// The event from `first` on that comes nearest: right in everything but its body.
    pub fn near_miss(&self, events: &[TraceEvent], first: usize) -> Option<(usize, Mismatch)> {
        (first..events.len())
            .filter(|index| self.names(&events[*index], Sides::Start))
            .find_map(|index| self.body_fits(&events[index]).err().map(|mismatch| (index, mismatch)))
    }

    /// The address in one line, as a scenario spells it.
    pub fn describe(&self) -> String {
        let mut parts = vec![format!("boundary: {}", self.boundary)];
        for (name, value) in [("method", &self.method), ("assistant", &self.assistant), ("hook", &self.hook)] {
            if let Some(value) = value {
                parts.push(format!("{name}: {value}"));
            }
        }
        if let Some(phase) = self.phase {
            parts.push(format!("phase: {}", word(json!(phase))));
        }
        if let Some(outcome) = self.outcome {
            parts.push(format!("outcome: {}", word(json!(outcome))));
        }
        if let Some(nth) = self.nth {
            parts.push(format!("nth: {nth}"));
        }
        if let Some(body) = &self.body {
            parts.push(format!("match: {}", body.as_value()));
        }
        format!("{{ {} }}", parts.join(", "))
    }
}

/// The text of a unit variant.
pub(super) fn word(value: Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn hook_id(kind: &EventKind) -> Option<&str> {
    match kind {
        EventKind::Hook { hook, .. } => Some(hook),
        _ => None,
    }
}

fn outcome(kind: &EventKind) -> Option<Outcome> {
    match kind {
        EventKind::Response { outcome, .. } | EventKind::StimulusEnd { outcome, .. } => Some(*outcome),
        _ => None,
    }
}

/// What `match` is held against: the event's body, or its own fields where it has none.
fn body(kind: &EventKind) -> Cow<'_, Value> {
    match kind {
        EventKind::Stimulus { body, .. }
        | EventKind::StimulusEnd { body, .. }
        | EventKind::Request { body, .. }
        | EventKind::Chunk { body, .. }
        | EventKind::Response { body, .. }
        | EventKind::Notification { body, .. }
        | EventKind::Output { body }
        | EventKind::Fault { body, .. }
        | EventKind::Warning { body, .. } => Cow::Borrowed(body),
        EventKind::Hook { .. } | EventKind::Delegate { .. } | EventKind::Console { .. } => {
            Cow::Owned(serde_json::to_value(kind).unwrap_or(Value::Null))
        }
    }
}
