//! The curves as one page.
//!
//! Invariant: the page is whole in itself and holds no script; each curve starts at zero, so that a slope is not made up by
//! the scale. Deliberately no library: a line through points.

use std::fmt::Write as _;

use super::sample::Sample;
use super::verdict::{METRICS, RULE, Row};

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 140.0;
const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:760px;padding:0 1rem;color:#1d2430;background:#fff}\
    h2{font-size:1rem;margin:1.6rem 0 .3rem}svg{width:100%;height:auto;display:block}\
    .ok{color:#1a7f37}.bad{color:#b3261e}small{color:#5b6472}\
    .line{fill:none;stroke:#2f6feb;stroke-width:1.5}.area{fill:#2f6feb;opacity:.12}.grid{stroke:#d5dae1}text{font:11px system-ui,sans-serif;fill:#5b6472}\
    @media(prefers-color-scheme:dark){body{color:#e6e9ee;background:#14181f}small,text{color:#9aa4b2;fill:#9aa4b2}.grid{stroke:#333b47}}";

/// The page.
pub(crate) fn page(rows: &[Row], samples: &[Sample], summary: &str, faults: &[String]) -> String {
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<title>Router soak</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <h1>Router soak</h1>\n<p>{}</p>\n",
        escaped(summary)
    );
    if faults.is_empty() {
        page.push_str("<p class=\"ok\"><b>flat</b></p>\n");
    }
    for fault in faults {
        let _ = writeln!(page, "<p class=\"bad\"><b>{}</b></p>", escaped(fault));
    }
    let _ = writeln!(page, "<p><small>{}</small></p>", escaped(RULE));
    for (metric, row) in METRICS.iter().zip(rows) {
        let points: Vec<(f64, usize)> = samples.iter().map(|sample| (sample.at_s, (metric.of)(sample))).collect();
        let [_, second, _, fourth] = row.quarters;
        let _ = writeln!(
            page,
            "<h2>{} <small>idle {}, second quarter {second}, last quarter {fourth}, afterwards {}</small></h2>\n{}",
            row.name,
            row.idle,
            row.end,
            curve(row.name, &points)
        );
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn curve(name: &str, points: &[(f64, usize)]) -> String {
    let end_s = points.last().map_or(1.0, |last| last.0.max(1.0));
    let most = points.iter().map(|point| point.1).max().unwrap_or_default().max(1);
    let place = |(at_s, value): &(f64, usize)| {
        format!("{:.1},{:.1}", at_s / end_s * WIDTH, HEIGHT - *value as f64 / most as f64 * (HEIGHT - 14.0))
    };
    let line = points.iter().map(place).collect::<Vec<_>>().join(" ");
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{name} over time\">\
         <line class=\"grid\" x1=\"0\" y1=\"{HEIGHT}\" x2=\"{WIDTH}\" y2=\"{HEIGHT}\"/>\
         <line class=\"grid\" x1=\"0\" y1=\"14\" x2=\"{WIDTH}\" y2=\"14\"/>\
         <polygon class=\"area\" points=\"0,{HEIGHT} {line} {WIDTH},{HEIGHT}\"/><polyline class=\"line\" points=\"{line}\"/>\
         <text x=\"2\" y=\"10\">{most}</text><text x=\"2\" y=\"{}\">0 s</text>\
         <text x=\"{WIDTH}\" y=\"{}\" text-anchor=\"end\">{end_s:.0} s</text></svg>",
        HEIGHT + 18.0,
        HEIGHT + 14.0,
        HEIGHT + 14.0
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
