//! Test Anything Protocol, version 14.
//!
//! Invariant: numbers follow suite order; a known failure is a `TODO`. Deliberately no subtests.

use crate::run::{CaseResult, SuiteResult, Verdict};

pub(super) fn render(suite: &SuiteResult) -> String {
    let mut text = format!("TAP version 14\n1..{}\n", suite.cases.len());
    for (index, case) in suite.cases.iter().enumerate() {
        let ok = matches!(case.verdict, Verdict::Pass);
        let todo = case.known_failing.as_deref().filter(|_| case.verdict == Verdict::KnownFailing);
        text.push_str(&format!(
            "{}ok {} - {}{}\n",
            if ok { "" } else { "not " },
            index + 1,
            case.id.replace('#', "\\#"),
            todo.map(|reason| format!(" # TODO {reason}")).unwrap_or_default(),
        ));
        if !ok && todo.is_none() {
            text.push_str(&diagnostics(case));
        }
    }
    text
}

fn diagnostics(case: &CaseResult) -> String {
    let mut text = format!("  ---\n  verdict: {}\n  seed: {}\n  rerun: {}\n", case.verdict, case.seed, quote(&case.rerun));
    if let Some(first) = case.failures.first() {
        text.push_str(&format!(
            "  code: {}\n  at: {}\n  asked: {}\n  found: {}\n",
            first.code,
            quote(&first.at.to_string()),
            quote(&first.what),
            quote(&first.message)
        ));
    }
    text.push_str("  ...\n");
    text
}

/// A JSON string is a YAML double-quoted scalar.
fn quote(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}
