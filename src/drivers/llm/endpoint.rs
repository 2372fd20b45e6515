//! One provider's HTTP endpoint: a POST that is answered by an event stream.
//!
//! Invariant: every wait ends when the token is cancelled, and dropping the answer closes the connection; while bytes are
//! awaited the clock is held. Deliberately no proxy from the environment and no dialect.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt;
use futures::future::{Either, select};
use greenroom_boundary::egress::Destination;
use greenroom_boundary::llm::LlmError;
use greenroom_boundary::{BoxStream, CancellationToken, Clock, Credentials, Egress};
use greenroom_wire::http::sse::{SseEvent, SseReader};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, RETRY_AFTER};
use reqwest::{Response, StatusCode, Url};
use serde_json::Value;

use super::setup::{LlmSetupError, endpoint_url, header_map, http_client, names_a_secret};

/// Largest event of a stream.
const EVENT_LIMIT_BYTES: usize = 8 << 20;
/// Most of an error's body that is read.
const ERROR_BODY_LIMIT_BYTES: usize = 64 << 10;
/// Longest provider's message in an error, in characters.
const MESSAGE_CHARS: usize = 400;

/// What the real models need of the other boundaries.
#[derive(Clone, Debug)]
pub struct LlmWorld {
    /// Asked before each connection.
    pub egress: Arc<dyn Egress>,
    /// Held while an answer is awaited.
    pub clock: Arc<dyn Clock>,
    /// Where keys are registered, so that nothing writes them down.
    pub credentials: Credentials,
}

pub(super) struct Endpoint {
    connector: String,
    url: Url,
    headers: HeaderMap,
    client: reqwest::Client,
    world: LlmWorld,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address without query and user: either may hold a key.
        write!(f, "{} at {}", self.connector, self.url.origin().ascii_serialization())
    }
}

impl Endpoint {
    pub(super) fn new(
        connector: &str,
        base_url: &str,
        path: &str,
        api_key: Option<&str>,
        headers: &BTreeMap<String, String>,
        world: LlmWorld,
    ) -> Result<Self, LlmSetupError> {
        let url = endpoint_url(connector, base_url, path)?;
        if let Some(key) = api_key {
            world.credentials.register(format!("llm.{connector}/apiKey"), key);
        }
        for (name, value) in headers.iter().filter(|(name, _)| names_a_secret(name)) {
            world.credentials.register(format!("llm.{connector}/{name}"), value);
        }
        let headers = header_map(connector, api_key, headers)?;
        let client =
            http_client().map_err(|error| LlmSetupError::Http { connector: connector.to_owned(), reason: chain(&error) })?;
        Ok(Self { connector: connector.to_owned(), url, headers, client, world })
    }

    pub(super) fn connector(&self) -> &str {
        &self.connector
    }

