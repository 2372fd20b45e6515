//! `fetch` in scripts: one exchange and the redirects that follow from it, through the egress boundary.
//!
//! Invariant: egress is asked about every hop; each hop is an exchange in the trace, with the values of headers that name a secret
//! left out. A hop to another origin carries no credentials. Deliberately no cookies, no cache and no pages: a status is no failure.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use greenroom_boundary::egress::{Destination, HttpAnswer, HttpError, HttpRequest};
use greenroom_boundary::isolate::OpError;
use greenroom_boundary::trace::{EventKind, Outcome};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use url::Url;

use crate::drivers::llm::names_a_secret;
use crate::host::HostCore;
use crate::router::{CallContext, OpenExchange};

/// Largest body of an answer.
const BODY_LIMIT_BYTES: usize = 4 << 20;
/// Largest text of a body that the trace shows.
const TRACED_BYTES: usize = 64 << 10;
/// Most redirects that are followed.
const MOST_REDIRECTS: usize = 20;

/// Headers that belong to the connection, not to the script.
const NOT_THE_SCRIPTS: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// What a script asks for, as the engine's part writes it.
#[derive(Deserialize)]
struct Asked {
    url: String,
    method: String,
    headers: Vec<(String, String)>,
    #[serde(default)]
    body: Option<AskedBody>,
    redirect: Redirect,
}

#[derive(Deserialize)]
struct AskedBody {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    base64: Option<String>,
}

#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Redirect {
    Follow,
    Error,
    Manual,
}

fn failed(code: &str, message: impl Into<String>) -> OpError {
    OpError { code: code.to_owned(), message: format!("fetch: {}", message.into()), class: "TypeError" }
}

/// Runs a request to its last answer.
pub(super) async fn run(core: &Arc<HostCore>, cx: &CallContext, request: &str) -> Result<Value, OpError> {
    let asked: Asked = serde_json::from_str(request).map_err(|error| failed("FETCH_REQUEST", error.to_string()))?;
    let mut url = address(&asked.url)?;
    let mut hop = Hop { method: asked.method, headers: asked.headers, body: body_of(asked.body)? };
    hop.headers.retain(|(name, _)| !NOT_THE_SCRIPTS.contains(&name.as_str()));
    for redirects in 0..=MOST_REDIRECTS {
        let answer = exchange(core, cx, &url, &hop).await?;
        let target = match asked.redirect {
            Redirect::Manual => None,
            Redirect::Follow | Redirect::Error => redirect_of(&answer, &url),
        };
        let Some(target) = target else { return Ok(answer_value(&answer, &url, redirects > 0)) };
        if asked.redirect == Redirect::Error {
            return Err(failed("FETCH_REDIRECT", format!("{url} redirects, and `redirect` is \"error\"")));
        }
        hop.follow(answer.status, &url, &target);
        url = target;
    }
    Err(failed("FETCH_REDIRECT", format!("more than {MOST_REDIRECTS} redirects")))
}

