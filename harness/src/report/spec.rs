//! `--reporter NAME` or `NAME=FILE`.
//!
//! Invariant: a name that is no reporter is an error that lists the reporters. Deliberately no options per reporter.

use std::path::PathBuf;
use std::str::FromStr;

/// A kind of report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReporterKind {
    /// Lines for a person.
    Human,
    /// JSON lines: one per case, then a summary.
    Json,
    /// `JUnit` XML.
    Junit,
    /// Test Anything Protocol, version 14.
    Tap,
}

/// A report that was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReporterSpec {
    /// Its kind.
    pub kind: ReporterKind,
    /// The file to write; standard output if absent (or `-`).
    pub target: Option<PathBuf>,
}

/// An unknown reporter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no reporter is named {name:?}; use human, json, junit or tap, each optionally as NAME=FILE")]
pub struct ReporterSpecError {
    /// The name given.
    pub name: String,
}

impl ReporterSpecError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        "REPORTER_UNKNOWN"
    }
}

impl FromStr for ReporterSpec {
    type Err = ReporterSpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, file) = text.split_once('=').map_or((text, ""), |(name, file)| (name, file));
        let kind = match name {
            "human" => ReporterKind::Human,
            "json" => ReporterKind::Json,
            "junit" => ReporterKind::Junit,
            "tap" => ReporterKind::Tap,
            _ => return Err(ReporterSpecError { name: name.to_owned() }),
        };
        Ok(Self { kind, target: (!file.is_empty() && file != "-").then(|| PathBuf::from(file)) })
    }
}
