//! One POST: a frame out, and what the server answers to it.
//!
//! Invariant: a request that was sent gets an answer, be it one that says how the exchange failed, unless it was cancelled
//! meanwhile. Deliberately no retry of a POST: the server may have acted on it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use greenroom_boundary::CancellationToken;
use greenroom_boundary::mcp::{Frame, McpError};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, Response, StatusCode};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::session::Session;
use super::stream;
use crate::http::{EVENT_STREAM, JSON, SESSION_HEADER};
use crate::{Message, RequestId, RpcError, error_frame};

/// How much of an error's body is kept.
const ERROR_BODY_BYTES: usize = 2048;

/// Something for the reader.
pub(super) struct Received {
    pub(super) item: Result<Frame, McpError>,
    pub(super) lost_id: Option<String>,
}

impl From<Frame> for Received {
    fn from(frame: Frame) -> Self {
        Self { item: Ok(frame), lost_id: None }
    }
}

/// Sends a request. `initialize` alone waits for the server's status, as nothing else can be sent before its answer.
pub(super) async fn ask(session: &Arc<Session>, id: RequestId, method: &str, frame: Frame) -> Result<(), McpError> {
    let given_up = CancellationToken::new();
    session.agreed().waiting.insert(id.clone(), given_up.clone());
    let (session, first) = (session.clone(), method == "initialize");
    if !first {
        tokio::spawn(async move {
            let closing = session.closing.clone();
            tokio::select! {
                biased;
                () = closing.cancelled() => {}
                () = given_up.cancelled() => {}
                () = run(&session, &id, frame) => {}
            }
        });
        return Ok(());
    }
    let response = match post(&session, frame).await {
        Ok(response) => response,
        Err(failure) => {
            session.agreed().waiting.remove(&id);
            return Err(failure.error);
        }
    };
    session.agreed().session_id = response.headers().get(SESSION_HEADER).cloned();
    tokio::spawn(async move {
        let closing = session.closing.clone();
        tokio::select! {
            biased;
            () = closing.cancelled() => {}
            () = answer(&session, &id, response, true) => {}
        }
    });
    Ok(())
}

/// Sends what needs no answer, and waits until the server has taken it.
pub(super) async fn tell(
    session: &Arc<Session>,
    method: &str,
    params: Option<&RawValue>,
    frame: Frame,
) -> Result<(), McpError> {
    if method == "notifications/cancelled" {
        forget(session, params);
    }
    let response = post(session, frame).await.map_err(|failure| failure.error)?;
    drop(response);
    if method == "notifications/initialized" {
        tokio::spawn(stream::listen(session.clone()));
    }
    Ok(())
}

fn forget(session: &Session, params: Option<&RawValue>) {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: RequestId,
    }
    if let Some(params) = params.and_then(|raw| serde_json::from_str::<Params>(raw.get()).ok()) {
        // Nobody waits for the rest of that exchange: its connection is let go.
        if let Some(given_up) = session.agreed().waiting.remove(&params.request_id) {
            given_up.cancel();
        }
    }
}

async fn run(session: &Arc<Session>, id: &RequestId, frame: Frame) {
    match post(session, frame).await {
        Ok(response) => answer(session, id, response, false).await,
        Err(Failure { body: Some(frame), .. }) if answers(&frame, id) => {
            session.agreed().waiting.remove(id);
            session.deliver(frame.into()).await;
        }
        Err(failure) => fail(session, id, &failure.error).await,
    }
}

/// How a POST failed, with the body if it is a frame.
struct Failure {
    error: McpError,
    body: Option<Frame>,
}

impl From<McpError> for Failure {
    fn from(error: McpError) -> Self {
        Self { error, body: None }
    }
}

async fn post(session: &Session, frame: Frame) -> Result<Response, Failure> {
    let accept = format!("{JSON}, {EVENT_STREAM}");
    let call = session.call(Method::POST).header(CONTENT_TYPE, JSON).header(ACCEPT, accept).body(frame.0);
    let response = call
        .send()
        .await
        .map_err(|error| McpError::Unreachable { server: session.options.server.clone(), message: describe(&error) })?;
    let status = response.status();
    if status.is_success() {
        return Ok(response);
    }
    let body = read_body(response, ERROR_BODY_BYTES).await.unwrap_or_default();
    if status == StatusCode::NOT_FOUND && session.agreed().session_id.take().is_some() {
        let error = session.closed("the server has ended the session; it must be initialized again");
        session.deliver(Received { item: Err(error.clone()), lost_id: None }).await;
        return Err(error.into());
    }
    let error = McpError::Status {
        server: session.options.server.clone(),
        status: status.as_u16(),
        message: String::from_utf8_lossy(&body).into_owned(),
    };
    Err(Failure { error, body: Some(Frame(body)) })
}

/// Reads the answer to a request from a response that has a success status.
async fn answer(session: &Arc<Session>, id: &RequestId, response: Response, first: bool) {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if content_type.trim_start().to_ascii_lowercase().starts_with(EVENT_STREAM) {
        stream::follow(session, id, response, first).await;
    } else {
        match read_body(response, session.options.limit_bytes).await {
            Ok(body) if body.iter().all(u8::is_ascii_whitespace) => {}
            Ok(body) => receive(session, Frame(body), first).await,
            Err(TooMuch::Failed(message)) => return fail(session, id, &session.closed(message)).await,
            Err(TooMuch::Limit) => return lose(session, id).await,
        }
    }
    if session.agreed().waiting.contains_key(id) {
        fail(session, id, &session.closed("the exchange ended without an answer")).await;
    }
}

/// Passes a frame up; an answer is waited for no longer.
pub(super) async fn receive(session: &Session, frame: Frame, first: bool) {
    if let Ok(Message::Response { id, result }) = Message::parse(&frame) {
        if let Some(id) = id {
            session.agreed().waiting.remove(&id);
        }
        if let (true, Ok(result)) = (first, &result) {
            session.learn_version(result);
        }
    }
    session.deliver(frame.into()).await;
}

/// The answer to `id` was beyond the limit.
pub(super) async fn lose(session: &Session, id: &RequestId) {
    session.agreed().waiting.remove(id);
    let server = session.options.server.clone();
    let error = McpError::TooLarge { server, limit_bytes: session.options.limit_bytes };
    session.deliver(Received { item: Err(error), lost_id: Some(id.to_json()) }).await;
}

/// Answers a request in the server's place, unless it was answered or cancelled.
pub(super) async fn fail(session: &Session, id: &RequestId, error: &McpError) {
    if session.agreed().waiting.remove(id).is_none() {
        return;
    }
    let status = match error {
        McpError::Status { status, .. } => Some(*status),
        _ => None,
    };
    let rpc = RpcError::new(RpcError::TRANSPORT, error.to_string()).with_data(&json!({"code": error.code(), "status": status}));
    session.deliver(error_frame(Some(id), &rpc).into()).await;
}

fn answers(frame: &Frame, id: &RequestId) -> bool {
    matches!(Message::parse(frame), Ok(Message::Response { id: Some(answered), .. }) if answered == *id)
}

enum TooMuch {
    Limit,
    Failed(String),
}

async fn read_body(mut response: Response, limit_bytes: usize) -> Result<Bytes, TooMuch> {
    let mut body = BytesMut::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > limit_bytes => return Err(TooMuch::Limit),
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => return Ok(body.freeze()),
            Err(error) => return Err(TooMuch::Failed(describe(&error))),
        }
    }
}

/// The error with its causes, which say what really happened.
pub(super) fn describe(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}
