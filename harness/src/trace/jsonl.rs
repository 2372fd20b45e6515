//! The trace as JSON lines.
//!
//! Invariant: writing a trace that was read gives the same bytes. Deliberately no masking: that is the writer's caller's.

use greenroom_boundary::trace::TraceEvent;

/// A line of a trace file that is no event.
#[derive(Debug, thiserror::Error)]
#[error("line {line} of the trace is no event: {source}; the file is damaged or of another version")]
pub struct TraceParseError {
    /// Line number, from 1.
    pub line: usize,
    /// What is wrong with it.
    #[source]
    pub source: serde_json::Error,
}

impl TraceParseError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        "TRACE_PARSE"
    }
}

/// One event as one line, without its newline.
pub fn line(event: &TraceEvent) -> String {
    // Events hold only strings, numbers and JSON values with text keys, which always serialize.
    serde_json::to_string(event).unwrap_or_else(|error| format!("{{\"seq\":{},\"unwritable\":\"{error}\"}}", event.seq))
}

/// The whole trace, one event per line.
pub fn to_jsonl(events: &[TraceEvent]) -> String {
    let mut text = String::new();
    for event in events {
        text.push_str(&line(event));
        text.push('\n');
    }
    text
}

/// Reads a trace; empty lines are passed over.
pub fn parse(text: &str) -> Result<Vec<TraceEvent>, TraceParseError> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
        .map(|(index, line)| serde_json::from_str(line).map_err(|source| TraceParseError { line: index + 1, source }))
        .collect()
}
