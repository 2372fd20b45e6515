//! The reading task of a connection.
//!
//! Invariant: one frame is dealt with before the next is read; only requests of the other side run on their own. Nothing
//! that comes in, and no handler, ends this task but the end of the connection. Deliberately no limits on how many requests
//! run: that is the handler's business.

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use greenroom_boundary::clock::sleep;
use greenroom_boundary::mcp::{Frame, FrameSource, McpError};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::connection::unattended;
use super::request::{ProgressNote, RequestError};
use super::writer::Outgoing;
use super::{DropReason, IncomingRequest, Peer};
use crate::{Envelope, Message, RawJson, RequestId, RpcError, WireError, error_frame, response_frame};

/// How long the requests of a client that has stopped sending may still take.
const LAST_CALLS: Duration = Duration::from_secs(5);

const PROGRESS: &str = "notifications/progress";
const CANCELLED: &str = "notifications/cancelled";

/// Reads until the connection ends. What a client has asked is answered first.
pub(super) async fn read(peer: Peer, mut source: Box<dyn FrameSource>) {
    let closing = peer.shared.closing.clone();
    let why = loop {
        let next = tokio::select! {
            biased;
            () = closing.cancelled() => break None,
            next = source.next() => next,
        };
        match next {
            None => break None,
            Some(Ok(frame)) => guarded(|| dispatch(&peer, &frame)),
            Some(Err(error @ McpError::TooLarge { .. })) => {
                guarded(|| lose(&peer, source.lost_id(), source.lost_request(), &error));
            }
            Some(Err(error)) => break Some(error),
        }
    };
    if peer.shared.serves && why.is_none() {
        // Nobody is left who could answer a question of ours.
        peer.shared.under_way.go_deaf(&peer.gone("the other side has stopped sending, so it cannot answer"));
        let clock = peer.shared.options.clock.clone();
        tokio::select! {
            biased;
            () = closing.cancelled() => {}
            () = finish(&peer) => {}
            () = sleep(clock.as_ref(), LAST_CALLS) => {}
        }
    }
    peer.shut(why);
}

/// Waits until what the other side has asked is answered and the answers have left.
async fn finish(peer: &Peer) {
    while peer.shared.unanswered.load(Ordering::SeqCst) > 0 {
        peer.shared.answered.notified().await;
    }
    let (reached, left) = oneshot::channel();
    if peer.queue(Outgoing::Mark(reached)).is_ok() {
        let _ = left.await;
    }
}

/// A panic in a handler costs its frame alone; the panic hook has reported it.
fn guarded(work: impl FnOnce()) {
    let _ = std::panic::catch_unwind(AssertUnwindSafe(work));
}

/// Fails the request whose answer was too large.
fn lose(peer: &Peer, lost_id: Option<String>, lost_request: Option<String>, error: &McpError) {
    let under_way = &peer.shared.under_way;
    let id = match lost_id {
        Some(id) => id.parse().ok(),
        None => under_way.only_sent(),
    };
    if let Some(pending) = id.and_then(|id| under_way.take(id)) {
        pending.finish(Err(RequestError::TooLarge(error.clone())));
    }
    peer.shared.handler.too_large(error);
    let request = lost_request.and_then(|id| serde_json::from_str::<RequestId>(&id).ok());
    // An id that is in use names another request, whose answer this is not.
    let request = request.filter(|id| !peer.shared.under_way.is_admitted(id));
    refuse(peer, request.as_ref(), &RpcError::new(RpcError::INVALID_REQUEST, error.to_string()));
}

/// Fails the request whose answer is no message, if its id can be told.
fn fail_answered(peer: &Peer, frame: &Frame, error: &WireError) {
    let Ok(envelope) = Envelope::parse(frame) else { return };
    if envelope.method.is_some() || (envelope.result.is_none() && envelope.error.is_none()) {
        return;
    }
    let id = envelope.id.and_then(RequestId::from_raw);
    if let Some(RequestId::Number(id)) = id
        && let Some(pending) = peer.shared.under_way.take(id)
    {
        pending.finish(Err(RequestError::BadAnswer(error.clone())));
    }
}

/// Tells a client about a message of its own that nothing can answer. A server is not told: what it sent may have been an
/// answer, or no message at all.
fn refuse(peer: &Peer, id: Option<&RequestId>, error: &RpcError) {
    if peer.shared.serves {
        let _ = peer.queue(unattended(error_frame(id, error)));
    }
}

