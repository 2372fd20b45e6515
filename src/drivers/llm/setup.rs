//! Setting an endpoint up: its address, its headers, its HTTP client.
//!
//! Invariant: what cannot be sent is refused here, before any request, and no value of a header is shown. Deliberately no
//! connection.

use std::collections::BTreeMap;

use reqwest::Url;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

/// A provider that cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LlmSetupError {
    /// The address is unusable.
    #[error("llmProviders.{connector}.baseURL: `{url}` is no http(s) address: {reason}")]
    BaseUrl {
        /// The provider.
        connector: String,
        /// What was written.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A header or the key cannot be sent.
    #[error("llmProviders.{connector}: the {header} header holds characters that HTTP does not allow")]
    Header {
        /// The provider.
        connector: String,
        /// The header, without its value.
        header: String,
    },
    /// A dialect that this version does not speak.
    #[error(
        "llmProviders.{connector}.dialect: {said}; this version speaks `OpenAIChatCompletions`, which most providers offer"
    )]
    Dialect {
        /// The provider.
        connector: String,
        /// What was written.
        said: String,
    },
    /// The TLS library could not start.
    #[error("llmProviders.{connector}: cannot set HTTP up: {reason}")]
    Http {
        /// The provider.
        connector: String,
        /// What happened.
        reason: String,
    },
}

impl LlmSetupError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::BaseUrl { .. } => "LLM_BASE_URL",
            Self::Header { .. } => "LLM_HEADER",
            Self::Dialect { .. } => "LLM_DIALECT",
            Self::Http { .. } => "LLM_HTTP_SETUP",
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this driver makes the connections, after egress said yes")]
pub(super) fn http_client() -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
        .build()
}

pub(super) fn endpoint_url(connector: &str, base_url: &str, path: &str) -> Result<Url, LlmSetupError> {
    let invalid = |reason: String| LlmSetupError::BaseUrl {
        connector: connector.to_owned(),
        url: base_url.split('?').next().unwrap_or_default().to_owned(),
        reason,
    };
    let mut url = Url::parse(base_url).map_err(|error| invalid(error.to_string()))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(invalid("it must start with http:// or https://".to_owned()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(invalid("put the key into `apiKey`, not into the address".to_owned()));
    }
    let joined = format!("{}/{path}", url.path().trim_end_matches('/'));
    url.set_path(&joined);
    Ok(url)
}

pub(super) fn header_map(
    connector: &str,
    api_key: Option<&str>,
    headers: &BTreeMap<String, String>,
) -> Result<HeaderMap, LlmSetupError> {
    let invalid = |header: &str| LlmSetupError::Header { connector: connector.to_owned(), header: header.to_owned() };
    let value = |name: &str, text: &str| {
        let mut value = HeaderValue::from_str(text).map_err(|_| invalid(name))?;
        value.set_sensitive(true);
        Ok(value)
    };
    let mut map = HeaderMap::new();
    map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    map.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if let Some(key) = api_key {
        map.insert(AUTHORIZATION, value("Authorization", &format!("Bearer {key}"))?);
    }
    for (name, text) in headers {
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid(name))?;
        map.insert(parsed, value(name, text)?);
    }
    Ok(map)
}

pub(crate) fn names_a_secret(header: &str) -> bool {
    let name = header.to_ascii_lowercase();
    ["authorization", "key", "token", "secret", "cookie"].iter().any(|word| name.contains(word))
}
