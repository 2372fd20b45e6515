//! An audit sink over HTTP: a POST of a JSON array for each batch.
//!
//! Invariant: egress is asked before each delivery; only an answer of 2xx counts as delivered; while one is awaited the
//! clock is held. Deliberately no redirects and no proxy: they would be other goals than the one that was allowed.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use greenroom_boundary::audit::AuditError;
use greenroom_boundary::egress::Destination;
use greenroom_boundary::{AuditSink, CancellationToken, Clock, Egress, RawJson};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Response, StatusCode, Url};

/// Longest wait for one delivery.
const DELIVERY_LIMIT: Duration = Duration::from_secs(30);

/// An audit sink that cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuditSetupError {
    /// The address is unusable.
    #[error("audit.url: it is no http(s) address: {reason}")]
    Url {
        /// What is wrong with it.
        reason: String,
    },
    /// A header cannot be sent.
    #[error("audit.headers: the {header} header holds characters that HTTP does not allow")]
    Header {
        /// The header, without its value.
        header: String,
    },
    /// The TLS library could not start.
    #[error("audit: cannot set HTTP up: {reason}")]
    Http {
        /// What happened.
        reason: String,
    },
}

impl AuditSetupError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Url { .. } => "AUDIT_URL",
            Self::Header { .. } => "AUDIT_HEADER",
            Self::Http { .. } => "AUDIT_HTTP_SETUP",
        }
    }
}

/// Posts batches.
pub struct HttpAudit {
    url: Url,
    headers: HeaderMap,
    client: reqwest::Client,
    egress: Arc<dyn Egress>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for HttpAudit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address without path and query: either may hold a key.
        write!(f, "HttpAudit({})", self.url.origin().ascii_serialization())
    }
}

impl HttpAudit {
    /// A sink at `url`.
    pub fn new(
        url: &str,
        headers: &BTreeMap<String, String>,
        egress: Arc<dyn Egress>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AuditSetupError> {
        let url = Url::parse(url).map_err(|error| AuditSetupError::Url { reason: error.to_string() })?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(AuditSetupError::Url { reason: "it must start with http:// or https://".to_owned() });
        }
        let mut map = HeaderMap::new();
        map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, text) in headers {
            let invalid = || AuditSetupError::Header { header: name.clone() };
            let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
            let mut value = HeaderValue::from_str(text).map_err(|_| invalid())?;
            value.set_sensitive(true);
            map.insert(parsed, value);
        }
        let client = client().map_err(|error| AuditSetupError::Http { reason: error.to_string() })?;
        Ok(Self { url, headers: map, client, egress, clock })
    }

    fn check_egress(&self) -> Result<(), AuditError> {
        let destination = Destination {
            host: self.url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase(),
            port: self.url.port_or_known_default().unwrap_or_default(),
            purpose: "audit".to_owned(),
        };
        self.egress.check(&destination).map_err(|denied| AuditError::Refused { message: denied.to_string() })
    }
}

#[expect(clippy::disallowed_methods, reason = "this driver makes the connections, after egress said yes")]
fn client() -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .timeout(DELIVERY_LIMIT)
        .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
        .build()
}

#[async_trait]
impl AuditSink for HttpAudit {
    async fn deliver(&self, batch: &[RawJson], cancel: &CancellationToken) -> Result<(), AuditError> {
        if batch.is_empty() {
            return Ok(());
        }
        self.check_egress()?;
        let unavailable = |message: String| AuditError::Unavailable { message, retry_after: None };
        let body = serde_json::to_vec(batch).map_err(|error| AuditError::Refused { message: error.to_string() })?;
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body).send();
        let _hold = self.clock.hold();
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(AuditError::Cancelled),
            answer = request => answer.map_err(|error| unavailable(error.without_url().to_string()))?,
        };
        judge(&answer)
    }
}

fn judge(answer: &Response) -> Result<(), AuditError> {
    let status = answer.status();
    let message = format!("the far end answered with status {}", status.as_u16());
    let later = status.is_server_error() || [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(&status);
    match (status.is_success(), later) {
        (true, _) => Ok(()),
        (false, true) => Err(AuditError::Unavailable { message, retry_after: retry_after(answer.headers()) }),
        (false, false) => Err(AuditError::Refused { message }),
    }
}

/// `Retry-After` in seconds. A date is not understood: it needs the far end's clock.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
