//! The endpoint: POST, GET and DELETE on one path.
//!
//! Invariant: the status says what the protocol says it must (403 origin, 400 missing session, 404 unknown session, 202 for
//! what needs no answer). A request is answered with plain JSON unless something else had to be said first, or it took long.
//! Deliberately no TLS and no listening: the HTTP front does that.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, ORIGIN, USER_AGENT};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::get;
use bytes::{Bytes, BytesMut};
use futures::{StreamExt as _, stream};
use greenroom_boundary::clock::sleep;
use greenroom_boundary::mcp::Frame;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::checks::{self, Refused, bad_request, header, refuse, respond, unknown_session};
use super::session::{Session, Sessions, Streams};
use super::stream::{Out, Stream};
use super::{Acceptor, KeepAlive, Refusal, ServerOptions, SessionInfo};
use crate::http::sse::write_event;
use crate::http::{EVENT_STREAM, JSON, SESSION_HEADER};
use crate::splice::progress_token_of;
use crate::stdio::IdScanner;
use crate::{Message, RequestId, RpcError, WireError};

#[derive(Clone)]
struct Endpoint {
    acceptor: Arc<dyn Acceptor>,
    sessions: Sessions,
}

/// The endpoint at `path`, and its sessions.
pub fn mcp_router(path: &str, acceptor: Arc<dyn Acceptor>, options: ServerOptions) -> (Router, Sessions) {
    let sessions = Sessions::new(options);
    let methods = get(on_get).post(on_post).delete(on_delete);
    let endpoint = Endpoint { acceptor, sessions: sessions.clone() };
    (Router::new().route(path, methods).with_state(endpoint), sessions)
}

async fn on_post(State(endpoint): State<Endpoint>, headers: HeaderMap, body: Body) -> Response {
    endpoint.post(&headers, body).await.unwrap_or_else(|refused| *refused.0)
}

async fn on_get(State(endpoint): State<Endpoint>, headers: HeaderMap) -> Response {
    endpoint.get(&headers).unwrap_or_else(|refused| *refused.0)
}

async fn on_delete(State(endpoint): State<Endpoint>, headers: HeaderMap) -> Response {
    endpoint.delete(&headers).unwrap_or_else(|refused| *refused.0)
}

impl Endpoint {
    fn admit(&self, headers: &HeaderMap) -> Result<(), Refused> {
        checks::origin(headers, &self.sessions.options.allowed_origins)?;
        self.acceptor.authorize(headers).map_err(|refusal| refused(&refusal))
    }

    fn keep_alive(&self) -> Option<KeepAlive> {
        self.sessions.options.keep_alive.clone()
    }

    fn session(&self, headers: &HeaderMap) -> Result<Arc<Session>, Refused> {
        if !headers.contains_key(SESSION_HEADER) {
            return Err(bad_request("the Mcp-Session-Id header is missing; initialize first and send the id you get"));
        }
        let session = self.sessions.find(header(headers, SESSION_HEADER)).ok_or_else(unknown_session)?;
        checks::version(headers)?;
        Ok(session)
    }

    async fn post(&self, headers: &HeaderMap, body: Body) -> Result<Response, Refused> {
        self.admit(headers)?;
        checks::post(headers)?;
        let frame = Frame(read(body, self.sessions.options.body_limit_bytes).await?);
        let message = Message::parse(&frame).map_err(|error| unreadable(&error))?;
        match message {
            Message::Request { id, method, .. } if method == "initialize" && !headers.contains_key(SESSION_HEADER) => {
                self.initialize(headers, id, frame).await
            }
            Message::Request { id, params, .. } => {
                let session = self.session(headers)?;
                let opened = session.routes().open_post(id.clone(), progress_token_of(params.as_deref()));
                let stream = opened.ok_or_else(|| unreadable(&WireError::IdInUse { id: id.to_json() }))?;
                ask(&session, id, stream, frame, self.keep_alive()).await
            }
            Message::Notification { method, params } => {
                let session = self.session(headers)?;
                let cancelled = cancelled_id(&method, params.as_deref());
                accept(&session, frame).await?;
                if let Some(id) = cancelled {
                    session.routes().close_post(&id);
                }
                Ok(accepted())
            }
            Message::Response { .. } => {
                let session = self.session(headers)?;
                accept(&session, frame).await?;
                Ok(accepted())
            }
        }
    }

    async fn initialize(&self, headers: &HeaderMap, id: RequestId, frame: Frame) -> Result<Response, Refused> {
        let busy = || refused(&Refusal { status: 503, message: "too many sessions; end some or try later".to_owned() });
        let (session, duplex) = self.sessions.open().ok_or_else(busy)?;
        let mut unborn = Unborn(Some(session.clone()));
        let info = SessionInfo { id: session.id.clone(), headers: known_headers(headers), streams: Streams::of(&session) };
        self.acceptor.accept(info, duplex).await.map_err(|refusal| refused(&refusal))?;
        let opened = session.routes().open_post(id, None);
        let mut stream = opened.ok_or_else(unknown_session)?;
        accept(&session, frame).await?;
        let first = stream.recv().await;
        if first.as_ref().is_some_and(|out| out.error) {
            return finish(&session, first, stream, None);
        }
        unborn.0 = None;
        let mut response = finish(&session, first, stream, self.keep_alive())?;
        if let Ok(value) = HeaderValue::try_from(&session.id) {
            response.headers_mut().insert(SESSION_HEADER, value);
        }
        Ok(response)
    }

