//! What is under way on a connection.
//!
//! Invariant: an entry leaves the table exactly once, by whoever ends it: the answer, the caller, or the connection's end.
//! Deliberately no waiting in here; the lock is held for table work only.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_boundary::CancellationToken;
use greenroom_boundary::clock::MonoNanos;
use greenroom_boundary::mcp::McpError;
use tokio::sync::oneshot;

use super::request::{OnAnswer, Progress, ProgressNote, RequestError};
use crate::{DropReason, ProgressToken, RawJson, RequestId};

type Listener = Arc<dyn Fn(Progress) + Send + Sync>;

/// A request of ours that has no answer yet.
pub(super) struct Pending {
    pub(super) answer: oneshot::Sender<Result<RawJson, RequestError>>,
    pub(super) on_answer: Option<OnAnswer>,
    pub(super) progress: Option<Listener>,
    pub(super) token: Option<ProgressToken>,
    pub(super) last_progress: Option<f64>,
    pub(super) timeout: Option<Duration>,
    pub(super) cap: MonoNanos,
    pub(super) deadline: MonoNanos,
    /// Whether the frame has left, or is leaving; before that the other side need not be told of a cancellation.
    pub(super) sent: bool,
    pub(super) cancellable: bool,
}

impl Pending {
    /// Gives it its answer.
    pub(super) fn finish(self, result: Result<RawJson, RequestError>) {
        if let Some(on_answer) = self.on_answer {
            on_answer(&result);
        }
        // Nobody may be waiting any more.
        let _ = self.answer.send(result);
    }
}

/// A request of theirs that has no answer yet.
pub(super) struct Incoming {
    pub(super) cancel: CancellationToken,
    pub(super) cancelled_by_peer: bool,
}

#[derive(Default)]
struct Tables {
    pending: BTreeMap<i64, Pending>,
    incoming: BTreeMap<RequestId, Incoming>,
    next_id: i64,
    closed: Option<McpError>,
    /// Why the other side answers nothing any more.
    deaf: Option<McpError>,
}

/// The tables of one connection.
#[derive(Default)]
pub(super) struct UnderWay(Mutex<Tables>);

impl UnderWay {
    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enters a request of ours under a fresh id, unless the connection has ended.
    pub(super) fn enter(&self, make: impl FnOnce(i64) -> Pending) -> Result<i64, McpError> {
        let mut tables = self.lock();
        if let Some(why) = tables.closed.as_ref().or(tables.deaf.as_ref()) {
            return Err(why.clone());
        }
        tables.next_id += 1;
        let id = tables.next_id;
        let pending = make(id);
        tables.pending.insert(id, pending);
        Ok(id)
    }

    pub(super) fn take(&self, id: i64) -> Option<Pending> {
        self.lock().pending.remove(&id)
    }

    /// Marks a request as sent; false if it has been given up meanwhile.
    pub(super) fn mark_sent(&self, id: i64) -> bool {
        self.lock().pending.get_mut(&id).map(|pending| pending.sent = true).is_some()
    }

    pub(super) fn deadline(&self, id: i64) -> Option<MonoNanos> {
        self.lock().pending.get(&id).map(|pending| pending.deadline)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.lock().pending.len()
    }

    /// The one request that waits for an answer, if it is the only one.
    pub(super) fn only_sent(&self) -> Option<i64> {
        let tables = self.lock();
        let mut sent = tables.pending.iter().filter(|(_, pending)| pending.sent).map(|(id, _)| *id);
        sent.next().filter(|_| sent.next().is_none())
    }

    /// Applies progress; returns who hears of it.
    pub(super) fn advance(&self, note: &ProgressNote, now: MonoNanos) -> Result<Option<Listener>, DropReason> {
        let mut tables = self.lock();
        let pending = match &note.token {
            RequestId::Number(id)
                if tables.pending.get(id).is_some_and(|pending| pending.token.as_ref() == Some(&note.token)) =>
            {
                tables.pending.get_mut(id)
            }
            token => tables.pending.values_mut().find(|pending| pending.token.as_ref() == Some(token)),
        };
        let pending = pending.ok_or(DropReason::UnknownToken)?;
        if pending.last_progress.is_some_and(|last| note.progress.progress <= last) {
            return Err(DropReason::NotIncreasing);
        }
        pending.last_progress = Some(note.progress.progress);
        if let Some(timeout) = pending.timeout {
            pending.deadline = now.after(timeout).min(pending.cap);
        }
        Ok(pending.progress.clone())
    }

    /// Enters a request of theirs; false if its id is in use.
    pub(super) fn admit(&self, id: &RequestId, cancel: CancellationToken) -> bool {
        let mut tables = self.lock();
        if tables.incoming.contains_key(id) {
            return false;
        }
        tables.incoming.insert(id.clone(), Incoming { cancel, cancelled_by_peer: false });
        true
    }

    pub(super) fn release(&self, id: &RequestId) -> Option<Incoming> {
        self.lock().incoming.remove(id)
    }

    /// Cancels a request of theirs; false if it is not under way.
    pub(super) fn cancel_incoming(&self, id: &RequestId) -> bool {
        let mut tables = self.lock();
        let Some(incoming) = tables.incoming.get_mut(id) else { return false };
        incoming.cancelled_by_peer = true;
        incoming.cancel.cancel();
        true
    }

    pub(super) fn answering(&self) -> usize {
        self.lock().incoming.len()
    }

    /// Whether a request of theirs is under way.
    pub(super) fn is_admitted(&self, id: &RequestId) -> bool {
        self.lock().incoming.contains_key(id)
    }

    /// The other side sends nothing more: requests of ours fail, and later ones too; theirs go on.
    pub(super) fn go_deaf(&self, why: &McpError) {
        let mut tables = self.lock();
        tables.deaf.get_or_insert_with(|| why.clone());
        let pending = std::mem::take(&mut tables.pending);
        drop(tables);
        for (_, pending) in pending {
            pending.finish(Err(RequestError::Closed(why.clone())));
        }
    }

    /// Fails what waits for an answer and refuses what comes later. True the first time.
    pub(super) fn shut(&self, why: &McpError) -> bool {
        let mut tables = self.lock();
        if tables.closed.is_some() {
            return false;
        }
        tables.closed = Some(why.clone());
        let pending = std::mem::take(&mut tables.pending);
        drop(tables);
        for (_, pending) in pending {
            pending.finish(Err(RequestError::Closed(why.clone())));
        }
        true
    }
}
