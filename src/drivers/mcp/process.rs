//! A server as a child process on stdio.
//!
//! Invariant: reading and writing never wait for each other, stderr is always drained, and closing or dropping the
//! connection ends the whole process group. Deliberately no restart: the host opens a new connection.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use greenroom_boundary::clock::timeout_at;
use greenroom_boundary::mcp::{Frame, FrameDuplex, FrameSink, FrameSource, McpError};
use greenroom_boundary::{CancellationToken, Clock};
use greenroom_wire::stdio::{LineSink, LineSource, StdioOptions};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::watch;

use super::connector::RealMcp;
use super::exchange::Exchanges;
use super::shutdown::Supervisor;
use super::stderr::StderrTail;
use crate::drivers::sandbox::{ChildCommand, ChildGroup, ChildKeeper};

/// How long a failed write waits to learn how the process ended.
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// What is started.
pub(super) struct Program<'t> {
    pub(super) command: &'t str,
    pub(super) args: &'t [String],
    pub(super) env: &'t BTreeMap<String, String>,
    pub(super) workdir: Option<&'t str>,
}

/// Starts the server.
pub(super) fn open(settings: &RealMcp, server: &str, program: Program<'_>) -> Result<FrameDuplex, McpError> {
    let unreachable = |message: String| McpError::Unreachable { server: server.to_owned(), message };
    let mut command = command(&settings.keeper, &program, &settings.environment.with(program.env));
    let mut group = ChildGroup::spawn(&mut command).map_err(|error| unreachable(start_message(&program, &error)))?;
    let leader = group.leader();
    let (Some(stdin), Some(stdout), Some(stderr)) = (leader.stdin.take(), leader.stdout.take(), leader.stderr.take()) else {
        return Err(unreachable("its pipes could not be opened".to_owned()));
    };
    let tail = StderrTail::default();
    let drain = tokio::spawn(tail.clone().drain(stderr));
    let (ended, end) = watch::channel(None);
    let closing = CancellationToken::new();
    let connection = Connection {
        server: server.to_owned(),
        clock: settings.clock.clone(),
        ending: closing.child_token(),
        closing,
        end,
        exchanges: Exchanges::new(settings.held.clone()),
    };
    let supervisor = Supervisor {
        group,
        clock: settings.clock.clone(),
        limits: settings.limits,
        ending: connection.ending.clone(),
        stderr: tail,
        drain,
        credentials: settings.credentials.clone(),
        ended,
    };
    tokio::spawn(supervisor.run());
    let options = StdioOptions { server: server.to_owned(), limit_bytes: settings.limits.frame_bytes };
    let sink = ProcessSink { lines: LineSink::new(stdin, server.to_owned()), connection: connection.clone() };
    let source = ProcessSource { lines: LineSource::new(stdout, options), connection, reading: Reading::Open };
    Ok(FrameDuplex { sink: Box::new(sink), source: Box::new(source) })
}

fn command(keeper: &ChildKeeper, program: &Program<'_>, env: &BTreeMap<String, String>) -> ChildCommand {
    let mut child = keeper.command(program.command, program.args);
    let command = &mut child.command;
    command.env_clear().envs(env);
    if let Some(workdir) = program.workdir {
        command.current_dir(workdir);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    child
}

fn start_message(program: &Program<'_>, error: &std::io::Error) -> String {
    let command = program.command;
    match (error.kind(), program.workdir) {
        (std::io::ErrorKind::NotFound, Some(workdir)) => {
            format!("`{command}` was not found on PATH, or the folder `{workdir}` does not exist")
        }
        (std::io::ErrorKind::NotFound, None) => {
            format!("`{command}` was not found on PATH; install it, or correct `command`")
        }
        _ => format!("`{command}` cannot be started: {error}"),
    }
}

/// What both halves know of the process.
#[derive(Clone, Debug)]
struct Connection {
    server: String,
    clock: Arc<dyn Clock>,
    /// The host asked for the end.
    closing: CancellationToken,
    /// Asks the supervisor to end the process, whoever wants that.
    ending: CancellationToken,
    /// How it ended, once it has.
    end: watch::Receiver<Option<String>>,
    exchanges: Exchanges,
}

impl Connection {
    /// Waits for the end and says how it was.
    async fn ended(&mut self) -> String {
        match self.end.wait_for(Option::is_some).await {
            Ok(words) => words.clone().unwrap_or_default(),
            Err(_) => "the host is shutting down".to_owned(),
        }
    }
}

struct ProcessSink {
    lines: LineSink<ChildStdin>,
    connection: Connection,
}

#[async_trait]
impl FrameSink for ProcessSink {
    async fn send(&mut self, frame: Frame) -> Result<(), McpError> {
        self.connection.exchanges.sent(&frame);
        let Err(error) = self.lines.send(frame).await else { return Ok(()) };
        self.connection.exchanges.end();
        if self.connection.closing.is_cancelled() {
            return Err(error);
        }
        // A broken pipe means that the process is ending: how it does says more than the pipe.
        let clock = self.connection.clock.clone();
        let deadline = clock.now().after(EXIT_GRACE);
        match timeout_at(&*clock, deadline, Box::pin(self.connection.ended())).await {
            Ok(message) => Err(McpError::Closed { server: self.connection.server.clone(), message }),
            Err(_) => Err(error),
        }
    }

    async fn close(&mut self) {
        self.connection.exchanges.end();
        let _hold = self.connection.exchanges.hold();
        self.connection.closing.cancel();
        self.lines.close().await;
        self.connection.ended().await;
    }
}

impl Drop for ProcessSink {
    fn drop(&mut self) {
        self.connection.exchanges.end();
        self.connection.closing.cancel();
    }
}

struct ProcessSource {
    lines: LineSource<ChildStdout>,
    connection: Connection,
    reading: Reading,
}

/// How far reading is.
#[derive(Clone, Copy, Debug)]
enum Reading {
    Open,
    /// The output has ended; `wanted` if the host had asked for it.
    Ending {
        wanted: bool,
    },
    Done,
}

#[async_trait]
impl FrameSource for ProcessSource {
    async fn next(&mut self) -> Option<Result<Frame, McpError>> {
        if matches!(self.reading, Reading::Open) {
            match self.lines.next().await {
                Some(Ok(frame)) => {
                    self.connection.exchanges.received(&frame);
                    return Some(Ok(frame));
                }
                Some(Err(error @ McpError::TooLarge { .. })) => {
                    if let Some(id) = self.lines.lost_id() {
                        self.connection.exchanges.answered(&id);
                    }
                    return Some(Err(error));
                }
                _ => self.reading = Reading::Ending { wanted: self.connection.closing.is_cancelled() },
            }
        }
        let Reading::Ending { wanted } = self.reading else { return None };
        // A process that closes its output has nothing more to say, even if it lives on.
        self.connection.ending.cancel();
        let message = self.connection.ended().await;
        self.connection.exchanges.end();
        self.reading = Reading::Done;
        (!wanted).then(|| Err(McpError::Closed { server: self.connection.server.clone(), message }))
    }

    fn lost_id(&self) -> Option<String> {
        self.lines.lost_id()
    }
}
