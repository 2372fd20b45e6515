//! Serves recorded command runs.
//!
//! Invariant: output has its recorded pieces. A run that the host cancelled when it was recorded waits for the host to
//! cancel it again. Deliberately no process of any kind.

use std::sync::Arc;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::stream;
use greenroom_boundary::cli::{CliError, CliEvent, CliStream, CommandSpec};
use greenroom_boundary::{CancellationToken, CliRunner};
use serde_json::Value;

use super::Replay;
use super::answers::{Answers, Cancelled};
use super::schedule::What;
use super::session::Asked;
use crate::cassette::failure::to_cli;
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
        let cancelled = |_: Cancelled| CliError::Cancelled { program: program.clone() };
        let mut answers = Answers::begin(self.0.clone(), cancel.clone(), open).await.map_err(cancelled)?;
        if let Some(body) = answers.failed_start().await.map_err(cancelled)? {
            return Err(to_cli(&body));
        }
        let run = Run { answers, program, ended: false };
        Ok(Box::pin(stream::unfold(run, |mut run| async move { run.piece().await.map(|piece| (piece, run)) })))
    }
}

struct Run {
    answers: Answers,
    program: String,
    ended: bool,
}

impl Run {
    async fn piece(&mut self) -> Option<Result<CliEvent, CliError>> {
        if self.ended {
            return None;
        }
        let what = match self.answers.next().await {
            Some(Ok(what)) => what,
            Some(Err(Cancelled)) => {
                self.ended = true;
                return Some(Err(CliError::Cancelled { program: self.program.clone() }));
            }
            None => {
                self.ended = true;
                let message = "the recording breaks off in this run".to_owned();
                return Some(Err(CliError::Denied { program: self.program.clone(), message }));
            }
        };
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
