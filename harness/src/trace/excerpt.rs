//! Events as short lines, and the neighbourhood of one.
//!
//! Invariant: three events on each side at most, one line each. Deliberately lossy: the whole is in the trace file.

use greenroom_boundary::trace::{EventKind, TraceEvent};
use serde_json::json;

use crate::run::{Excerpt, ExcerptLine};

/// Events shown on each side.
const NEIGHBOURS: usize = 3;
/// Longest body in a line, in characters.
const BODY_CHARS: usize = 90;

/// The event in one line: `#12 1.200s request mcp.weather tools/call {…}`.
pub fn brief(event: &TraceEvent) -> String {
    let agent = event.agent.as_ref().map(|agent| format!(" [{agent}]")).unwrap_or_default();
    format!("#{} {}{agent} {}", event.seq, crate::report::seconds(event.vt), what(&event.kind))
}

fn what(kind: &EventKind) -> String {
    let short = |body: &serde_json::Value| crate::report::shorten(&body.to_string(), BODY_CHARS);
    use super::address::word;
    match kind {
        EventKind::Stimulus { id, method, body } => format!("stimulus {id} {method} {}", short(body)),
        EventKind::StimulusEnd { id, outcome, body } => format!("stimulus end {id} {} {}", word(json!(outcome)), short(body)),
        EventKind::Request { boundary, method, body, .. } => format!("request {boundary} {method} {}", short(body)),
        EventKind::Chunk { boundary, body, .. } => format!("chunk {boundary} {}", short(body)),
        EventKind::Response { boundary, method, outcome, body, .. } => {
            format!("response {boundary} {method} {} {}", word(json!(outcome)), short(body))
        }
        EventKind::Notification { boundary, method, direction, body } => {
            format!("notification {} {boundary} {method} {}", word(json!(direction)), short(body))
        }
        EventKind::Hook { hook, boundary, method, phase, verdict, reason, .. } => format!(
            "hook {hook} {} of {boundary} {method}: {}{}",
            word(json!(phase)),
            word(json!(verdict)),
            reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default()
        ),
        EventKind::Delegate { from, to, depth, via } => {
            format!("delegate {from} -> {to} depth {depth} via {}", word(json!(via)))
        }
        EventKind::Output { body } => format!("output {}", short(body)),
        EventKind::Console { level, text } => format!("console {level} {text}"),
        EventKind::Fault { id, boundary, .. } => format!("fault {id} at {boundary}"),
        EventKind::Warning { boundary, method, body } => format!("warning {boundary} {method} {}", short(body)),
    }
}

/// The event at `index` with its neighbours.
pub fn excerpt(events: &[TraceEvent], index: usize) -> Option<Excerpt> {
    let vt = events.get(index)?.vt;
    let first = index.saturating_sub(NEIGHBOURS);
    let last = (index + NEIGHBOURS + 1).min(events.len());
    let lines = events[first..last]
        .iter()
        .enumerate()
        .map(|(offset, event)| ExcerptLine { marked: first + offset == index, text: brief(event) })
        .collect();
    Some(Excerpt { vt, lines })
}