    /// Sends `body` and returns the events of the answer.
    pub(super) async fn post(&self, body: Vec<u8>, cancel: &CancellationToken) -> Result<EventBody, LlmError> {
        self.check_egress()?;
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body).send();
        let response = self.wait(cancel, request).await?.map_err(|error| self.transport(error))?;
        if response.status() != StatusCode::OK {
            return Err(self.status(response, cancel).await);
        }
        let content_type = header_text(&response, &CONTENT_TYPE);
        if !content_type.to_ascii_lowercase().starts_with("text/event-stream") {
            return Err(self.malformed(format!("expected an event stream, got `{content_type}`")));
        }
        Ok(EventBody {
            connector: self.connector.clone(),
            clock: self.world.clock.clone(),
            cancel: cancel.clone(),
            bytes: response.bytes_stream().boxed(),
            reader: SseReader::new(EVENT_LIMIT_BYTES),
            ready: VecDeque::new(),
        })
    }

    pub(super) fn malformed(&self, message: impl AsRef<str>) -> LlmError {
        LlmError::Malformed { connector: self.connector.clone(), message: self.speakable(message.as_ref()) }
    }

    /// `message` without secrets and not too long.
    pub(super) fn speakable(&self, message: &str) -> String {
        let masked = self.world.credentials.mask(message);
        match masked.char_indices().nth(MESSAGE_CHARS) {
            Some((cut, _)) => format!("{}…", &masked[..cut]),
            None => masked,
        }
    }

    fn check_egress(&self) -> Result<(), LlmError> {
        let destination = Destination {
            host: self.url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase(),
            port: self.url.port_or_known_default().unwrap_or_default(),
            purpose: format!("llm.{}", self.connector),
        };
        self.world
            .egress
            .check(&destination)
            .map_err(|denied| LlmError::Unavailable { connector: self.connector.clone(), message: denied.to_string() })
    }

    async fn wait<F: Future>(&self, cancel: &CancellationToken, future: F) -> Result<F::Output, LlmError> {
        wait(&*self.world.clock, cancel, &self.connector, future).await
    }

    fn transport(&self, error: reqwest::Error) -> LlmError {
        let message = self.speakable(&chain(&error.without_url()));
        LlmError::Transport { connector: self.connector.clone(), message }
    }

    async fn status(&self, response: Response, cancel: &CancellationToken) -> LlmError {
        let status = response.status().as_u16();
        let retry_after_ms = retry_after_ms(response.headers());
        let mut body = Vec::new();
        let mut bytes = response.bytes_stream();
        while body.len() < ERROR_BODY_LIMIT_BYTES {
            match self.wait(cancel, bytes.next()).await {
                Ok(Some(Ok(chunk))) => body.extend_from_slice(&chunk),
                Ok(_) => break,
                Err(cancelled) => return cancelled,
            }
        }
        body.truncate(ERROR_BODY_LIMIT_BYTES);
        let message = self.speakable(&provider_message(&body));
        LlmError::Status { connector: self.connector.clone(), status, message, retry_after_ms }
    }
}

/// The events of an answer.
pub(super) struct EventBody {
    connector: String,
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
    bytes: BoxStream<'static, reqwest::Result<Bytes>>,
    reader: SseReader,
    ready: VecDeque<SseEvent>,
}

impl EventBody {
    /// The next event; `None` when the body has ended, properly or not.
    pub(super) async fn next(&mut self) -> Result<Option<SseEvent>, LlmError> {
        loop {
            if self.cancel.is_cancelled() {
                return Err(LlmError::Cancelled { connector: self.connector.clone() });
            }
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            let next = self.bytes.next();
            let Some(Ok(chunk)) = wait(&*self.clock, &self.cancel, &self.connector, next).await? else {
                // A broken connection and a body that just ends are the same here: the dialect's end mark decides.
                return Ok(None);
            };
            let events = self
                .reader
                .feed(&chunk)
                .map_err(|error| LlmError::Malformed { connector: self.connector.clone(), message: error.to_string() })?;
            self.ready.extend(events);
        }
    }
}

/// Awaits something outside the runtime: the clock is held, and a cancellation comes first.
async fn wait<F: Future>(
    clock: &dyn Clock,
    cancel: &CancellationToken,
    connector: &str,
    future: F,
) -> Result<F::Output, LlmError> {
    let _hold = clock.hold();
    match select(std::pin::pin!(cancel.cancelled()), std::pin::pin!(future)).await {
        Either::Left(_) => Err(LlmError::Cancelled { connector: connector.to_owned() }),
        Either::Right((value, _)) => Ok(value),
    }
}

fn header_text(response: &Response, name: &HeaderName) -> String {
    response.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// `Retry-After` in seconds, or OpenAI's `retry-after-ms`. A date is not understood: it needs the provider's clock.
fn retry_after_ms(headers: &HeaderMap) -> Option<u64> {
    let number = |name: &HeaderName| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let millis = number(&HeaderName::from_static("retry-after-ms"));
    let millis = millis.or_else(|| Some(number(&RETRY_AFTER)? * 1000.0))?;
    (millis.is_finite() && millis >= 0.0).then_some(millis as u64)
}

/// What the provider says in an error's body, whatever its shape.
fn provider_message(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let Ok(json) = serde_json::from_slice::<Value>(body) else { return text.trim().to_owned() };
    let error = json.get("error").unwrap_or(&json);
    let message = error.get("message").or_else(|| json.get("message")).unwrap_or(error);
    message.as_str().map_or_else(|| message.to_string(), str::to_owned)
}

/// An error with its causes: the outer message alone seldom says what happened.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
