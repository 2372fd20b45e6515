//! The report for a terminal: a row for each file, and which lines did not run.
//!
//! Invariant: what did not run is named by its lines. Deliberately no colours and no width detection.

use std::fmt::Write as _;

use super::report::{FileReport, ScriptReport, Share};

/// The report as text.
pub fn render_text(report: &ScriptReport) -> String {
    let mut text = String::new();
    let width = report.files.iter().map(|file| file.name.chars().count()).max().unwrap_or(0).max("script".len());
    let _ = writeln!(text, "{:<width$} {:>10} {:>12} {:>10}  lines that did not run", "script", "functions", "lines", "blocks");
    for file in &report.files {
        let totals = file.totals;
        let (functions, lines, blocks) = (share(totals.functions), percent(totals.lines), share(totals.blocks));
        let row = format!("{:<width$} {functions:>10} {lines:>12} {blocks:>10}  {}", file.name, missing(file));
        let _ = writeln!(text, "{}", row.trim_end());
    }
    let totals = report.totals;
    for (name, share) in [("functions", totals.functions), ("lines", totals.lines), ("blocks", totals.blocks)] {
        let _ = writeln!(text, "{name}: {} of {} ({} %)", share.covered, share.all, share.percent());
    }
    text
}

fn share(share: Share) -> String {
    format!("{}/{}", share.covered, share.all)
}

fn percent(share: Share) -> String {
    format!("{}/{} {:>3} %", share.covered, share.all, share.percent())
}

/// The lines without a run, neighbours joined: lines between two of them that have no code do not part them.
fn missing(file: &FileReport) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    let mut joins = false;
    for line in &file.lines {
        match runs.last_mut() {
            Some((_, last)) if joins && line.count == 0 => *last = line.line,
            _ if line.count == 0 => runs.push((line.line, line.line)),
            _ => {}
        }
        joins = line.count == 0;
    }
    let shown = runs.iter().map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    shown.collect::<Vec<_>>().join(", ")
}
