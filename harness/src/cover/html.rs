//! The report as one page: a heat map of kinds by outcome and depth, then the lists.
//!
//! Invariant: the page is whole in itself, holds no script, and says in text what it says in colour. Everything that comes
//! from a scenario is escaped. Deliberately no links: it is a picture of one run.

use std::fmt::Write as _;

use super::model::{HookDepth, HookOutcome};
use super::report::{CellRow, CellState, Count, HookReport, KindRow};

const STYLE: &str = include_str!("page.css");

/// The report as a page.
pub fn render_html(report: &HookReport) -> String {
    let mut page = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Hook coverage</title>\n");
    let _ = write!(page, "<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>Hook coverage</h1>\n");
    page.push_str("<p>What came of hooks in this suite, by kind of hook, against what can come of them.</p>\n");
    sums(&mut page, report);
    map(&mut page, report);
    missing(&mut page, report);
    edges(&mut page, report);
    scenarios(&mut page, report);
    hooks(&mut page, report);
    unreachable(&mut page, report);
    page.push_str("</body>\n</html>\n");
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn sums(page: &mut String, report: &HookReport) {
    let totals = report.totals;
    page.push_str("<ul class=\"sums\">\n");
    for (name, count) in [("cells", totals.cells), ("order edges", totals.edges), ("cells of single hooks", totals.hook_cells)]
    {
        let class = if count.is_full() { "" } else { " class=\"short\"" };
        let Count { covered, reachable } = count;
        let _ = writeln!(
            page,
            "<li{class}><b>{} %</b>{name}<br><small>{covered} of {reachable} reachable</small></li>",
            count.percent()
        );
    }
    page.push_str("</ul>\n");
}

fn map(page: &mut String, report: &HookReport) {
    page.push_str("<h2>Cells</h2>\n<p class=\"key\"><label><span class=\"hit1\">1</span>seen in one scenario</label>");
    page.push_str(
        "<label><span class=\"hit2\">2</span>two to four</label><label><span class=\"hit3\">5</span>five or more</label>",
    );
    page.push_str("<label><span class=\"miss\">missing</span>can be reached, not seen</label>");
    page.push_str("<label><span class=\"none\">·</span>cannot be reached</label>");
    page.push_str("<label><span class=\"odd\">(1)</span>seen, though the model says it cannot be</label></p>\n");
    page.push_str("<p>Depth counts the hooks inside which a hook runs. Depths that a kind cannot reach are left out.</p>\n");
    page.push_str("<div class=\"wide\"><table class=\"map\">\n<thead><tr>");
    for column in ["form", "side", "boundary", "mode", "depth"] {
        let _ = write!(page, "<th>{column}</th>");
    }
    for outcome in HookOutcome::ALL {
        let _ = write!(page, "<th scope=\"col\">{outcome}</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for kind in &report.kinds {
        for depth in HookDepth::ALL {
            let is_here = |cell: &CellRow| cell.depth == depth && cell.state != CellState::Unreachable;
            if kind.cells.iter().any(is_here) {
                row(page, kind, depth);
            }
        }
    }
    page.push_str("</tbody></table></div>\n");
}

fn row(page: &mut String, kind: &KindRow, depth: HookDepth) {
    let class = if depth == HookDepth::Zero { "" } else { " class=\"deep\"" };
    let _ = write!(page, "<tr{class}>");
    for part in kind.name.split(' ') {
        let _ = write!(page, "<th scope=\"row\">{}</th>", escaped(part));
    }
    let _ = write!(page, "<th scope=\"row\" class=\"depth\">{}</th>", depth.as_str());
    for cell in kind.cells.iter().filter(|cell| cell.depth == depth) {
        let (class, text) = match (cell.state, cell.scenarios) {
            (CellState::Covered, 1) => ("hit1", cell.scenarios.to_string()),
            (CellState::Covered, 2..=4) => ("hit2", cell.scenarios.to_string()),
            (CellState::Covered, _) => ("hit3", cell.scenarios.to_string()),
            (CellState::Uncovered, _) => ("miss", "missing".to_owned()),
            (CellState::Unreachable, _) => ("none", "·".to_owned()),
            (CellState::Unexpected, _) => ("odd", format!("({})", cell.scenarios)),
        };
        let title = format!("{}: {} at depth {}, {} times", kind.name, cell.outcome, depth.as_str(), cell.runs);
        let _ = write!(page, "<td class=\"{class}\" title=\"{}\">{text}</td>", escaped(&title));
    }
    page.push_str("</tr>\n");
}

fn missing(page: &mut String, report: &HookReport) {
    for (title, state) in [("Not seen", CellState::Uncovered), ("Seen against the model", CellState::Unexpected)] {
        let cells: Vec<_> = report.cells(state).collect();
        if cells.is_empty() {
            continue;
        }
        let _ = write!(page, "<h2>{title}</h2>\n<ul>\n");
        for (kind, cell) in cells {
            let _ = writeln!(page, "<li>{}: {} at depth {}</li>", escaped(kind), cell.outcome, cell.depth.as_str());
        }
        page.push_str("</ul>\n");
    }
    if !report.undeclared.is_empty() {
        let rows = report.undeclared.iter().map(|(what, count)| vec![escaped(what), count.to_string()]);
        list(page, "Hook events that no declaration explains", &["hook", "times"], rows.collect());
    }
}

/// A table behind a heading that opens it; columns whose heading ends in `#` hold numbers.
fn list(page: &mut String, title: &str, columns: &[&str], rows: Vec<Vec<String>>) {
    let _ = write!(
        page,
        "<details><summary>{title} ({})</summary>\n<div class=\"wide\"><table class=\"list\">\n<thead><tr>",
        rows.len()
    );
    for column in columns {
        let _ = write!(page, "<th>{}</th>", column.trim_end_matches('#'));
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        page.push_str("<tr>");
        for (place, cell) in row.iter().enumerate() {
            let class = if columns.get(place).is_some_and(|column| column.ends_with('#')) { " class=\"n\"" } else { "" };
            let _ = write!(page, "<td{class}>{cell}</td>");
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody></table></div></details>\n");
}

fn edges(page: &mut String, report: &HookReport) {
    let state = |state: CellState| match state {
        CellState::Covered => "seen",
        CellState::Uncovered => "<span class=\"miss\">missing</span>",
        CellState::Unreachable => "·",
        CellState::Unexpected => "<span class=\"odd\">against the model</span>",
    };
    let rows = report.edges.iter().map(|edge| {
        let (from, to) = (escaped(&edge.from), escaped(&edge.to));
        vec![from, edge.outcome.to_string(), to, edge.ran.to_string(), edge.skipped.to_string(), state(edge.state).to_owned()]
    });
    let columns = ["earlier hook", "what came of it", "later hook", "ran #", "was skipped #", ""];
    list(page, "Order edges", &columns, rows.collect());
}

fn scenarios(page: &mut String, report: &HookReport) {
    let used = report.scenarios.iter().filter(|scenario| scenario.cells > 0);
    let rows = used.map(|scenario| vec![escaped(&scenario.id), scenario.cells.to_string(), scenario.unique.to_string()]);
    list(page, "Scenarios", &["scenario", "cells #", "cells that only it covers #"], rows.collect());
}

fn hooks(page: &mut String, report: &HookReport) {
    let rows = report.hooks.iter().map(|hook| {
        let Count { covered, reachable } = hook.count;
        vec![
            escaped(&hook.scenario),
            escaped(&hook.hook),
            escaped(&hook.boundary),
            escaped(&hook.kind),
            format!("{covered}/{reachable}"),
            escaped(&hook.missing.join(", ")),
        ]
    });
    list(page, "Single hooks", &["scenario", "hook", "boundary", "kind", "cells #", "not seen"], rows.collect());
}

fn unreachable(page: &mut String, report: &HookReport) {
    let rows = report.unreachable.iter().map(|row| vec![escaped(&row.kind), escaped(&row.cells), escaped(&row.reason)]);
    list(page, "What cannot be reached, and why", &["kind", "cells", "reason"], rows.collect());
}
