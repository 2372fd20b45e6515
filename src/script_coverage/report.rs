//! The report: files, each with its functions, lines and blocks.
//!
//! Invariant: files are in the order of their names; two texts under one name, as inline scripts of two scenarios have, are two rows.
//! A block is code that ran otherwise than the code around it, or was seen to do so in some run.

use std::collections::BTreeMap;
use std::path::Path;

use greenroom_boundary::coverage::{FileCoverage, ScriptCoverage};
use serde::Serialize;

use super::source::Source;

/// Version of the report's JSON.
const VERSION: u32 = 1;

/// What ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScriptReport {
    /// Version of this form.
    pub v: u32,
    /// Sums over all files.
    pub totals: Totals,
    /// The files.
    pub files: Vec<FileReport>,
}

/// How much of something ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Share {
    /// How many ran.
    pub covered: usize,
    /// How many there are.
    pub all: usize,
}

impl Share {
    fn of(counts: impl Iterator<Item = u64>) -> Self {
        counts.fold(Self::default(), |share, count| share.and(Self { covered: usize::from(count > 0), all: 1 }))
    }

    fn and(self, other: Self) -> Self {
        Self { covered: self.covered + other.covered, all: self.all + other.all }
    }

    /// Whether all of it ran.
    pub fn is_full(self) -> bool {
        self.covered == self.all
    }

    /// In percent, rounded down.
    pub fn percent(self) -> usize {
        (self.covered * 100).checked_div(self.all).unwrap_or(100)
    }
}

/// Functions, lines and blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Functions, the top level apart.
    pub functions: Share,
    /// Lines with code.
    pub lines: Share,
    /// Blocks.
    pub blocks: Share,
}

/// One file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FileReport {
    /// The file as the user knows it.
    pub name: String,
    /// Whether there is a file of that name, with this code in it; inline scripts have none.
    pub is_file: bool,
    /// Its sums.
    pub totals: Totals,
    /// Its functions.
    pub functions: Vec<FunctionRow>,
    /// Its lines with code.
    pub lines: Vec<LineRow>,
    /// Its blocks.
    pub blocks: Vec<BlockRow>,
    /// Its text, for pictures of it.
    #[serde(skip)]
    pub(super) text: Vec<String>,
}

/// One function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionRow {
    /// Its name; one without is called by its place.
    pub name: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// How often it was called.
    pub calls: u64,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LineRow {
    /// Line, from 1.
    pub line: u32,
    /// How often the part of it that ran most ran.
    pub count: u64,
}

/// One block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BlockRow {
    /// Line where its code begins, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
    /// Line of its end.
    pub end_line: u32,
    /// Column of its end.
    pub end_column: u32,
    /// How often it ran.
    pub count: u64,
}

impl ScriptReport {
    /// The report of what an engine counted. `read` gives the text of a file, if there is one.
    pub fn of(coverage: &ScriptCoverage, read: &dyn Fn(&Path) -> Option<String>) -> Self {
        let files: Vec<FileReport> = coverage
            .files
            .iter()
            .map(|((name, code), file)| FileReport::of(name, code, file, read))
            .filter(is_script)
            .collect();
        let totals = files.iter().fold(Totals::default(), |sum, file| sum.and(file.totals));
        Self { v: VERSION, totals, files }
    }

    /// Whether every line and function ran.
    pub fn is_full(&self) -> bool {
        self.totals.lines.is_full() && self.totals.functions.is_full()
    }
}

/// Not what is written within a config, whose names have the place behind a `#`.
fn is_script(file: &FileReport) -> bool {
    file.is_file || !file.name.contains('#')
}

impl Totals {
    fn and(self, other: Self) -> Self {
        Self {
            functions: self.functions.and(other.functions),
            lines: self.lines.and(other.lines),
            blocks: self.blocks.and(other.blocks),
        }
    }
}

impl FileReport {
    fn of(name: &str, code: &std::sync::Arc<str>, file: &FileCoverage, read: &dyn Fn(&Path) -> Option<String>) -> Self {
        let source = Source::of(code);
        let written = read(Path::new(name)).filter(|written| has_positions_of(written, code));
        let is_whole = |start: u32, end: u32| start == 0 && end >= source.units();
        let functions: Vec<FunctionRow> = file
            .functions
            .iter()
            .filter(|(place, _)| !(place.name.is_empty() && is_whole(place.start, place.end)))
            .map(|(place, function)| {
                let (line, column) = source.place(place.start);
                let name = if place.name.is_empty() { format!("({line}:{column})") } else { place.name.clone() };
                FunctionRow { name, line, column, calls: function.calls }
            })
            .collect();
        let lines = lines(file, &source);
        let blocks = blocks(file, &source);
        let totals = Totals {
            functions: Share::of(functions.iter().map(|function| function.calls)),
            lines: Share::of(lines.iter().map(|line| line.count)),
            blocks: Share::of(blocks.iter().map(|block| block.count)),
        };
        let is_file = written.is_some();
        let text = written.as_deref().unwrap_or(code).lines().map(str::to_owned).collect();
        Self { name: name.to_owned(), is_file, totals, functions, lines, blocks, text }
    }
}

/// Whether code that was made from a text by blanking may have been made from this one.
fn has_positions_of(written: &str, code: &str) -> bool {
    let lengths = |text: &str| text.split('\n').map(|line| line.encode_utf16().count()).collect::<Vec<_>>();
    lengths(written) == lengths(code)
}

/// Counts of lines: an inner function says more of its code than the outer one.
fn lines(file: &FileCoverage, source: &Source) -> Vec<LineRow> {
    let mut counts: Vec<Option<u64>> = vec![None; source.units() as usize];
    for function in file.functions.values() {
        for stretch in function.stretches() {
            if let Some(places) = counts.get_mut(stretch.start as usize..stretch.end as usize) {
                places.fill(Some(stretch.count));
            }
        }
    }
    source
        .lines()
        .filter_map(|(line, places)| Some(LineRow { line, count: places.filter_map(|at| counts[at]).max()? }))
        .collect()
}

fn blocks(file: &FileCoverage, source: &Source) -> Vec<BlockRow> {
    let mut found = BTreeMap::new();
    for function in file.functions.values() {
        for (start, end) in &function.blocks {
            // What V8 calls a block may be a gap between two: after a return there is nothing to run.
            let Some(first) = source.first_code(*start, *end) else { continue };
            let ((line, column), (end_line, end_column)) = (source.place(first), source.place(*end));
            let count = function.count_at(*start);
            found.insert((first, *end), BlockRow { line, column, end_line, end_column, count });
        }
    }
    found.into_values().collect()
}
