//! The report in the form that LCOV's tools, editors and services read.
//!
//! Invariant: only scripts that are files are in it, for its readers open them. Deliberately no checksums.

use std::fmt::Write as _;

use super::report::ScriptReport;

/// The report as an LCOV trace file.
pub fn render_lcov(report: &ScriptReport) -> String {
    let mut text = String::new();
    for file in report.files.iter().filter(|file| file.is_file) {
        let _ = writeln!(text, "TN:\nSF:{}", file.name);
        for function in &file.functions {
            let _ = writeln!(text, "FN:{},{}", function.line, function.name);
        }
        for function in &file.functions {
            let _ = writeln!(text, "FNDA:{},{}", function.calls, function.name);
        }
        let totals = file.totals;
        let _ = writeln!(text, "FNF:{}\nFNH:{}", totals.functions.all, totals.functions.covered);
        for (index, block) in file.blocks.iter().enumerate() {
            let _ = writeln!(text, "BRDA:{},{index},0,{}", block.line, block.count);
        }
        let _ = writeln!(text, "BRF:{}\nBRH:{}", totals.blocks.all, totals.blocks.covered);
        for line in &file.lines {
            let _ = writeln!(text, "DA:{},{}", line.line, line.count);
        }
        let _ = writeln!(text, "LF:{}\nLH:{}\nend_of_record", totals.lines.all, totals.lines.covered);
    }
    text
}
