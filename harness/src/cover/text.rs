//! The report for a terminal: a table of cells, then what is missing.
//!
//! Invariant: what is missing is said in words, not only in the table. Deliberately no colours and no width detection.

use std::fmt::Write as _;

use super::model::{HookDepth, HookOutcome};
use super::report::{CellRow, CellState, HookReport, KindRow};

/// Scenarios named that give nothing of their own, at most.
const SHOWN: usize = 20;

/// The report as text.
pub fn render_text(report: &HookReport) -> String {
    let mut text = String::new();
    table(&mut text, report);
    missing(&mut text, report);
    unreachable(&mut text, report);
    edges(&mut text, report);
    scenarios(&mut text, report);
    let totals = report.totals;
    for (name, count) in [("cells", totals.cells), ("order edges", totals.edges), ("cells of single hooks", totals.hook_cells)]
    {
        let _ = writeln!(text, "{name}: {} of {} reachable ({} %)", count.covered, count.reachable, count.percent());
    }
    text
}

fn table(text: &mut String, report: &HookReport) {
    let width = report.kinds.iter().map(|kind| kind.name.len()).max().unwrap_or(0).max(4);
    let _ = write!(text, "{:<width$} depth", "kind");
    for outcome in HookOutcome::ALL {
        let _ = write!(text, " {:>9}", outcome.as_str());
    }
    text.push('\n');
    for kind in &report.kinds {
        for depth in HookDepth::ALL {
            let cells: Vec<&CellRow> = kind.cells.iter().filter(|cell| cell.depth == depth).collect();
            if cells.iter().all(|cell| cell.state == CellState::Unreachable) && !never_runs(kind, depth) {
                continue;
            }
            let _ = write!(text, "{:<width$} {:>5}", kind.name, depth.as_str());
            for cell in cells {
                let _ = write!(text, " {:>9}", shown(cell));
            }
            text.push('\n');
        }
    }
    text.push_str("Numbers count scenarios; MISSING can be reached; · cannot; (n) was seen though the model says it cannot.\n");
}

/// A kind without any reachable cell has one row all the same.
fn never_runs(kind: &KindRow, depth: HookDepth) -> bool {
    depth == HookDepth::Zero && kind.cells.iter().all(|cell| cell.state == CellState::Unreachable)
}

fn shown(cell: &CellRow) -> String {
    match cell.state {
        CellState::Covered => cell.scenarios.to_string(),
        CellState::Uncovered => "MISSING".to_owned(),
        CellState::Unreachable => "·".to_owned(),
        CellState::Unexpected => format!("({})", cell.scenarios),
    }
}

fn missing(text: &mut String, report: &HookReport) {
    let uncovered: Vec<_> = report.cells(CellState::Uncovered).collect();
    if !uncovered.is_empty() {
        let _ = writeln!(text, "\n{} reachable cells that no scenario shows:", uncovered.len());
    }
    for (kind, cell) in uncovered {
        let _ = writeln!(text, "  {kind}: {} at depth {}", cell.outcome, cell.depth.as_str());
    }
    let unexpected: Vec<_> = report.cells(CellState::Unexpected).collect();
    if !unexpected.is_empty() {
        let _ = writeln!(text, "\n{} cells were seen that the model calls unreachable:", unexpected.len());
    }
    for (kind, cell) in unexpected {
        let _ = writeln!(text, "  {kind}: {} at depth {}", cell.outcome, cell.depth.as_str());
    }
    if !report.undeclared.is_empty() {
        text.push_str("\nhook events that no declaration explains:\n");
    }
    for (what, count) in &report.undeclared {
        let _ = writeln!(text, "  {what} ({count})");
    }
}

fn unreachable(text: &mut String, report: &HookReport) {
    if report.unreachable.is_empty() {
        return;
    }
    text.push_str("\ncannot be reached:\n");
    let mut last = "";
    for row in &report.unreachable {
        if row.kind != last {
            let _ = writeln!(text, "  {}", row.kind);
            last = &row.kind;
        }
        let _ = writeln!(text, "    {}: {}", row.cells, row.reason);
    }
}

fn edges(text: &mut String, report: &HookReport) {
    let uncovered: Vec<_> = report.edges.iter().filter(|edge| edge.state == CellState::Uncovered).collect();
    if !uncovered.is_empty() {
        let _ = writeln!(text, "\n{} order edges that no scenario shows:", uncovered.len());
    }
    for edge in uncovered {
        let _ = writeln!(text, "  {}, {} -> {}", edge.from, edge.outcome, edge.to);
    }
}

fn scenarios(text: &mut String, report: &HookReport) {
    let with_hooks: Vec<_> = report.scenarios.iter().filter(|scenario| scenario.cells > 0).collect();
    if with_hooks.is_empty() {
        return;
    }
    text.push_str("\ncells only this scenario covers / cells it covers:\n");
    for scenario in with_hooks.iter().filter(|scenario| scenario.unique > 0) {
        let _ = writeln!(text, "  {:>4} / {:<4} {}", scenario.unique, scenario.cells, scenario.id);
    }
    let redundant: Vec<&str> =
        with_hooks.iter().filter(|scenario| scenario.unique == 0).map(|scenario| scenario.id.as_str()).collect();
    if !redundant.is_empty() {
        let more = redundant.len().saturating_sub(SHOWN);
        let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
        let _ = writeln!(text, "  none of their own: {}{tail}", redundant[..redundant.len() - more].join(", "));
    }
    text.push('\n');
}
