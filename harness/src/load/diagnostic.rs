//! What is said about a scenario that cannot be loaded.
//!
//! Invariant: at most twelve lines: the place, what is wrong, the line with a mark under it, what was perhaps meant.
//! Deliberately no traces of parsers and no lists of everything that would have been possible.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use super::node::{Problem, Span};

/// Longest message, in lines.
pub const MOST_LINES: usize = 12;

/// Longest part of a source line that is shown, in characters.
const SHOWN_CHARS: usize = 100;

/// A scenario that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The content is wrong.
    #[error("{0}")]
    Invalid(Box<Diagnostic>),
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl LoadError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(diagnostic) => diagnostic.code,
            Self::Unreadable { .. } => "SCENARIO_UNREADABLE",
        }
    }

    /// The same under another code, for files that are no scenarios.
    #[must_use]
    pub fn with_code(self, code: &'static str) -> Self {
        match self {
            Self::Invalid(diagnostic) => Self::Invalid(Box::new(Diagnostic { code, ..*diagnostic })),
            unreadable @ Self::Unreadable { .. } => unreadable,
        }
    }

    /// The message for a terminal.
    pub fn render(&self, colours: bool) -> String {
        match self {
            Self::Invalid(diagnostic) => diagnostic.render(colours),
            Self::Unreadable { .. } => self.to_string(),
        }
    }
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Stable code of what the file should have been: `SCENARIO_INVALID`, `CONFIG_SHAPE`.
    pub code: &'static str,
    /// The file, as it was named.
    pub file: PathBuf,
    /// Where in it.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
    /// How many more problems the file has.
    pub more: usize,
    source_line: String,
}

impl Diagnostic {
    /// The first of a file's problems.
    pub(crate) fn first(file: &Path, text: &str, problems: Vec<Problem>) -> Option<Self> {
        let more = problems.len().saturating_sub(1);
        let Problem { span, message, help } = problems.into_iter().min_by_key(|problem| problem.span)?;
        let index = usize::try_from(span.line).unwrap_or_default().saturating_sub(1);
        let source_line = text.lines().nth(index).unwrap_or_default().to_owned();
        Some(Self { code: "SCENARIO_INVALID", file: file.to_owned(), span, message, help, more, source_line })
    }

    /// The message, in at most [`MOST_LINES`] lines.
    pub fn render(&self, colours: bool) -> String {
        let paint = |code: &str, text: &str| {
            if colours { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
        };
        let Span { line, column, .. } = self.span;
        let (shown, before, width) = self.snippet();
        let number = line.to_string();
        let gutter = " ".repeat(number.len());
        let mut out = String::new();
        let head = paint("1;31", self.code);
        let place = format!("{}:{line}:{column}", self.file.display());
        let _ = writeln!(out, "{head} {}: {}", paint("1", &place), self.message);
        let _ = writeln!(out, "{gutter} |");
        let _ = writeln!(out, "{number} | {shown}");
        let _ = write!(out, "{gutter} | {}{}", " ".repeat(before), paint("1;31", &"^".repeat(width)));
        for line in self.help.iter().flat_map(|help| help.lines()).take(MOST_LINES - 5) {
            let _ = write!(out, "\n{gutter} = {line}");
        }
        if self.more > 0 {
            let problems = if self.more == 1 { "problem" } else { "problems" };
            let _ = write!(out, "\n{gutter} = and {} more {problems} in this file", self.more);
        }
        out
    }

    /// The line as shown, the characters before the mark, and the mark's length.
    fn snippet(&self) -> (String, usize, usize) {
        let chars: Vec<char> = self.source_line.chars().map(|c| if c == '\t' { ' ' } else { c }).collect();
        let column = usize::try_from(self.span.column).unwrap_or(1).saturating_sub(1).min(chars.len());
        let from = if column > SHOWN_CHARS * 2 / 3 { column - SHOWN_CHARS / 3 } else { 0 };
        let to = chars.len().min(from + SHOWN_CHARS);
        let head = if from > 0 { "…" } else { "" };
        let tail = if to < chars.len() { "…" } else { "" };
        let shown: String = chars[from..to].iter().collect();
        let before = column - from + head.chars().count();
        let width = usize::try_from(self.span.width).unwrap_or(1).min(to.saturating_sub(column)).max(1);
        (format!("{head}{shown}{tail}"), before, width)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostic {}
