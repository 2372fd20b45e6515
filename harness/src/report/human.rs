//! The report for a person: one line per case, the failures, a summary.
//!
//! Invariant: colours only if asked for, and never as the only sign. Deliberately no progress bar: that is the command's.

use super::failure::render_failure;
use crate::run::{CaseResult, SuiteResult, Verdict};

/// How the report for a person looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HumanStyle {
    /// Paint verdicts with ANSI colours.
    pub colour: bool,
    /// Leave out the lines of cases that passed.
    pub quiet: bool,
}

pub(super) fn render(suite: &SuiteResult, style: HumanStyle) -> String {
    let width = suite.cases.iter().map(|case| case.id.chars().count()).max().unwrap_or(0).min(70);
    let mut text = String::new();
    for case in &suite.cases {
        if !(style.quiet && case.verdict == Verdict::Pass) {
            text.push_str(&case_line(case, width, style));
        }
    }
    for case in suite.cases.iter().filter(|case| !case.verdict.is_ok()) {
        for failure in &case.failures {
            text.push('\n');
            text.push_str(&render_failure(case, failure));
        }
    }
    text.push('\n');
    text.push_str(&summary(suite, style));
    text
}

fn case_line(case: &CaseResult, width: usize, style: HumanStyle) -> String {
    let word = format!("{:<16}", case.verdict.as_str().to_uppercase());
    let mut line = format!(
        "{} {:<width$} {:>6} events {:>10} virtual {:>8} wall\n",
        paint(&word, case.verdict, style),
        case.id,
        case.events,
        format!("{:.3}s", std::time::Duration::from_nanos(case.virtual_ns).as_secs_f64()),
        format!("{}ms", case.wall.as_millis()),
    );
    if let Some(reason) = &case.known_failing {
        line.push_str(&format!("{:17}known: {reason}\n", ""));
    }
    for note in &case.notes {
        line.push_str(&format!("{:17}{note}\n", ""));
    }
    line
}

fn summary(suite: &SuiteResult, style: HumanStyle) -> String {
    let mut parts = Vec::new();
    for verdict in [
        Verdict::Pass,
        Verdict::Fail,
        Verdict::Error,
        Verdict::Miss,
        Verdict::Vacuous,
        Verdict::UnexpectedPass,
        Verdict::Nondeterministic,
        Verdict::KnownFailing,
    ] {
        let count = suite.count(verdict);
        if count > 0 || verdict == Verdict::Pass {
            let word = match verdict {
                Verdict::Pass => "passed",
                Verdict::Fail => "failed",
                Verdict::Error => "not judged",
                Verdict::Miss => "missed",
                other => other.as_str(),
            };
            parts.push(paint(&format!("{count} {word}"), verdict, style));
        }
    }
    let total = suite.cases.len();
    let noun = if total == 1 { "scenario" } else { "scenarios" };
    format!("{} of {total} {noun} in {:.2}s\n", parts.join(", "), suite.wall.as_secs_f64())
}

fn paint(text: &str, verdict: Verdict, style: HumanStyle) -> String {
    if !style.colour {
        return text.to_owned();
    }
    let code = match verdict {
        Verdict::Pass => 32,
        Verdict::KnownFailing => 33,
        _ => 31,
    };
    format!("\u{1b}[{code}m{text}\u{1b}[0m")
}
