//! The HTTP requests of scripts, answered from a list.
//!
//! Invariant: nothing may be contacted; a request gets the first answer that fits and is not used up, or is refused as any policy
//! refuses. Deliberately no redirects of its own: a scripted 302 is an answer like any other.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use greenroom_boundary::clock::sleep;
use greenroom_boundary::egress::{Destination, EgressDenied, HttpAnswer, HttpError, HttpRequest};
use greenroom_boundary::{BoxFuture, Clock, Egress};
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::ScriptDuration;
use crate::pattern::Pattern;

/// Answers, each used once unless it says `repeat`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct EgressScript(pub Vec<EgressStep>);

/// What a request must look like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EgressWhen {
    /// Its method: `GET`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Pattern>,
    /// Its address, whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<Pattern>,
    /// Its headers: an object, names in lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<Pattern>,
    /// Its body: read as JSON if it is JSON, else text; bytes that are no text are in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Pattern>,
}

/// One answer: at most one of `json`, `text`, `base64` and `fails`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EgressStep {
    /// Which requests it is for; any, if nothing is said.
    #[serde(default)]
    pub when: EgressWhen,
    /// The status (default 200).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Headers. Without a `content-type`, `json` has `application/json`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The body, as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// The body, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The body, as bytes in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// The connection fails, with this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fails: Option<String>,
    /// How long it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<ScriptDuration>,
    /// How many requests it answers (default 1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<NonZeroU32>,
}

/// A step as it is written, before it is known to have at most one body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepText {
    #[serde(default)]
    when: EgressWhen,
    status: Option<u16>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    json: Option<Value>,
    text: Option<String>,
    base64: Option<String>,
    fails: Option<String>,
    after: Option<ScriptDuration>,
    repeat: Option<NonZeroU32>,
}

impl<'de> Deserialize<'de> for EgressStep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StepText { when, status, headers, json, text, base64, fails, after, repeat } = StepText::deserialize(deserializer)?;
        let bodies = [json.is_some(), text.is_some(), base64.is_some(), fails.is_some()];
        if bodies.into_iter().filter(|given| *given).count() > 1 {
            return Err(D::Error::custom("an answer has one of `json`, `text`, `base64` and `fails`"));
        }
        if base64.as_ref().is_some_and(|text| STANDARD.decode(text).is_err()) {
            return Err(D::Error::custom("`base64` is not base64"));
        }
        Ok(Self { when, status, headers, json, text, base64, fails, after, repeat })
    }
}

impl EgressStep {
    fn wanted(&self) -> u32 {
        self.repeat.map_or(1, NonZeroU32::get)
    }

    fn fits(&self, request: &Value) -> bool {
        let EgressWhen { method, url, headers, body } = &self.when;
        let fields = [("method", method), ("url", url), ("headers", headers), ("body", body)];
        fields
            .into_iter()
            .all(|(key, pattern)| pattern.as_ref().is_none_or(|pattern| pattern.matches(request.get(key)).is_ok()))
    }

    fn answer(&self, destination: &Destination) -> Result<HttpAnswer, HttpError> {
        if let Some(message) = &self.fails {
            let Destination { host, port, .. } = destination.clone();
            return Err(HttpError::Unreachable { host, port, message: message.clone() });
        }
        let mut headers: Vec<(String, String)> =
            self.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
        let body = match (&self.json, &self.text, &self.base64) {
            (Some(json), ..) => {
                if !headers.iter().any(|(name, _)| name == "content-type") {
                    headers.push(("content-type".to_owned(), "application/json".to_owned()));
                }
                Bytes::from(json.to_string())
            }
            (_, Some(text), _) => Bytes::from(text.clone()),
            (.., Some(text)) => Bytes::from(STANDARD.decode(text).unwrap_or_default()),
            _ => Bytes::new(),
        };
        Ok(HttpAnswer { status: self.status.unwrap_or(200), status_text: String::new(), headers, body })
    }
}

/// Answers from a script.
pub struct ScriptedEgress {
    script: EgressScript,
    used: Mutex<Vec<u32>>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for ScriptedEgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptedEgress({} answers)", self.script.0.len())
    }
}

impl ScriptedEgress {
    /// A driver that takes its time on `clock`.
    pub fn new(script: EgressScript, clock: Arc<dyn Clock>) -> Self {
        let used = Mutex::new(vec![0; script.0.len()]);
        Self { script, used, clock }
    }

    /// Answers that were not given, for the report.
    pub fn unused(&self) -> Vec<String> {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = self.script.0.iter().zip(used.iter()).enumerate();
        rows.filter(|(_, (step, came))| **came < step.wanted())
            .map(|(index, (step, came))| format!("[{index}] came {came} of {} times", step.wanted()))
            .collect()
    }

    fn take(&self, request: &Value) -> Option<EgressStep> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = self.script.0.iter().zip(used.iter_mut());
        let (step, came) = rows.find(|(step, came)| **came < step.wanted() && step.fits(request))?;
        *came += 1;
        Some(step.clone())
    }
}

fn denied(destination: &Destination, reason: String) -> EgressDenied {
    let Destination { host, port, purpose } = destination.clone();
    EgressDenied { host, port, purpose, reason }
}

/// A request as patterns see it.
fn shown(request: &HttpRequest) -> Value {
    let headers: BTreeMap<&str, &str> = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let body = match std::str::from_utf8(&request.body) {
        Ok("") => Value::Null,
        Ok(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        Err(_) => json!(STANDARD.encode(&request.body)),
    };
    json!({"method": request.method, "url": request.url, "headers": headers, "body": body})
}

impl Egress for ScriptedEgress {
    fn check(&self, destination: &Destination) -> Result<(), EgressDenied> {
        Err(denied(destination, "egress is scripted here: only the requests of scripts are answered".to_owned()))
    }

    fn fetch(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpAnswer, HttpError>> {
        let Some(step) = self.take(&shown(&request)) else {
            let reason = format!(
                "no answer that is left in `egress: {{ script: […] }}` fits {} {}; add one with `when`",
                request.method, request.url
            );
            return Box::pin(std::future::ready(Err(denied(&request.destination, reason).into())));
        };
        let wait = step.after.map(|after| sleep(self.clock.as_ref(), after.to_std()));
        Box::pin(async move {
            if let Some(wait) = wait {
                wait.await;
            }
            let answer = step.answer(&request.destination)?;
            if answer.body.len() > request.body_limit_bytes {
                return Err(HttpError::BodyLimit { limit_bytes: request.body_limit_bytes });
            }
            Ok(answer)
        })
    }
}
