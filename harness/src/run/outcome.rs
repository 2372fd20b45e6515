//! What a run of a scenario gives: verdict, failures, trace.
//!
//! Invariant: everything here is already masked; a reporter may print it as it is. Deliberately no rendering.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

/// How a case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every expectation held.
    Pass,
    /// An expectation did not hold.
    Fail,
    /// The case could not be judged: the host did not start, a step hung, a limit was reached.
    Error,
    /// A replay had no recorded answer, or parted from its recording.
    Miss,
    /// An expectation could not fire, a fault or scripted turn was never used.
    Vacuous,
    /// It failed, as the scenario says it does.
    KnownFailing,
    /// The scenario says that it fails, but it passed.
    UnexpectedPass,
    /// The same seed gave another trace.
    Nondeterministic,
}

impl Verdict {
    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Error => "error",
            Self::Miss => "miss",
            Self::Vacuous => "vacuous",
            Self::KnownFailing => "known-failing",
            Self::UnexpectedPass => "unexpected-pass",
            Self::Nondeterministic => "nondeterministic",
        }
    }

    /// Does a suite with this verdict succeed?
    pub fn is_ok(self) -> bool {
        matches!(self, Self::Pass | Self::KnownFailing)
    }

    /// The exit code that it asks for.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Pass | Self::KnownFailing => 0,
            Self::Fail | Self::Vacuous | Self::UnexpectedPass => 1,
            Self::Miss => 3,
            Self::Nondeterministic => 7,
            Self::Error => 9,
        }
    }

    /// Which of two failures names the verdict of a case.
    fn weight(self) -> u8 {
        match self {
            Self::Pass | Self::KnownFailing => 0,
            Self::UnexpectedPass => 1,
            Self::Vacuous => 2,
            Self::Fail => 3,
            Self::Nondeterministic => 4,
            Self::Miss => 5,
            Self::Error => 6,
        }
    }

    /// The worse of two.
    #[must_use]
    pub fn worst(self, other: Self) -> Self {
        if other.weight() > self.weight() { other } else { self }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A place in a scenario file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file as the user named it.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// The part of the trace that shows a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Excerpt {
    /// Virtual time of the first divergent event, in nanoseconds.
    pub vt: u64,
    /// One line per event; the divergent one is marked.
    pub lines: Vec<ExcerptLine>,
}

/// One event of an [`Excerpt`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExcerptLine {
    /// Is this the first divergent event?
    pub marked: bool,
    /// The event in short.
    pub text: String,
}

/// One thing that is wrong with a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// What it makes of the case.
    pub verdict: Verdict,
    /// Stable code: `EXPECT_TRACE`, `FAULT_UNUSED`, `HOST_START`, …
    pub code: String,
    /// Where the scenario asks for it.
    pub at: Place,
    /// Name of the expectation, or what it asks for.
    pub what: String,
    /// What was found instead.
    pub message: String,
    /// The events around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excerpt: Option<Excerpt>,
}

/// What a case gave.
#[derive(Clone, Debug, Serialize)]
pub struct CaseResult {
    /// The case's id, with its matrix values.
    pub id: String,
    /// The scenario's title.
    pub title: String,
    /// The scenario's file, as the user named it.
    pub file: String,
    /// How it ended.
    pub verdict: Verdict,
    /// Why, worst first.
    pub failures: Vec<Failure>,
    /// Why it may fail, if the scenario says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known_failing: Option<String>,
    /// The seed that it ran under.
    pub seed: u64,
    /// Number of events.
    pub events: usize,
    /// Virtual time of the last event, in nanoseconds.
    pub virtual_ns: u64,
    /// SHA-256 of the trace, in hexadecimal.
    pub trace_sha256: String,
    /// A command that runs it again.
    pub rerun: String,
    /// Real time that it took.
    #[serde(skip)]
    pub wall: Duration,
    /// The trace, masked.
    #[serde(skip)]
    pub trace: String,
    /// Snapshot files written or pending, as notes for the person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What a suite gave; cases in the order asked for, whatever order they ended in.
#[derive(Clone, Debug, Default)]
pub struct SuiteResult {
    /// One result per case.
    pub cases: Vec<CaseResult>,
    /// Real time of the whole.
    pub wall: Duration,
}

impl SuiteResult {
    /// How many cases have this verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.cases.iter().filter(|case| case.verdict == verdict).count()
    }

    /// The exit code: that of the worst verdict; 4 if nothing was selected.
    pub fn exit_code(&self) -> u8 {
        if self.cases.is_empty() {
            return 4;
        }
        self.cases.iter().map(|case| case.verdict).fold(Verdict::Pass, Verdict::worst).exit_code()
    }
}
