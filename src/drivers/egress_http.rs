//! The HTTP exchanges of scripts on the real network.
//!
//! Invariant: the policy is asked before each connection; redirects are not followed here, and no proxy of the environment is used, as
//! nobody asked about those destinations. The clock is held while an answer is awaited, and no more of a body is read than was asked for.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures::StreamExt;
use greenroom_boundary::egress::{Destination, EgressDenied, HttpAnswer, HttpError, HttpRequest};
use greenroom_boundary::{BoxFuture, Clock, Egress};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Method, Response};

use super::EgressPolicy;

/// Longest time to connect. A whole exchange ends with its hook at the latest.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// A client that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no HTTP client for the requests of scripts: {reason}")]
pub struct HttpEgressError {
    reason: String,
}

impl HttpEgressError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        "EGRESS_CLIENT"
    }
}

/// A policy, and a client that keeps to it.
#[derive(Debug)]
pub struct HttpEgress {
    policy: EgressPolicy,
    client: Client,
    clock: Arc<dyn Clock>,
}

impl HttpEgress {
    /// A client for what `policy` allows.
    #[expect(clippy::disallowed_methods, reason = "this driver makes the connections, after the policy said yes")]
    pub fn new(policy: EgressPolicy, clock: Arc<dyn Clock>) -> Result<Self, HttpEgressError> {
        let client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_LIMIT)
            .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| HttpEgressError { reason: error.to_string() })?;
        Ok(Self { policy, client, clock })
    }
}

impl Egress for HttpEgress {
    fn check(&self, destination: &Destination) -> Result<(), EgressDenied> {
        self.policy.check(destination)
    }

    fn fetch(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpAnswer, HttpError>> {
        if let Err(denied) = self.check(&request.destination) {
            return Box::pin(std::future::ready(Err(denied.into())));
        }
        let (client, clock) = (self.client.clone(), self.clock.clone());
        Box::pin(async move {
            let _hold = clock.hold();
            exchange(&client, request).await
        })
    }
}

async fn exchange(client: &Client, request: HttpRequest) -> Result<HttpAnswer, HttpError> {
    let unsendable = |message: String| HttpError::Unsendable { message };
    let method = Method::from_bytes(request.method.as_bytes()).map_err(|error| unsendable(error.to_string()))?;
    let mut headers = HeaderMap::new();
    for (name, value) in &request.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| unsendable(error.to_string()))?;
        // A header's text is Latin-1 in scripts.
        let bytes: Vec<u8> = value.chars().map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?')).collect();
        headers.append(name, HeaderValue::from_bytes(&bytes).map_err(|error| unsendable(error.to_string()))?);
    }
    let Destination { host, port, .. } = request.destination;
    let broken =
        |error: reqwest::Error| HttpError::Unreachable { host: host.clone(), port, message: reason(&error.without_url()) };
    let sent = client.request(method, &request.url).headers(headers).body(request.body).send();
    let answer = sent.await.map_err(&broken)?;
    let (status, status_text) = (answer.status().as_u16(), answer.status().canonical_reason().unwrap_or_default().to_owned());
    let headers = headers_of(&answer);
    let limit_bytes = request.body_limit_bytes;
    if answer.content_length().is_some_and(|length| length > limit_bytes as u64) {
        return Err(HttpError::BodyLimit { limit_bytes });
    }
    let (mut body, mut pieces) = (BytesMut::new(), answer.bytes_stream());
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(&broken)?;
        if body.len() + piece.len() > limit_bytes {
            return Err(HttpError::BodyLimit { limit_bytes });
        }
        body.extend_from_slice(&piece);
    }
    Ok(HttpAnswer { status, status_text, headers, body: body.freeze() })
}

fn headers_of(answer: &Response) -> Vec<(String, String)> {
    let latin = |value: &HeaderValue| value.as_bytes().iter().copied().map(char::from).collect();
    answer.headers().iter().map(|(name, value)| (name.as_str().to_owned(), latin(value))).collect()
}

/// The innermost reason: the outer ones say that a request failed.
fn reason(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
