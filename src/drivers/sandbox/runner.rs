//! The runner: sets a command up and starts it.
//!
//! Invariant: what cannot be started leaves nothing behind.

use std::process::Stdio;
use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use greenroom_boundary::cli::{CliError, CliStream, CommandSpec};
use greenroom_boundary::{CancellationToken, CliRunner, Clock};
use tokio_stream::wrappers::UnboundedReceiverStream;

use super::run::Run;
use super::{ChildCommand, ChildEnvironment, ChildGroup, ChildKeeper};

/// Runs commands as confined processes.
#[derive(Clone, Debug)]
pub struct ConfinedCli {
    clock: Arc<dyn Clock>,
    held: Arc<dyn Clock>,
    environment: ChildEnvironment,
    keeper: ChildKeeper,
}

impl ConfinedCli {
    /// A runner whose limits are measured on `clock`, which must be a real one; programs are found on the `PATH` of
    /// `environment`.
    pub fn new(clock: Arc<dyn Clock>, environment: ChildEnvironment) -> Self {
        Self { held: clock.clone(), clock, environment, keeper: ChildKeeper::none() }
    }

    /// Holds the host's clock while a command runs. Needed where that clock is a virtual one.
    #[must_use]
    pub fn holding(self, host_clock: Arc<dyn Clock>) -> Self {
        Self { held: host_clock, ..self }
    }

    /// Starts commands under this keeper.
    #[must_use]
    pub fn kept_by(self, keeper: ChildKeeper) -> Self {
        Self { keeper, ..self }
    }
}

#[async_trait]
impl CliRunner for ConfinedCli {
    async fn run(&self, command: CommandSpec, cancel: &CancellationToken) -> Result<CliStream, CliError> {
        let program = command.argv.first().cloned().unwrap_or_default();
        if cancel.is_cancelled() {
            return Err(CliError::Cancelled { program });
        }
        let start_error = |message: String| CliError::Start { program: program.clone(), message };
        if program.is_empty() {
            return Err(start_error("argv is empty: name a program".to_owned()));
        }
        let hold = self.held.hold();
        let folder = tempfile::Builder::new().prefix("greenroom-cli-").tempdir().map_err(|e| start_error(e.to_string()))?;
        let mut process = process(&self.keeper, &command, folder.path(), self.environment.path());
        let group = ChildGroup::spawn(&mut process).map_err(|error| start_error(start_message(&error)))?;
        let (events, stream) = tokio::sync::mpsc::unbounded_channel();
        let run = Run {
            program: program.clone(),
            limits: command.limits,
            clock: self.clock.clone(),
            cancel: cancel.clone(),
            group,
            events,
            folder,
            hold,
        };
        tokio::spawn(run.play(command.stdin));
        Ok(UnboundedReceiverStream::new(stream).boxed())
    }
}

fn process(keeper: &ChildKeeper, command: &CommandSpec, folder: &std::path::Path, path: Option<&str>) -> ChildCommand {
    let mut child = keeper.command(&command.argv[0], &command.argv[1..]);
    let process = &mut child.command;
    process.env_clear().current_dir(folder).env("HOME", folder).env("TMPDIR", folder);
    if let Some(path) = path {
        process.env("PATH", path);
    }
    process.envs(&command.env);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    child
}

fn start_message(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "not found on the sandbox's PATH; install it, or name it by its full path".to_owned(),
        _ => error.to_string(),
    }
}