fn address(text: &str) -> Result<Url, OpError> {
    let mut url = Url::parse(text).map_err(|error| failed("FETCH_URL", format!("{text:?} is no address: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(failed("FETCH_URL", format!("{text:?} is no address of the web; it must begin with http:// or https://")));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(failed("FETCH_URL", "an address must not hold a user or a password; send a header instead"));
    }
    url.set_fragment(None);
    Ok(url)
}

fn body_of(body: Option<AskedBody>) -> Result<Bytes, OpError> {
    match body {
        Some(AskedBody { base64: Some(text), .. }) => {
            STANDARD.decode(text).map(Bytes::from).map_err(|error| failed("FETCH_REQUEST", error.to_string()))
        }
        Some(AskedBody { text: Some(text), .. }) => Ok(Bytes::from(text)),
        _ => Ok(Bytes::new()),
    }
}

/// What of a request may change from hop to hop.
struct Hop {
    method: String,
    headers: Vec<(String, String)>,
    body: Bytes,
}

impl Hop {
    /// Makes it the request to where the last answer pointed, as the fetch standard says.
    fn follow(&mut self, status: u16, from: &Url, to: &Url) {
        let becomes_get = matches!(status, 301 | 302) && self.method == "POST"
            || status == 303 && !matches!(self.method.as_str(), "GET" | "HEAD");
        if becomes_get {
            "GET".clone_into(&mut self.method);
            self.body = Bytes::new();
            self.headers.retain(|(name, _)| !name.starts_with("content-"));
        }
        if from.origin() != to.origin() {
            self.headers.retain(|(name, _)| !names_a_secret(name));
        }
    }
}

/// Where an answer points to, if it is a redirect.
fn redirect_of(answer: &HttpAnswer, from: &Url) -> Option<Url> {
    if !matches!(answer.status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let (_, location) = answer.headers.iter().find(|(name, _)| name == "location")?;
    from.join(location).ok().filter(|url| matches!(url.scheme(), "http" | "https"))
}

async fn exchange(core: &Arc<HostCore>, cx: &CallContext, url: &Url, hop: &Hop) -> Result<HttpAnswer, OpError> {
    let tracer = &core.drivers.tracer;
    let span = tracer.span();
    if tracer.enabled() {
        let body = json!({
            "method": hop.method, "url": url.as_str(), "headers": shown_headers(&hop.headers), "body": shown_body(&hop.body),
        });
        let (boundary, method) = ("egress".to_owned(), "fetch".to_owned());
        let event = EventKind::Request { span, parent: cx.parent, boundary, method, tool_call: None, body };
        tracer.emit(&cx.scope, cx.agent.as_ref(), event);
    }
    let open = OpenExchange {
        tracer: tracer.clone(),
        scope: cx.scope.clone(),
        agent: cx.agent.clone(),
        span,
        boundary: "egress".to_owned(),
        method: "fetch".to_owned(),
        left: Arc::new(AtomicBool::new(true)),
    };
    let destination = Destination {
        host: url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase(),
        port: url.port_or_known_default().unwrap_or_default(),
        purpose: cx.agent.as_ref().map_or_else(|| "script".to_owned(), |agent| format!("script.{agent}")),
    };
    let request = HttpRequest {
        method: hop.method.clone(),
        url: url.to_string(),
        headers: hop.headers.clone(),
        body: hop.body.clone(),
        destination,
        body_limit_bytes: BODY_LIMIT_BYTES,
    };
    let answer = core.drivers.egress.fetch(request).await;
    match &answer {
        Ok(answer) => open.close(Outcome::Ok, || json!({"result": traced(answer)}), None),
        Err(error) => {
            let told = || json!({"error": {"code": error.code(), "message": error.to_string()}});
            open.close(outcome_of(error), told, None);
        }
    }
    answer.map_err(|error| failed(error.code(), core.drivers.credentials.mask(&error.to_string())))
}

fn outcome_of(error: &HttpError) -> Outcome {
    match error {
        HttpError::Unreachable { .. } => Outcome::Lost,
        HttpError::Denied(_) | HttpError::NoClient | HttpError::Unsendable { .. } | HttpError::BodyLimit { .. } => {
            Outcome::Error
        }
    }
}

fn shown_headers(headers: &[(String, String)]) -> Value {
    let mut shown = Map::new();
    for (name, value) in headers {
        let value = if names_a_secret(name) { "[redacted]" } else { value.as_str() };
        match shown.get_mut(name) {
            Some(Value::String(known)) => {
                known.push_str(", ");
                known.push_str(value);
            }
            _ => drop(shown.insert(name.clone(), json!(value))),
        }
    }
    Value::Object(shown)
}

fn shown_body(body: &Bytes) -> Value {
    match std::str::from_utf8(body) {
        Ok("") => Value::Null,
        Ok(text) if text.len() <= TRACED_BYTES => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        _ => json!({"bytes": body.len()}),
    }
}

fn traced(answer: &HttpAnswer) -> Value {
    json!({"status": answer.status, "headers": shown_headers(&answer.headers), "body": shown_body(&answer.body)})
}

/// An answer as the engine's part reads it.
fn answer_value(answer: &HttpAnswer, url: &Url, redirected: bool) -> Value {
    let mut value = json!({
        "url": url.as_str(), "status": answer.status, "statusText": answer.status_text, "headers": answer.headers,
        "redirected": redirected,
    });
    // A mark at the start of a text is not part of the text, but of the bytes.
    match std::str::from_utf8(&answer.body) {
        Ok(text) if !text.starts_with('\u{feff}') => value["text"] = json!(text),
        _ => value["base64"] = json!(STANDARD.encode(&answer.body)),
    }
    value
}
