//! A provider for the web: one GET, and a list of results in JSON.
//!
//! Invariant: egress is asked before each search; while one is awaited the clock is held. Deliberately no redirects and no
//! proxy: they would be other goals than the one that was allowed.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::egress::Destination;
use greenroom_boundary::search::{SearchAnswer, SearchError, SearchHit, SearchQuery, TimeRange};
use greenroom_boundary::{CancellationToken, Clock, Egress};
use reqwest::Url;
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use crate::config::WebConfig;

const KIND: &str = "web";
/// Longest wait for one answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// Largest answer, in bytes.
const MAX_ANSWER_BYTES: usize = 8 << 20;

/// A provider that cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebSetupError {
    /// The address is unusable.
    #[error("search.web.url: it is no http(s) address: {reason}")]
    Url {
        /// What is wrong with it.
        reason: String,
    },
    /// A header cannot be sent.
    #[error("search.web.headers: the {header} header holds characters that HTTP does not allow")]
    Header {
        /// The header, without its value.
        header: String,
    },
    /// The TLS library could not start.
    #[error("search.web: cannot set HTTP up: {reason}")]
    Http {
        /// What happened.
        reason: String,
    },
}

impl WebSetupError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Url { .. } => "SEARCH_URL",
            Self::Header { .. } => "SEARCH_HEADER",
            Self::Http { .. } => "SEARCH_HTTP_SETUP",
        }
    }
}

/// Asks the provider of a config.
pub(super) struct WebSearch {
    config: WebConfig,
    headers: HeaderMap,
    client: reqwest::Client,
    egress: Arc<dyn Egress>,
    clock: Arc<dyn Clock>,
}

impl fmt::Debug for WebSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the address: it may hold a key.
        f.write_str("WebSearch")
    }
}

impl WebSearch {
    pub(super) fn new(config: &WebConfig, egress: Arc<dyn Egress>, clock: Arc<dyn Clock>) -> Result<Self, WebSetupError> {
        let sample = address(config, &SearchQuery::new(greenroom_boundary::search::SearchKind::Web, "x"));
        let url = sample.map_err(|reason| WebSetupError::Url { reason })?;
        if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
            return Err(WebSetupError::Url { reason: "it must start with http:// or https://".to_owned() });
        }
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        for (name, text) in &config.headers {
            let invalid = || WebSetupError::Header { header: name.clone() };
            let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid())?;
            let mut value = HeaderValue::from_str(text).map_err(|_| invalid())?;
            value.set_sensitive(true);
            headers.insert(parsed, value);
        }
        let client = client().map_err(|error| WebSetupError::Http { reason: error.to_string() })?;
        Ok(Self { config: config.clone(), headers, client, egress, clock })
    }

    pub(super) async fn search(&self, query: &SearchQuery, cancel: &CancellationToken) -> Result<SearchAnswer, SearchError> {
        let url = address(&self.config, query).map_err(|message| SearchError::BadQuery { kind: KIND, message })?;
        let destination = Destination {
            host: url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_ascii_lowercase(),
            port: url.port_or_known_default().unwrap_or_default(),
            purpose: "search.web".to_owned(),
        };
        let denied = |denied: greenroom_boundary::egress::EgressDenied| denied.to_string();
        self.egress.check(&destination).map_err(|error| SearchError::Denied { kind: KIND, message: denied(error) })?;
        let _hold = self.clock.hold();
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(SearchError::Cancelled),
            answer = self.fetch(url) => answer.map_err(|message| SearchError::Unavailable { kind: KIND, message })?,
        };
        self.read(&answer, query).map_err(|message| SearchError::Unavailable { kind: KIND, message })
    }

    async fn fetch(&self, url: Url) -> Result<Value, String> {
        let without_url = |error: reqwest::Error| error.without_url().to_string();
        let mut answer = self.client.get(url).headers(self.headers.clone()).send().await.map_err(without_url)?;
        if !answer.status().is_success() {
            return Err(format!("the provider answered with status {}", answer.status().as_u16()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(without_url)? {
            if body.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Err(format!("the provider's answer has more than {MAX_ANSWER_BYTES} bytes"));
            }
            body.extend_from_slice(&chunk);
        }
        serde_json::from_slice(&body).map_err(|error| format!("the provider's answer is no JSON: {error}"))
    }

    fn read(&self, answer: &Value, query: &SearchQuery) -> Result<SearchAnswer, String> {
        let WebConfig { results, title, link, content, .. } = &self.config;
        let list = answer.pointer(results).and_then(Value::as_array);
        let list = list.ok_or_else(|| format!("the provider's answer has no list at {results:?}: set `search.web.results`"))?;
        let text = |item: &Value, pointer: &str| item.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let hit = |item: &Value| SearchHit {
            score: item.get("score").and_then(Value::as_f64).filter(|score| (0.0..=1.0).contains(score)),
            title: text(item, title),
            content: text(item, content).unwrap_or_default(),
            url: text(item, link),
            ..SearchHit::default()
        };
        Ok(SearchAnswer { hits: list.iter().take(query.limit).map(hit).collect(), total: list.len() as u64 })
    }
}

/// The address of a question. Sites become words of it, as search engines take them.
fn address(config: &WebConfig, query: &SearchQuery) -> Result<Url, String> {
    let sites: Vec<String> = query.sites.iter().map(|site| format!("site:{site}")).collect();
    let words = match sites.len() {
        0 => query.query.clone(),
        1 => format!("{} {}", query.query, sites[0]),
        _ => format!("{} ({})", query.query, sites.join(" OR ")),
    };
    let escaped = |text: &str| -> String { form(text) };
    let filled = config
        .url
        .replace("{query}", &escaped(&words))
        .replace("{limit}", &query.limit.to_string())
        .replace("{time_range}", query.time_range.map_or("", TimeRange::name));
    Url::parse(&filled).map_err(|error| error.to_string())
}

/// A text as part of a query string.
fn form(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

#[expect(clippy::disallowed_methods, reason = "this driver makes the connections, after egress said yes")]
fn client() -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .timeout(ANSWER_LIMIT)
        .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
        .build()
}
