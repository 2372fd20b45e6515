//! The CLI boundary: run a command in a sandbox.
//!
//! Invariant: a run ends exactly once, with [`CliEvent::Exit`] or an error, and then nothing of it is left (the whole
//! process group is gone). Deliberately no shell: `argv` is what is started.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::{BoxStream, CancellationToken};

/// A command to run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// Program and arguments; the program is looked up on the sandbox's `PATH`.
    pub argv: Vec<String>,
    /// The whole environment; nothing is inherited.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Text for standard input, which is then closed.
    #[serde(default)]
    pub stdin: String,
    /// What the run may use.
    #[serde(default)]
    pub limits: CliLimits,
}

/// What a run may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CliLimits {
    /// Longest run.
    pub wall: Duration,
    /// Most bytes of stdout and stderr together.
    pub output_bytes: usize,
}

impl Default for CliLimits {
    fn default() -> Self {
        Self { wall: Duration::from_secs(120), output_bytes: 1 << 20 }
    }
}

/// What a running command says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CliEvent {
    /// Bytes from standard output.
    Stdout(Bytes),
    /// Bytes from standard error.
    Stderr(Bytes),
    /// The end.
    Exit(CliExit),
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CliExit {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
}

/// Why a command could not be run to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CliError {
    /// It could not be started.
    #[error("cannot start {program}: {message}")]
    Start {
        /// The program.
        program: String,
        /// What happened.
        message: String,
    },
    /// It ran longer than its limit and was killed with its whole group.
    #[error("{program} ran longer than {limit_ms} ms and was stopped")]
    Timeout {
        /// The program.
        program: String,
        /// The limit.
        limit_ms: u64,
    },
    /// It wrote more than its limit and was killed with its whole group.
    #[error("{program} wrote more than {limit_bytes} bytes and was stopped")]
    OutputLimit {
        /// The program.
        program: String,
        /// The limit.
        limit_bytes: usize,
    },
    /// The caller cancelled.
    #[error("{program} was cancelled")]
    Cancelled {
        /// The program.
        program: String,
    },
    /// Denied in this scenario, or its script has no such run.
    #[error("{message}")]
    Denied {
        /// The program.
        program: String,
        /// What to do about it.
        message: String,
    },
}

impl CliError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Start { .. } => "CLI_START",
            Self::Timeout { .. } => "CLI_TIMEOUT",
            Self::OutputLimit { .. } => "CLI_OUTPUT_LIMIT",
            Self::Cancelled { .. } => "CLI_CANCELLED",
            Self::Denied { .. } => "CLI_DENIED",
        }
    }
}

/// The events of one run, ended by [`CliEvent::Exit`] or an error.
pub type CliStream = BoxStream<'static, Result<CliEvent, CliError>>;

/// Runs commands.
#[async_trait]
pub trait CliRunner: Send + Sync + fmt::Debug {
    /// Starts a command. Cancelling the token or dropping the stream kills its whole process group.
    async fn run(&self, command: CommandSpec, cancel: &CancellationToken) -> Result<CliStream, CliError>;
}
