//! What any runner of commands must do.
//!
//! Invariant: the suite runs the commands of [`commands`] and no others; a simulated arm scripts these. Deliberately no
//! waiting by itself: time limits are the runner's.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::StreamExt;

use crate::cli::{CliError, CliEvent, CliExit, CliLimits, CliStream, CommandSpec};
use crate::{CancellationToken, CliRunner};

/// The commands of the suite.
pub mod commands {
    /// Writes `out` to stdout, `err` to stderr and exits with 3.
    pub const BOTH_OUTPUTS: [&str; 3] = ["sh", "-c", "printf out; printf err >&2; exit 3"];
    /// Copies stdin, which is `hello`, to stdout.
    pub const COPY_STDIN: [&str; 1] = ["cat"];
    /// Ends itself with SIGTERM.
    pub const SIGNAL: [&str; 3] = ["sh", "-c", "kill -TERM $$"];
    /// Never ends by itself, within reason; it is run twice.
    pub const ENDLESS: [&str; 2] = ["sleep", "86400"];
    /// Writes 100,000 bytes.
    pub const CHATTY: [&str; 3] = ["head", "-c100000", "/dev/zero"];
    /// Cannot be started.
    pub const ABSENT: [&str; 1] = ["greenroom-no-such-program"];
}

/// Runs the whole suite.
pub async fn all(runner: &dyn CliRunner) {
    both_outputs_and_the_exit_arrive(runner).await;
    stdin_is_given_and_closed(runner).await;
    a_signal_is_told_apart(runner).await;
    the_time_limit_stops_a_run(runner).await;
    the_output_limit_stops_a_run(runner).await;
    cancelling_stops_a_run(runner).await;
    a_cancelled_token_starts_nothing(runner).await;
    an_absent_program_is_refused(runner).await;
}

/// What a run said, and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    /// All of stdout.
    pub stdout: String,
    /// All of stderr.
    pub stderr: String,
    /// The last event.
    pub end: Result<CliExit, CliError>,
}

/// Reads a run to its end, and makes sure that it ends once.
pub async fn collect(mut stream: CliStream) -> Told {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let end = loop {
        match stream.next().await.expect("a run ends with an exit or an error") {
            Ok(CliEvent::Stdout(bytes)) => stdout.extend(bytes),
            Ok(CliEvent::Stderr(bytes)) => stderr.extend(bytes),
            Ok(CliEvent::Exit(exit)) => break Ok(exit),
            Err(error) => break Err(error),
        }
    };
    assert!(stream.next().await.is_none(), "nothing follows the end of a run");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Told { stdout: text(stdout), stderr: text(stderr), end }
}

/// A command with an empty environment.
pub fn command(argv: &[&str]) -> CommandSpec {
    CommandSpec {
        argv: argv.iter().map(|&arg| arg.to_owned()).collect(),
        env: BTreeMap::new(),
        stdin: String::new(),
        limits: CliLimits::default(),
    }
}

async fn run(runner: &dyn CliRunner, command: CommandSpec) -> Told {
    collect(runner.run(command, &CancellationToken::new()).await.expect("the command starts")).await
}

/// Stdout, stderr and the exit code are told apart.
pub async fn both_outputs_and_the_exit_arrive(runner: &dyn CliRunner) {
    let told = run(runner, command(&commands::BOTH_OUTPUTS)).await;
    assert_eq!(told, Told { stdout: "out".to_owned(), stderr: "err".to_owned(), end: Ok(CliExit::Code(3)) });
}

/// A command that reads to the end of stdin gets there.
pub async fn stdin_is_given_and_closed(runner: &dyn CliRunner) {
    let told = run(runner, CommandSpec { stdin: "hello".to_owned(), ..command(&commands::COPY_STDIN) }).await;
    assert_eq!(told, Told { stdout: "hello".to_owned(), stderr: String::new(), end: Ok(CliExit::Code(0)) });
}

/// Death by a signal is no exit code.
pub async fn a_signal_is_told_apart(runner: &dyn CliRunner) {
    assert_eq!(run(runner, command(&commands::SIGNAL)).await.end, Ok(CliExit::Signal(15)));
}

/// A run beyond its time is stopped, and says so.
pub async fn the_time_limit_stops_a_run(runner: &dyn CliRunner) {
    let limits = CliLimits { wall: Duration::from_millis(50), ..CliLimits::default() };
    let told = run(runner, CommandSpec { limits, ..command(&commands::ENDLESS) }).await;
    assert_eq!(told.end, Err(CliError::Timeout { program: "sleep".to_owned(), limit_ms: 50 }));
}

/// A run that writes too much is stopped, and what it wrote beyond the limit is not passed on.
pub async fn the_output_limit_stops_a_run(runner: &dyn CliRunner) {
    let limits = CliLimits { output_bytes: 1000, ..CliLimits::default() };
    let told = run(runner, CommandSpec { limits, ..command(&commands::CHATTY) }).await;
    assert_eq!(told.end, Err(CliError::OutputLimit { program: "head".to_owned(), limit_bytes: 1000 }));
    assert!(told.stdout.len() <= 1000);
}

/// Cancelling ends a run that is under way.
pub async fn cancelling_stops_a_run(runner: &dyn CliRunner) {
    let cancel = CancellationToken::new();
    let stream = runner.run(command(&commands::ENDLESS), &cancel).await.expect("the command starts");
    cancel.cancel();
    assert_eq!(collect(stream).await.end, Err(CliError::Cancelled { program: "sleep".to_owned() }));
}

/// With a cancelled token nothing is started.
pub async fn a_cancelled_token_starts_nothing(runner: &dyn CliRunner) {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = runner.run(command(&commands::ENDLESS), &cancel).await.err();
    assert_eq!(error, Some(CliError::Cancelled { program: "sleep".to_owned() }));
}

/// A program that is not there is an error at the start that names it.
pub async fn an_absent_program_is_refused(runner: &dyn CliRunner) {
    let error = runner.run(command(&commands::ABSENT), &CancellationToken::new()).await.err().expect("no such program");
    assert_eq!(error.code(), "CLI_START");
    assert!(error.to_string().contains(commands::ABSENT[0]), "{error}");
}
