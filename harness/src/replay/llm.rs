//! Serves recorded completions.
//!
//! Invariant: pieces have their recorded borders. A completion that the host cancelled when it was recorded waits for the
//! host to cancel it again. Deliberately no model names: the connector in the request says which lane is meant.

use std::sync::Arc;

use async_trait::async_trait;
use futures::stream;
use greenroom_boundary::llm::{LlmCapabilities, LlmError, LlmEvent, LlmRequest, LlmStream};
use greenroom_boundary::{CancellationToken, Llm};

use super::Replay;
use super::answers::{Answers, Cancelled};
use super::schedule::What;
use super::session::Asked;
use crate::cassette::failure::to_llm;

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
        let cancelled = |_: Cancelled| LlmError::Cancelled { connector: connector.clone() };
        let mut answers = Answers::begin(self.0.clone(), cancel.clone(), open).await.map_err(cancelled)?;
        if let Some(body) = answers.failed_start().await.map_err(cancelled)? {
            return Err(to_llm(&body));
        }
        let pieces = Pieces { answers, connector, ended: false };
        Ok(Box::pin(stream::unfold(pieces, |mut pieces| async move { pieces.piece().await.map(|piece| (piece, pieces)) })))
    }
}

struct Pieces {
    answers: Answers,
    connector: String,
    ended: bool,
}

impl Pieces {
    async fn piece(&mut self) -> Option<Result<LlmEvent, LlmError>> {
        if self.ended {
            return None;
        }
        let what = match self.answers.next().await {
            Some(Ok(what)) => what,
            Some(Err(Cancelled)) => {
                self.ended = true;
                return Some(Err(LlmError::Cancelled { connector: self.connector.clone() }));
            }
            None => {
                // A closed exchange is over; one without a close is the torn end of the recording.
                self.ended = true;
                return (!self.answers.is_closed()).then(|| Err(LlmError::Truncated { connector: self.connector.clone() }));
            }
        };
        match what {
            What::Chunk { raw } => {
                let parsed = serde_json::from_str::<LlmEvent>(&raw);
                self.answers.finished |= matches!(parsed, Ok(LlmEvent::Finish { .. }));
                let connector = self.connector.clone();
                Some(parsed.map_err(|error| LlmError::Malformed { connector, message: error.to_string() }))
            }
            What::Close { body: Some(body), .. } => Some(Err(to_llm(&serde_json::from_str(&body).unwrap_or_default()))),
            _ => None,
        }
    }
}
