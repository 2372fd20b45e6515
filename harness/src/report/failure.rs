//! One failure as text: what was asked, where, what came instead, the events around it.
//!
//! Invariant: at most 25 lines, each at most 160 characters. Deliberately no colours: the caller paints whole lines.

use crate::run::{CaseResult, Failure};

/// Longest line of a rendered failure, in characters.
const WIDTH: usize = 160;
/// Most lines of a failure's message.
const MESSAGE_LINES: usize = 10;

/// Renders a failure of a case, ended by the command that runs it again.
pub fn render_failure(case: &CaseResult, failure: &Failure) -> String {
    let mut lines = vec![
        format!("{}: {} [{}]", failure.verdict.as_str().to_uppercase(), case.id, failure.code),
        format!("  at    {}", failure.at),
        format!("  asked {}", failure.what),
    ];
    let mut found = failure.message.lines();
    lines.push(format!("  found {}", found.next().unwrap_or("nothing")));
    let rest: Vec<_> = found.collect();
    for line in rest.iter().take(MESSAGE_LINES - 1) {
        lines.push(format!("        {line}"));
    }
    if rest.len() > MESSAGE_LINES - 1 {
        lines.push(format!("        … {} more lines", rest.len() - (MESSAGE_LINES - 1)));
    }
    if let Some(excerpt) = &failure.excerpt {
        lines.push(format!("  trace, virtual time {}, seed {}:", seconds(excerpt.vt), case.seed));
        for line in &excerpt.lines {
            lines.push(format!("  {} {}", if line.marked { ">" } else { " " }, line.text));
        }
    } else {
        lines.push(format!("  virtual time {}, seed {}", seconds(case.virtual_ns), case.seed));
    }
    let mut text: String = lines.iter().map(|line| shorten(line, WIDTH) + "\n").collect();
    // Never shortened: it is there to be copied.
    text.push_str(&format!("  rerun {}\n", case.rerun));
    text
}

/// Nanoseconds as seconds, without trailing zeros beyond milliseconds.
pub(crate) fn seconds(ns: u64) -> String {
    let fraction = format!("{:09}", ns % 1_000_000_000);
    let kept = fraction.trim_end_matches('0').len().max(3);
    format!("{}.{}s", ns / 1_000_000_000, &fraction[..kept])
}

/// The text, cut to `width` characters.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}
