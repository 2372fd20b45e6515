//! Event streams that a client reads: the answer to one request, and the server's own messages.
//!
//! Invariant: a stream that breaks is taken up again only from an event id that the server gave (`Last-Event-ID`), after the
//! wait that it asked for; the server's own messages also without an id. After [`ATTEMPTS`] vain attempts it stays ended.
//! Deliberately no buffering.

use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::clock::sleep;
use greenroom_boundary::mcp::Frame;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, Response};

use super::exchange::{fail, lose, receive};
use super::session::Session;
use crate::RequestId;
use crate::http::EVENT_STREAM;
use crate::http::sse::SseReader;

/// How often a broken stream is opened again without anything new coming.
const ATTEMPTS: usize = 3;
/// The wait before that, if the server names none.
const WAIT: Duration = Duration::from_secs(1);
/// The longest wait that a server may ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// What a stream left behind when it ended.
#[derive(Default)]
struct Left {
    last_id: Option<String>,
    retry: Option<Duration>,
    got_any: bool,
    too_large: bool,
}

/// Reads the stream that answers `id` until the answer came.
pub(super) async fn follow(session: &Arc<Session>, id: &RequestId, response: Response, first: bool) {
    let mut left = drain(session, response, first, Some(id)).await;
    let mut attempts = 0;
    while session.agreed().waiting.contains_key(id) {
        if left.too_large {
            return lose(session, id).await;
        }
        if left.last_id.is_none() || attempts == ATTEMPTS {
            let message = "the stream ended before the answer came";
            return fail(session, id, &session.closed(message)).await;
        }
        attempts += 1;
        if let Some(response) = reopen(session, &left).await {
            let next = drain(session, response, first, Some(id)).await;
            attempts = if next.got_any { 0 } else { attempts };
            left = next.or(left);
        }
    }
}

/// Reads the server's own messages for as long as the session lives, if the server offers such a stream.
pub(super) async fn listen(session: Arc<Session>) {
    let closing = session.closing.clone();
    let listening = async {
        let Some(response) = open(&session, None).await else { return };
        let mut left = drain(&session, response, false, None).await;
        let mut attempts = 0;
        while attempts < ATTEMPTS {
            attempts += 1;
            if let Some(response) = reopen(&session, &left).await {
                let next = drain(&session, response, false, None).await;
                attempts = if next.got_any { 0 } else { attempts };
                left = next.or(left);
            }
        }
    };
    tokio::select! {
        biased;
        () = closing.cancelled() => {}
        () = listening => {}
    }
}

impl Left {
    /// This, with what only the stream before it said.
    fn or(self, before: Self) -> Self {
        Self { last_id: self.last_id.or(before.last_id), retry: self.retry.or(before.retry), ..self }
    }
}

async fn reopen(session: &Session, left: &Left) -> Option<Response> {
    sleep(session.options.clock.as_ref(), left.retry.unwrap_or(WAIT).min(LONGEST_WAIT)).await;
    open(session, left.last_id.as_deref()).await
}

/// Opens a stream; `None` if the server has none to offer.
async fn open(session: &Session, last_id: Option<&str>) -> Option<Response> {
    let mut call = session.call(Method::GET).header(ACCEPT, EVENT_STREAM);
    if let Some(id) = last_id {
        call = call.header("last-event-id", id);
    }
    let response = call.send().await.ok()?;
    let content_type = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    let is_stream = response.status().is_success() && content_type.to_ascii_lowercase().starts_with(EVENT_STREAM);
    is_stream.then_some(response)
}

/// Passes up what the stream brings; ends with the stream, or with the answer that `until` waits for.
async fn drain(session: &Session, mut response: Response, first: bool, until: Option<&RequestId>) -> Left {
    let mut reader = SseReader::new(session.options.limit_bytes);
    let mut left = Left::default();
    while let Ok(Some(chunk)) = response.chunk().await {
        let Ok(events) = reader.feed(&chunk) else {
            left.too_large = true;
            break;
        };
        for event in events {
            left.got_any = true;
            let is_message = event.event.as_deref().is_none_or(|kind| kind == "message");
            // An event without data only carries an id.
            if is_message && !event.data.trim().is_empty() {
                receive(session, Frame::from(event.data), first).await;
            }
        }
        if until.is_some_and(|id| !session.agreed().waiting.contains_key(id)) {
            break;
        }
    }
    left.last_id = reader.last_id().filter(|id| !id.is_empty()).map(ToOwned::to_owned);
    left.retry = reader.retry_ms().map(Duration::from_millis);
    left
}
