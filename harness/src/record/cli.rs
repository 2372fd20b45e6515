//! Records command runs: one exchange each, a chunk per piece of output.
//!
//! Invariant: the output passes through untouched; bytes that are no UTF-8 are kept as base64. Deliberately no `cli.NAME`
//! from the scenario: the lane is named after the program.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::Stream;
use greenroom_boundary::cli::{CliError, CliEvent, CliStream, CommandSpec};
use greenroom_boundary::trace::Outcome;
use greenroom_boundary::{CancellationToken, CliRunner};
use serde_json::json;

use super::Recording;
use super::gate::gated;
use super::recording::Opening;
use crate::cassette::failure::{At, from_cli};

/// A CLI runner that is recorded.
#[derive(Clone, Debug)]
pub struct RecordingCli {
    inner: Arc<dyn CliRunner>,
    recording: Arc<Recording>,
}

impl RecordingCli {
    /// Records what passes to and from `inner`.
    pub fn new(inner: Arc<dyn CliRunner>, recording: Arc<Recording>) -> Self {
        Self { inner, recording }
    }
}

/// The lane of a command.
pub(crate) fn lane(command: &CommandSpec) -> String {
    let program = command.argv.first().map(String::as_str).unwrap_or_default();
    format!("cli.{}", program.rsplit('/').next().unwrap_or(program))
}

/// The request of a run as it is recorded and matched.
pub(crate) fn request(command: &CommandSpec) -> String {
    serde_json::to_string(command).unwrap_or_else(|error| error.to_string())
}

#[async_trait]
impl CliRunner for RecordingCli {
    async fn run(&self, command: CommandSpec, cancel: &CancellationToken) -> Result<CliStream, CliError> {
        let lane = lane(&command);
        let body = request(&command);
        let of = self.recording.open(&Opening { lane: &lane, op: "run", scope: &lane, conn: 0, body: &body });
        let mut exchange = Exchange { recording: self.recording.clone(), of, pieces: 0, closed: false };
        match self.inner.run(command, cancel).await {
            Ok(inner) => Ok(Box::pin(Recorded { inner: gated(self.recording.clone(), inner), exchange })),
            Err(error) => {
                exchange.failed(At::Start, &error);
                Err(error)
            }
        }
    }
}

struct Recorded {
    inner: CliStream,
    exchange: Exchange,
}

impl Stream for Recorded {
    type Item = Result<CliEvent, CliError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.inner.as_mut().poll_next(cx);
        match &polled {
            Poll::Ready(Some(Ok(CliEvent::Stdout(bytes)))) => self.exchange.piece("stdout", bytes),
            Poll::Ready(Some(Ok(CliEvent::Stderr(bytes)))) => self.exchange.piece("stderr", bytes),
            Poll::Ready(Some(Ok(CliEvent::Exit(exit)))) => {
                self.exchange.close(Outcome::Ok, Some(&json!({ "exit": exit }).to_string()));
            }
            Poll::Ready(Some(Err(error))) => self.exchange.failed(At::Stream, error),
            Poll::Ready(None) => self.exchange.close(Outcome::Lost, None),
            Poll::Pending => {}
        }
        polled
    }
}

struct Exchange {
    recording: Arc<Recording>,
    of: u64,
    pieces: u64,
    closed: bool,
}

impl Exchange {
    fn piece(&mut self, stream: &str, bytes: &[u8]) {
        let raw = match std::str::from_utf8(bytes) {
            Ok(text) => json!({ stream: text }),
            Err(_) => json!({ format!("{stream}_b64"): STANDARD.encode(bytes) }),
        };
        self.recording.chunk(self.of, self.pieces, &raw.to_string());
        self.pieces += 1;
    }

    fn failed(&mut self, at: At, error: &CliError) {
        let outcome = match error {
            CliError::Cancelled { .. } => Outcome::Cancelled,
            CliError::Timeout { .. } => Outcome::Timeout,
            _ => Outcome::Error,
        };
        self.close(outcome, Some(&from_cli(at, error).to_string()));
    }

    fn close(&mut self, outcome: Outcome, body: Option<&str>) {
        if !std::mem::replace(&mut self.closed, true) {
            self.recording.close(self.of, outcome, body, None);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.close(Outcome::Cancelled, None);
    }
}