fn dispatch(peer: &Peer, frame: &Frame) {
    let handler = &peer.shared.handler;
    match Message::parse(frame) {
        Err(error) => {
            handler.malformed(frame, &error);
            fail_answered(peer, frame, &error);
            refuse(peer, None, &error.to_rpc());
        }
        Ok(Message::Response { id, result }) => respond(peer, id.as_ref(), result, frame),
        Ok(Message::Request { id, method, .. }) if method == "ping" => {
            let _ = peer.queue(unattended(Frame::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}"))));
        }
        Ok(Message::Request { id, method, params }) => serve(peer, id, method, params, frame),
        Ok(Message::Notification { method, params }) => match method.as_str() {
            PROGRESS => progress(peer, params.as_deref(), frame),
            CANCELLED => cancel(peer, params.as_deref(), frame),
            _ => handler.notification(peer, &method, params.as_deref(), frame),
        },
    }
}

fn respond(peer: &Peer, id: Option<&RequestId>, result: Result<RawJson, RpcError>, frame: &Frame) {
    let pending = match id {
        Some(RequestId::Number(id)) => peer.shared.under_way.take(*id),
        _ => None,
    };
    match pending {
        Some(pending) => pending.finish(result.map_err(RequestError::Rpc)),
        None => peer.shared.handler.stale_response(id, frame),
    }
}

fn progress(peer: &Peer, params: Option<&RawValue>, frame: &Frame) {
    let advanced = ProgressNote::parse(params).ok_or(DropReason::Malformed).and_then(|note| {
        let listener = peer.shared.under_way.advance(&note, peer.shared.options.clock.now())?;
        Ok((listener, note.progress))
    });
    match advanced {
        Ok((Some(listener), progress)) => listener(progress),
        Ok((None, _)) => {}
        Err(reason) => peer.shared.handler.dropped_notification(PROGRESS, reason, frame),
    }
}

fn cancel(peer: &Peer, params: Option<&RawValue>, frame: &Frame) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: RequestId,
    }
    let params = params.and_then(|raw| serde_json::from_str::<Params>(raw.get()).ok());
    let reason = match params {
        None => Some(DropReason::Malformed),
        Some(params) if !peer.shared.under_way.cancel_incoming(&params.request_id) => Some(DropReason::UnknownRequest),
        Some(_) => None,
    };
    if let Some(reason) = reason {
        peer.shared.handler.dropped_notification(CANCELLED, reason, frame);
    }
}

/// Takes a request of the other side out of the table, whatever way its handler ended. It counts as unanswered until it is
/// dropped: its answer is queued by then.
struct Admitted {
    peer: Peer,
    /// `None` once the table's entry is gone: the other side may use the id again.
    id: Option<RequestId>,
}

impl Admitted {
    /// Whether the other side still wants the answer.
    fn wanted(&mut self) -> bool {
        let incoming = self.id.take().and_then(|id| self.peer.shared.under_way.release(&id));
        incoming.is_some_and(|incoming| !incoming.cancelled_by_peer)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            self.peer.shared.under_way.release(&id);
        }
        self.peer.shared.unanswered.fetch_sub(1, Ordering::SeqCst);
        self.peer.shared.answered.notify_one();
    }
}

fn serve(peer: &Peer, id: RequestId, method: String, params: Option<RawJson>, frame: &Frame) {
    let cancel = peer.shared.closing.child_token();
    if !peer.shared.under_way.admit(&id, cancel.clone()) {
        let error = WireError::IdInUse { id: id.to_json() };
        peer.shared.handler.malformed(frame, &error);
        return refuse(peer, None, &error.to_rpc());
    }
    peer.shared.unanswered.fetch_add(1, Ordering::SeqCst);
    let mut admitted = Admitted { peer: peer.clone(), id: Some(id.clone()) };
    let request = IncomingRequest { id: id.clone(), method, params, peer: peer.clone(), cancel };
    let handler = peer.shared.handler.clone();
    handler.arrived(&request);
    tokio::spawn(async move {
        let answer = AssertUnwindSafe(handler.request(request)).catch_unwind().await;
        let answer = answer.unwrap_or_else(|_| Err(RpcError::internal("the request's handler failed")));
        if admitted.wanted() {
            let frame = match answer {
                Ok(result) => response_frame(&id, &result),
                Err(error) => error_frame(Some(&id), &error),
            };
            let _ = admitted.peer.queue(unattended(frame));
        }
    });
}
