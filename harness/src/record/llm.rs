//! Records completions: one exchange each, a chunk per piece.
//!
//! Invariant: the pieces pass through untouched and in their order; a stream that is dropped closes its exchange.
//! Deliberately no dialect: the pieces are those of the boundary.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures::Stream;
use greenroom_boundary::llm::{LlmCapabilities, LlmError, LlmEvent, LlmRequest, LlmStream, Usage};
use greenroom_boundary::trace::Outcome;
use greenroom_boundary::{CancellationToken, Llm};

use super::Recording;
use super::gate::gated;
use super::recording::Opening;
use crate::cassette::failure::{At, from_llm};

/// An LLM driver that is recorded.
#[derive(Clone, Debug)]
pub struct RecordingLlm {
    inner: Arc<dyn Llm>,
    recording: Arc<Recording>,
}

impl RecordingLlm {
    /// Records what passes to and from `inner`.
    pub fn new(inner: Arc<dyn Llm>, recording: Arc<Recording>) -> Self {
        Self { inner, recording }
    }
}

#[async_trait]
impl Llm for RecordingLlm {
    fn capabilities(&self) -> LlmCapabilities {
        self.inner.capabilities()
    }

    async fn stream(&self, request: LlmRequest, cancel: &CancellationToken) -> Result<LlmStream, LlmError> {
        let lane = format!("llm.{}", request.connector);
        let scope = request.agent.clone().unwrap_or_else(|| lane.clone());
        let body = serde_json::to_string(&request).unwrap_or_else(|error| error.to_string());
        let of = self.recording.open(&Opening { lane: &lane, op: "chat", scope: &scope, conn: 0, body: &body });
        let mut exchange =
            Exchange { recording: self.recording.clone(), of, pieces: 0, usage: None, finished: false, closed: false };
        match self.inner.stream(request, cancel).await {
            Ok(inner) => Ok(Box::pin(Recorded { inner: gated(self.recording.clone(), inner), exchange })),
            Err(error) => {
                exchange.failed(At::Start, &error);
                Err(error)
            }
        }
    }
}

struct Recorded {
    inner: LlmStream,
    exchange: Exchange,
}

impl Stream for Recorded {
    type Item = Result<LlmEvent, LlmError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let polled = self.inner.as_mut().poll_next(cx);
        match &polled {
            Poll::Ready(Some(Ok(event))) => self.exchange.piece(event),
            Poll::Ready(Some(Err(error))) => self.exchange.failed(At::Stream, error),
            Poll::Ready(None) => {
                let outcome = if self.exchange.finished { Outcome::Ok } else { Outcome::Lost };
                self.exchange.close(outcome, None);
            }
            Poll::Pending => {}
        }
        polled
    }
}

struct Exchange {
    recording: Arc<Recording>,
    of: u64,
    pieces: u64,
    usage: Option<Usage>,
    finished: bool,
    closed: bool,
}

impl Exchange {
    fn piece(&mut self, event: &LlmEvent) {
        match event {
            LlmEvent::Usage(usage) => self.usage = Some(*usage),
            LlmEvent::Finish { .. } => self.finished = true,
            _ => {}
        }
        let raw = serde_json::to_string(event).unwrap_or_else(|error| error.to_string());
        self.recording.chunk(self.of, self.pieces, &raw);
        self.pieces += 1;
    }

    fn failed(&mut self, at: At, error: &LlmError) {
        let outcome = match error {
            LlmError::Cancelled { .. } => Outcome::Cancelled,
            LlmError::Transport { .. } | LlmError::Truncated { .. } => Outcome::Lost,
            _ => Outcome::Error,
        };
        self.close(outcome, Some(&from_llm(at, error).to_string()));
    }

    fn close(&mut self, outcome: Outcome, body: Option<&str>) {
        if !std::mem::replace(&mut self.closed, true) {
            self.recording.close(self.of, outcome, body, self.usage);
        }
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let outcome = if self.finished { Outcome::Ok } else { Outcome::Cancelled };
        self.close(outcome, None);
    }
}
