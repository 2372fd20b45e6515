//! The machine's report: JSON lines with a fixed field order.
//!
//! Invariant: one `case` line per case in suite order, then one `summary` line; `v` changes when a field's meaning does.
//! Deliberately no trace in it: `--trace-dir` writes those.

use serde::Serialize;

use crate::run::{CaseResult, SuiteResult, Verdict};

#[derive(Serialize)]
struct CaseLine<'a> {
    v: u32,
    event: &'static str,
    #[serde(flatten)]
    case: &'a CaseResult,
    wall_ms: u64,
}

#[derive(Serialize)]
struct SummaryLine {
    v: u32,
    event: &'static str,
    cases: usize,
    passed: usize,
    known_failing: usize,
    failed: usize,
    exit_code: u8,
    wall_ms: u64,
}

pub(super) fn render(suite: &SuiteResult) -> String {
    let mut text = String::new();
    let mut push = |line: Result<String, serde_json::Error>| {
        if let Ok(line) = line {
            text.push_str(&line);
            text.push('\n');
        }
    };
    for case in &suite.cases {
        push(serde_json::to_string(&CaseLine { v: 1, event: "case", case, wall_ms: case.wall.as_millis() as u64 }));
    }
    push(serde_json::to_string(&SummaryLine {
        v: 1,
        event: "summary",
        cases: suite.cases.len(),
        passed: suite.count(Verdict::Pass),
        known_failing: suite.count(Verdict::KnownFailing),
        failed: suite.cases.iter().filter(|case| !case.verdict.is_ok()).count(),
        exit_code: suite.exit_code(),
        wall_ms: suite.wall.as_millis() as u64,
    }));
    text
}
