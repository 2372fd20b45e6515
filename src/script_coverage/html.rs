//! The report as one page: a table of files, then each file as a heat map of its lines.
//!
//! Invariant: the page is whole in itself, holds no script, and says in text what it says in colour. Everything that comes
//! from a script is escaped. Deliberately no links to files: it is a picture of one run.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::report::{BlockRow, FileReport, ScriptReport, Share};

const STYLE: &str = include_str!("page.css");

/// The report as a page.
pub fn render_html(report: &ScriptReport) -> String {
    let mut page = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Script coverage</title>\n");
    let _ = write!(page, "<style>\n{STYLE}</style>\n</head>\n<body>\n<h1>Script coverage</h1>\n");
    page.push_str(
        "<p>What ran of the hook scripts in this suite: how often each line, and which parts of lines did not.</p>\n",
    );
    page.push_str("<p class=\"key\"><span class=\"hit1\">1</span> ran once <span class=\"hit2\">2</span> up to nine times ");
    page.push_str("<span class=\"hit3\">10</span> ten times or more <span class=\"miss\">0</span> did not run</p>\n");
    page.push_str("<table>\n<thead><tr><th>script</th><th>functions</th><th>lines</th><th>blocks</th></tr></thead>\n<tbody>\n");
    for (index, file) in report.files.iter().enumerate() {
        let _ = write!(page, "<tr><th scope=\"row\"><a href=\"#f{index}\">{}</a></th>", escaped(&file.name));
        for share in [file.totals.functions, file.totals.lines, file.totals.blocks] {
            cell(&mut page, share);
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n<tfoot><tr><th scope=\"row\">all</th>");
    for share in [report.totals.functions, report.totals.lines, report.totals.blocks] {
        cell(&mut page, share);
    }
    page.push_str("</tr></tfoot></table>\n");
    for (index, file) in report.files.iter().enumerate() {
        map(&mut page, index, file);
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn cell(page: &mut String, share: Share) {
    let class = match share.percent() {
        100 => "hit3",
        80.. => "hit2",
        50.. => "hit1",
        _ => "miss",
    };
    let _ = write!(page, "<td class=\"{class}\">{} % <small>{}/{}</small></td>", share.percent(), share.covered, share.all);
}

fn map(page: &mut String, index: usize, file: &FileReport) {
    let counts: BTreeMap<u32, u64> = file.lines.iter().map(|line| (line.line, line.count)).collect();
    let _ = write!(page, "<h2 id=\"f{index}\">{}</h2>\n<div class=\"code\"><table>\n", escaped(&file.name));
    for (number, text) in (1..).zip(&file.text) {
        let (class, count) = match counts.get(&number) {
            None => ("", String::new()),
            Some(0) => ("miss", "0".to_owned()),
            Some(1) => ("hit1", "1".to_owned()),
            Some(count @ 2..=9) => ("hit2", count.to_string()),
            Some(count) => ("hit3", count.to_string()),
        };
        let ran = counts.get(&number).is_some_and(|count| *count > 0);
        let shown = if ran { with_gaps(text, number, &file.blocks) } else { escaped(text) };
        let _ = writeln!(page, "<tr><th>{number}</th><td class=\"n {class}\">{count}</td><td><pre>{shown}</pre></td></tr>");
    }
    page.push_str("</table></div>\n");
}

/// A line that ran, with the parts of it that did not marked.
fn with_gaps(text: &str, number: u32, blocks: &[BlockRow]) -> String {
    let units: Vec<u16> = text.encode_utf16().collect();
    let mut gaps = vec![false; units.len()];
    for block in blocks.iter().filter(|block| (block.line..=block.end_line).contains(&number)) {
        let start = if block.line == number { block.column as usize - 1 } else { 0 };
        let end = if block.end_line == number { block.end_column as usize - 1 } else { units.len() };
        // A block within another comes after it, and says what is so there.
        if let Some(places) = gaps.get_mut(start..end.min(units.len())) {
            places.fill(block.count == 0);
        }
    }
    let mut shown = String::new();
    let mut rest = units.as_slice();
    let mut place = 0;
    while let Some(first) = gaps.get(place) {
        let length = gaps[place..].iter().take_while(|gap| *gap == first).count();
        let (part, after) = rest.split_at(length);
        let part = escaped(&String::from_utf16_lossy(part));
        let _ = if *first { write!(shown, "<mark title=\"did not run\">{part}</mark>") } else { write!(shown, "{part}") };
        rest = after;
        place += length;
    }
    shown
}
