//! Serves recorded command runs.
//!
//! Invariant: output has its recorded pieces. A run that the host cancelled when it was recorded waits for the host to
//! cancel it again. Deliberately no process of any kind.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::future::{Either, select};
use futures::stream;
use greenroom_boundary::cli::{CliError, CliEvent, CliStream, CommandSpec};
use greenroom_boundary::{CancellationToken, CliRunner};
use serde_json::Value;

use super::Replay;
use super::schedule::{Index, What};
use super::session::Asked;
use crate::cassette::failure::{At, at, to_cli};
use crate::record::cli::{lane, request};

/// The CLI driver of a replay.
#[derive(Clone, Debug)]
pub struct ReplayCli(pub(super) Arc<Replay>);

#[async_trait]
impl CliRunner for ReplayCli {
    async fn run(&self, command: CommandSpec, cancel: &CancellationToken) -> Result<CliStream, CliError> {
        let program = command.argv.first().cloned().unwrap_or_default();
        let lane = lane(&command);
        let body = request(&command);
        let asked = Asked { lane: &lane, op: "run", scope: &lane, conn: 0, body: &body };
        let open =
            self.0.find(&asked).map_err(|miss| CliError::Denied { program: program.clone(), message: miss.to_string() })?;
        let mut run = Run { replay: self.0.clone(), program, cancel: cancel.clone(), open, next: 0, ended: false };
        run.until(self.0.schedule.turn(open)).await?;
        self.0.schedule.reproduced(open);
        if let Some(error) = run.failed_start() {
            run.until(self.0.schedule.release(self.0.schedule.answers(open)[0])).await?;
            run.took();
            return Err(error);
        }
        Ok(Box::pin(stream::unfold(run, |mut run| async move { run.piece().await.map(|piece| (piece, run)) })))
    }
}

struct Run {
    replay: Arc<Replay>,
    program: String,
    cancel: CancellationToken,
    open: Index,
    next: usize,
    ended: bool,
}

impl Run {
    fn answers(&self) -> &[Index] {
        self.replay.schedule.answers(self.open)
    }

    fn took(&mut self) {
        self.replay.schedule.reproduced(self.answers()[self.next]);
        self.next += 1;
    }

    fn failed_start(&self) -> Option<CliError> {
        let first = *self.answers().first()?;
        let What::Close { body: Some(body), .. } = &self.replay.schedule.events[first].what else { return None };
        let body = serde_json::from_str(body).unwrap_or_default();
        (at(&body) == At::Start && body.get("code").is_some()).then(|| to_cli(&body))
    }

    async fn until(&self, waiting: impl Future<Output = ()>) -> Result<(), CliError> {
        match select(Box::pin(self.cancel.cancelled()), Box::pin(waiting)).await {
            Either::Left(_) => Err(CliError::Cancelled { program: self.program.clone() }),
            Either::Right(_) => Ok(()),
        }
    }

    async fn piece(&mut self) -> Option<Result<CliEvent, CliError>> {
        if self.ended {
            return None;
        }
        let Some(index) = self.answers().get(self.next).copied() else {
            self.ended = true;
            let message = "the recording breaks off in this run".to_owned();
            return Some(Err(CliError::Denied { program: self.program.clone(), message }));
        };
        let what = self.replay.schedule.events[index].what.clone();
        let waited = match what {
            What::GivenUp => self.until(std::future::pending()).await,
            _ => self.until(self.replay.schedule.release(index)).await,
        };
        if let Err(error) = waited {
            self.leave();
            return Some(Err(error));
        }
        self.took();
        match what {
            What::Chunk { raw } => Some(Ok(output(&raw))),
            What::Close { body: Some(body), .. } => {
                self.ended = true;
                let body: Value = serde_json::from_str(&body).unwrap_or_default();
                let exit = serde_json::from_value(body["exit"].clone());
                Some(exit.map(CliEvent::Exit).map_err(|_| to_cli(&body)))
            }
            _ => {
                self.ended = true;
                None
            }
        }
    }

    fn leave(&mut self) {
        let left = self.answers().get(self.next..).unwrap_or_default().to_vec();
        self.replay.abandon(&left, false);
        self.ended = true;
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.leave();
    }
}

fn output(raw: &str) -> CliEvent {
    let piece: Value = serde_json::from_str(raw).unwrap_or_default();
    let bytes = |name: &str| -> Option<Bytes> {
        let plain = piece[name].as_str().map(|text| Bytes::from(text.to_owned()));
        plain.or_else(|| STANDARD.decode(piece[format!("{name}_b64")].as_str()?).ok().map(Bytes::from))
    };
    match bytes("stderr") {
        Some(bytes) => CliEvent::Stderr(bytes),
        None => CliEvent::Stdout(bytes("stdout").unwrap_or_default()),
    }
}
