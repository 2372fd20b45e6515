//! The recorded answers of one exchange, given out one by one.
//!
//! Invariant: an answer is taken when it is due and not before; what is left when the host leaves is abandoned, once.
//! Deliberately no knowledge of the boundary: the drivers read the answers.

use std::sync::Arc;

use futures::future::{Either, select};
use greenroom_boundary::CancellationToken;
use serde_json::Value;

use super::Replay;
use super::schedule::{Index, What};
use crate::cassette::failure::{At, at};

/// The host cancelled while an answer was awaited.
pub(super) struct Cancelled;

/// The answers of one exchange.
pub(super) struct Answers {
    replay: Arc<Replay>,
    cancel: CancellationToken,
    open: Index,
    next: usize,
    /// The host has what it asked for: leaving now misses nothing.
    pub(super) finished: bool,
}

impl Answers {
    /// Waits for the exchange's turn and begins it.
    pub(super) async fn begin(replay: Arc<Replay>, cancel: CancellationToken, open: Index) -> Result<Self, Cancelled> {
        let answers = Self { replay, cancel, open, next: 0, finished: false };
        answers.until(answers.replay.schedule.turn(open)).await?;
        answers.replay.schedule.reproduced(open);
        Ok(answers)
    }

    fn recorded(&self) -> &[Index] {
        self.replay.schedule.answers(self.open)
    }

    async fn until(&self, waiting: impl Future<Output = ()>) -> Result<(), Cancelled> {
        match select(Box::pin(self.cancel.cancelled()), Box::pin(waiting)).await {
            Either::Left(_) => Err(Cancelled),
            Either::Right(_) => Ok(()),
        }
    }

    /// The failure that the call itself ended with, taken when it is due.
    pub(super) async fn failed_start(&mut self) -> Result<Option<Value>, Cancelled> {
        let Some(first) = self.recorded().first().copied() else { return Ok(None) };
        let What::Close { body: Some(body), .. } = &self.replay.schedule.events[first].what else { return Ok(None) };
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        if at(&body) != At::Start || body.get("code").is_none() {
            return Ok(None);
        }
        self.until(self.replay.schedule.release(first)).await?;
        self.took(first);
        Ok(Some(body))
    }

    /// The next answer when it is due; `None` if none is left. After a cancellation the rest is abandoned.
    pub(super) async fn next(&mut self) -> Option<Result<What, Cancelled>> {
        let index = self.recorded().get(self.next).copied()?;
        let what = self.replay.schedule.events[index].what.clone();
        let waited = match what {
            What::GivenUp => self.until(std::future::pending()).await,
            _ => self.until(self.replay.schedule.release(index)).await,
        };
        if let Err(cancelled) = waited {
            self.leave();
            return Some(Err(cancelled));
        }
        self.took(index);
        Some(Ok(what))
    }

    fn took(&mut self, index: Index) {
        self.replay.schedule.reproduced(index);
        self.next += 1;
    }

    /// Whether the recording of the exchange has an end, and is not torn.
    pub(super) fn is_closed(&self) -> bool {
        let last = self.recorded().last();
        last.is_some_and(|last| !matches!(self.replay.schedule.events[*last].what, What::Chunk { .. }))
    }

    /// Gives up what is left.
    fn leave(&mut self) {
        let left = self.recorded().get(self.next..).unwrap_or_default().to_vec();
        self.replay.abandon(&left, self.finished);
        self.next = usize::MAX;
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.leave();
    }
}
