//! Serves recorded completions.
//!
//! Invariant: pieces have their recorded borders. A completion that the host cancelled when it was recorded waits for the
//! host to cancel it again. Deliberately no model names: the connector in the request says which lane is meant.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::{Either, select};
use futures::stream;
use greenroom_boundary::llm::{LlmCapabilities, LlmError, LlmEvent, LlmRequest, LlmStream};
use greenroom_boundary::{CancellationToken, Llm};

use super::Replay;
use super::schedule::{Index, What};
use super::session::Asked;
use crate::cassette::failure::{At, at, to_llm};

/// The LLM driver of a replay.
#[derive(Clone, Debug)]
pub struct ReplayLlm(pub(super) Arc<Replay>);

#[async_trait]
impl Llm for ReplayLlm {
    fn capabilities(&self) -> LlmCapabilities {
        LlmCapabilities { tools: true, streaming: true }
    }

    async fn stream(&self, request: LlmRequest, cancel: &CancellationToken) -> Result<LlmStream, LlmError> {
        let connector = request.connector.to_string();
        let lane = format!("llm.{connector}");
        let scope = request.agent.clone().unwrap_or_else(|| lane.clone());
        let body = serde_json::to_string(&request).unwrap_or_else(|error| error.to_string());
        let asked = Asked { lane: &lane, op: "chat", scope: &scope, conn: 0, body: &body };
        let open = self
            .0
            .find(&asked)
            .map_err(|miss| LlmError::Unavailable { connector: connector.clone(), message: miss.to_string() })?;
        let mut pieces = Pieces { replay: self.0.clone(), connector, cancel: cancel.clone(), open, next: 0, finished: false };
        pieces.until(self.0.schedule.turn(open)).await?;
        self.0.schedule.reproduced(open);
        if let Some(error) = pieces.failed_start() {
            pieces.until(self.0.schedule.release(self.0.schedule.answers(open)[0])).await?;
            pieces.took();
            return Err(error);
        }
        Ok(Box::pin(stream::unfold(pieces, |mut pieces| async move { pieces.piece().await.map(|piece| (piece, pieces)) })))
    }
}

struct Pieces {
    replay: Arc<Replay>,
    connector: String,
    cancel: CancellationToken,
    open: Index,
    next: usize,
    finished: bool,
}

impl Pieces {
    fn answers(&self) -> &[Index] {
        self.replay.schedule.answers(self.open)
    }

    fn took(&mut self) {
        self.replay.schedule.reproduced(self.answers()[self.next]);
        self.next += 1;
    }

    /// The error that the call itself ended with.
    fn failed_start(&self) -> Option<LlmError> {
        let first = *self.answers().first()?;
        let What::Close { body: Some(body), .. } = &self.replay.schedule.events[first].what else { return None };
        let body = serde_json::from_str(body).unwrap_or_default();
        (at(&body) == At::Start).then(|| to_llm(&body))
    }

    async fn until(&self, waiting: impl Future<Output = ()>) -> Result<(), LlmError> {
        match select(Box::pin(self.cancel.cancelled()), Box::pin(waiting)).await {
            Either::Left(_) => Err(LlmError::Cancelled { connector: self.connector.clone() }),
            Either::Right(_) => Ok(()),
        }
    }

    async fn piece(&mut self) -> Option<Result<LlmEvent, LlmError>> {
        if self.next == usize::MAX {
            return None;
        }
        let Some(index) = self.answers().get(self.next).copied() else {
            // A closed exchange is over; one without a close is the torn end of the recording.
            let closed = self
                .answers()
                .last()
                .is_some_and(|last| !matches!(self.replay.schedule.events[*last].what, What::Chunk { .. }));
            self.next = usize::MAX;
            return (!closed).then(|| Err(LlmError::Truncated { connector: self.connector.clone() }));
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
            What::Chunk { raw } => {
                let parsed = serde_json::from_str::<LlmEvent>(&raw);
                self.finished |= matches!(parsed, Ok(LlmEvent::Finish { .. }));
                let connector = self.connector.clone();
                Some(parsed.map_err(|error| LlmError::Malformed { connector, message: error.to_string() }))
            }
            What::Close { body: Some(body), .. } => Some(Err(to_llm(&serde_json::from_str(&body).unwrap_or_default()))),
            _ => None,
        }
    }

    fn leave(&mut self) {
        let left = self.answers().get(self.next..).unwrap_or_default().to_vec();
        self.replay.abandon(&left, self.finished);
        self.next = usize::MAX;
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.leave();
    }
}