    fn get(&self, headers: &HeaderMap) -> Result<Response, Refused> {
        self.admit(headers)?;
        checks::get(headers)?;
        let session = self.session(headers)?;
        let stream = session.routes().open_get();
        Ok(event_stream(None, stream, self.keep_alive()))
    }

    fn delete(&self, headers: &HeaderMap) -> Result<Response, Refused> {
        self.admit(headers)?;
        self.session(headers)?.end();
        Ok(Response::new(Body::empty()))
    }
}

/// Ends a session whose client never learnt of it: refused, not initialized, or gone before the answer.
struct Unborn(Option<Arc<Session>>);

impl Drop for Unborn {
    fn drop(&mut self) {
        if let Some(session) = &self.0 {
            session.end();
        }
    }
}

fn refused(refusal: &Refusal) -> Refused {
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    refuse(status, &RpcError::new(RpcError::TRANSPORT, refusal.message.clone()))
}

fn unreadable(error: &WireError) -> Refused {
    refuse(StatusCode::BAD_REQUEST, &error.to_rpc())
}

/// Reads a body. Of one that is too large the beginning is looked at: what it asks may be told there.
async fn read(body: Body, limit_bytes: usize) -> Result<Bytes, Refused> {
    let (mut chunks, mut read) = (body.into_data_stream(), BytesMut::new());
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| bad_request(&format!("the message broke off: {error}")))?;
        if read.len() + chunk.len() > limit_bytes {
            let mut scanner = IdScanner::default();
            scanner.feed(&read);
            scanner.feed(&chunk);
            let id = scanner.finish().request.and_then(|id| serde_json::from_str::<RequestId>(&id).ok());
            let message = format!("the message is beyond the limit of {limit_bytes} bytes");
            let error = RpcError::new(RpcError::TRANSPORT, message);
            return Err(checks::refuse_request(StatusCode::PAYLOAD_TOO_LARGE, id.as_ref(), &error));
        }
        read.extend_from_slice(&chunk);
    }
    Ok(read.freeze())
}

fn known_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let names = [AUTHORIZATION.as_str(), ORIGIN.as_str(), USER_AGENT.as_str()];
    let present = names.into_iter().filter(|name| headers.contains_key(*name));
    present.map(|name| (name.to_owned(), header(headers, name).to_owned())).collect()
}

fn cancelled_id(method: &str, params: Option<&RawValue>) -> Option<RequestId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: RequestId,
    }
    let params = params.filter(|_| method == "notifications/cancelled")?;
    serde_json::from_str::<Params>(params.get()).ok().map(|params| params.request_id)
}

async fn accept(session: &Session, frame: Frame) -> Result<(), Refused> {
    if session.receive(frame).await { Ok(()) } else { Err(unknown_session()) }
}

fn accepted() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// Passes a request on and answers with what comes back on its stream.
async fn ask(
    session: &Session,
    id: RequestId,
    mut stream: Stream,
    frame: Frame,
    keep_alive: Option<KeepAlive>,
) -> Result<Response, Refused> {
    if !session.receive(frame).await {
        session.routes().close_post(&id);
        return Err(unknown_session());
    }
    match next(&mut stream, keep_alive.as_ref()).await {
        Next::Out(first) => finish(session, Some(first), stream, keep_alive),
        Next::End => finish(session, None, stream, keep_alive),
        Next::Silence => Ok(event_stream(None, stream, keep_alive)),
    }
}

fn finish(session: &Session, first: Option<Out>, stream: Stream, keep_alive: Option<KeepAlive>) -> Result<Response, Refused> {
    match first {
        Some(Out { frame, answer: true, .. }) => Ok(respond(StatusCode::OK, JSON, Body::from(frame.0))),
        None if session.has_ended() => Err(unknown_session()),
        // Cancelled: a stream with nothing on it.
        first => Ok(event_stream(first, stream, keep_alive)),
    }
}

enum Next {
    Out(Out),
    End,
    /// Nothing, for as long as a stream may be silent.
    Silence,
}

async fn next(stream: &mut Stream, keep_alive: Option<&KeepAlive>) -> Next {
    let silence = async {
        match keep_alive {
            Some(keep) => sleep(keep.clock.as_ref(), keep.every).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        out = stream.recv() => out.map_or(Next::End, Next::Out),
        () = silence => Next::Silence,
    }
}

fn event_stream(first: Option<Out>, stream: Stream, keep_alive: Option<KeepAlive>) -> Response {
    let events = stream::unfold((first, stream, keep_alive), |(first, mut stream, keep_alive)| async move {
        let next = match first {
            Some(out) => Next::Out(out),
            None => next(&mut stream, keep_alive.as_ref()).await,
        };
        let event = match next {
            Next::Out(out) => Bytes::from(write_event(&out.frame.to_text())),
            Next::Silence => Bytes::from_static(b": still here\n\n"),
            Next::End => return None,
        };
        Some((Ok::<_, Infallible>(event), (None, stream, keep_alive)))
    });
    let mut response = respond(StatusCode::OK, EVENT_STREAM, Body::from_stream(events));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
