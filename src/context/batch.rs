//! `All`, `Any` and `Race` for every family of operations: one combinator, one shape of results.
//!
//! Invariant: the result has one entry per request, in request order, whatever order they ended in. `Any` and `Race` return
//! with their winner; every other request is cancelled and its entry says so (`code: "CANCELLED"`). A request that failed
//! has `error` and `code`; nothing is thrown for it. Requests are looked at in request order, so that a tie goes to the
//! first one, on a virtual clock always the same. Deliberately no limit on how many run at once but the number of requests.

use std::future::poll_fn;
use std::task::Poll;

use greenroom_boundary::isolate::OpError;
use greenroom_boundary::{BoxFuture, CancellationToken};
use serde_json::{Map, Value, json};

/// Most requests of one batch.
pub(super) const MAX_REQUESTS: usize = 256;

/// How results are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Combinator {
    /// Every result.
    All,
    /// The first success ends it.
    Any,
    /// The first to end, well or not, ends it.
    Race,
}

/// How one request ended.
pub(super) enum Ended {
    /// With these fields.
    Well(Map<String, Value>),
    /// With an error.
    Failed {
        /// Stable code.
        code: String,
        /// What happened.
        message: String,
    },
    /// The script's callback threw: that ends the whole batch.
    Threw(OpError),
}

/// One request.
pub(super) struct Request {
    /// What its entry begins with: whom it asked.
    pub(super) head: Map<String, Value>,
    /// Ends it.
    pub(super) cancel: CancellationToken,
    /// Its work.
    pub(super) work: BoxFuture<'static, Ended>,
}

/// The entry of a request: its head, and its fields or its error.
pub(super) fn entry(mut head: Map<String, Value>, ended: Ended) -> Result<Map<String, Value>, OpError> {
    match ended {
        Ended::Well(fields) => head.extend(fields),
        Ended::Failed { code, message } => {
            head.insert("error".to_owned(), json!(message));
            head.insert("code".to_owned(), json!(code));
        }
        Ended::Threw(error) => return Err(error),
    }
    Ok(head)
}

enum Slot {
    /// Not ended; what has not begun has nothing to wind down.
    Open {
        work: BoxFuture<'static, Ended>,
        begun: bool,
    },
    Done(Ended),
}

/// Runs a batch to its end. Dropping the future cancels every request.
pub(super) async fn run(how: Combinator, requests: Vec<Request>) -> Result<Value, OpError> {
    let mut slots = Vec::with_capacity(requests.len());
    let mut heads = Vec::with_capacity(requests.len());
    let mut guards = Vec::with_capacity(requests.len());
    for request in requests {
        slots.push(Slot::Open { work: request.work, begun: false });
        heads.push(request.head);
        guards.push(request.cancel.drop_guard());
    }
    let winner = poll_fn(|context| step(how, &mut slots, context)).await;
    if winner.is_some() {
        drop(guards);
        wind_down(&mut slots).await;
    }
    let won = |index: usize| winner == Some(index);
    let mut entries = Vec::with_capacity(heads.len());
    for (index, (head, slot)) in heads.into_iter().zip(slots).enumerate() {
        let ended = match slot {
            Slot::Done(ended) => ended,
            Slot::Open { .. } => lost(how, winner.unwrap_or_default()),
        };
        let mut entry = entry(head, ended)?;
        if won(index) && how != Combinator::All {
            entry.insert("winner".to_owned(), json!(true));
        }
        entries.push(Value::Object(entry));
    }
    Ok(Value::Array(entries))
}

fn lost(how: Combinator, winner: usize) -> Ended {
    let what = if how == Combinator::Any { "succeeded" } else { "ended" };
    Ended::Failed { code: "CANCELLED".to_owned(), message: format!("cancelled, as request {winner} {what} first") }
}

/// Looks at every request once: `Ready(Some)` names the one that ends the batch, `Ready(None)` says that all are done.
fn step(how: Combinator, slots: &mut [Slot], context: &mut std::task::Context<'_>) -> Poll<Option<usize>> {
    let mut open = false;
    for (index, slot) in slots.iter_mut().enumerate() {
        let Slot::Open { work, begun } = slot else { continue };
        let Poll::Ready(ended) = work.as_mut().poll(context) else {
            *begun = true;
            open = true;
            continue;
        };
        let ends = match ended {
            Ended::Threw(_) => true,
            Ended::Well(_) => how != Combinator::All,
            Ended::Failed { .. } => how == Combinator::Race,
        };
        *slot = Slot::Done(ended);
        if ends {
            return Poll::Ready(Some(index));
        }
    }
    if open { Poll::Pending } else { Poll::Ready(None) }
}

/// Lets cancelled requests say goodbye to their peers. What they still give is not kept: it must not depend on a hair.
async fn wind_down(slots: &mut [Slot]) {
    for slot in slots {
        if let Slot::Open { work, begun: true } = slot {
            drop(work.await);
        }
    }
}
