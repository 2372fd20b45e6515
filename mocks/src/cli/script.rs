//! The script of a CLI sandbox: what a scenario file holds under `cli.NAME: { script: … }`.
//!
//! Invariant: an unknown key is an error, and every run has exactly one end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Duration;
use crate::pattern::Pattern;

/// The foreseen runs. A command takes the first one that matches and is not used up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CliScript(pub Vec<CliRun>);

/// One foreseen run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RunText", into = "RunText")]
pub struct CliRun {
    /// Which commands it answers.
    pub when: CliWhen,
    /// How many commands it answers; the script is not consumed before that many came.
    pub repeat: u32,
    /// What it writes.
    pub events: Vec<CliOutput>,
    /// How it ends.
    pub end: CliEnd,
}

/// Which commands a scripted run answers. Everything that is given must match.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CliWhen {
    /// Program and arguments.
    pub argv: Pattern,
    /// Text on standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdin: Option<Pattern>,
    /// The environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Pattern>,
}

/// Something that a run writes: to one of its two outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CliOutput {
    /// When, counted from the start of the run.
    #[serde(default)]
    pub after: Duration,
    /// Text on standard output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stdout: Option<String>,
    /// Text on standard error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<String>,
}

/// How a run ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CliEnd {
    /// It exits with this code.
    Exit(i32),
    /// This signal ends it.
    Signal(i32),
    /// It fails otherwise.
    Error(CliFailure),
    /// It never ends by itself.
    Hang,
}

/// A failure that is no exit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CliFailure {
    /// It cannot be started, for this reason.
    Start(String),
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunText {
    /// Which commands this answers.
    when: CliWhen,
    /// How many commands it answers; 1 if not said.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1))]
    repeat: u32,
    /// What it writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    events: Vec<CliOutput>,
    /// The code it exits with, right after its last event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit: Option<i32>,
    /// The signal that ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signal: Option<i32>,
    /// A failure that is no exit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<CliFailure>,
    /// It never ends by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hang: Option<bool>,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde fixes the signature")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

impl TryFrom<RunText> for CliRun {
    type Error = &'static str;

    fn try_from(text: RunText) -> Result<Self, Self::Error> {
        let mut ends = [
            text.exit.map(CliEnd::Exit),
            text.signal.map(CliEnd::Signal),
            text.error.map(CliEnd::Error),
            text.hang.filter(|hang| *hang).map(|_| CliEnd::Hang),
        ]
        .into_iter()
        .flatten();
        let (Some(end), None) = (ends.next(), ends.next()) else {
            return Err("a run needs exactly one of `exit`, `signal`, `error`, `hang: true`");
        };
        if text.repeat == 0 {
            return Err("`repeat` counts from 1");
        }
        if text.events.iter().any(|event| event.stdout.is_some() == event.stderr.is_some()) {
            return Err("an event needs exactly one of `stdout`, `stderr`");
        }
        Ok(Self { when: text.when, repeat: text.repeat, events: text.events, end })
    }
}

impl From<CliRun> for RunText {
    fn from(run: CliRun) -> Self {
        let mut text =
            Self { when: run.when, repeat: run.repeat, events: run.events, exit: None, signal: None, error: None, hang: None };
        match run.end {
            CliEnd::Exit(code) => text.exit = Some(code),
            CliEnd::Signal(signal) => text.signal = Some(signal),
            CliEnd::Error(error) => text.error = Some(error),
            CliEnd::Hang => text.hang = Some(true),
        }
        text
    }
}
