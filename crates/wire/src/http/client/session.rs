//! A client's session: its headers, its two ends, its end.
//!
//! Invariant: the session id and the revision that the server named go with every later request. Closing cancels every
//! exchange and tells the server. Deliberately nothing survives the session.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use greenroom_boundary::CancellationToken;
use greenroom_boundary::clock::timeout_at;
use greenroom_boundary::mcp::{Frame, FrameSink, FrameSource, McpError};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Url};
use serde::Deserialize;
use tokio::sync::mpsc;

use super::HttpClientOptions;
use super::exchange::{self, Received};
use crate::http::{SESSION_HEADER, VERSION_HEADER};
use crate::{Message, RawJson, RequestId};

/// How long closing waits for the server to hear of it.
const GOODBYE: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(super) struct Agreed {
    pub(super) session_id: Option<HeaderValue>,
    pub(super) version: Option<HeaderValue>,
    /// Requests that wait for an answer, each with what ends its exchange when it is given up.
    pub(super) waiting: BTreeMap<RequestId, CancellationToken>,
}

pub(super) struct Session {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    pub(super) options: HttpClientOptions,
    agreed: Mutex<Agreed>,
    inbox: mpsc::Sender<Received>,
    pub(super) closing: CancellationToken,
}

impl Session {
    pub(super) fn new(
        client: reqwest::Client,
        options: HttpClientOptions,
        inbox: mpsc::Sender<Received>,
    ) -> Result<Self, McpError> {
        let unusable = |message: String| McpError::Unreachable { server: options.server.clone(), message };
        let url = Url::parse(&options.url).map_err(|error| unusable(format!("{:?} is no URL: {error}", options.url)))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &options.headers {
            let key = HeaderName::try_from(name).map_err(|_| unusable(format!("{name:?} is no header name")))?;
            let mut value =
                HeaderValue::try_from(value).map_err(|_| unusable(format!("header {name} has a value that cannot be sent")))?;
            value.set_sensitive(true);
            headers.insert(key, value);
        }
        let closing = CancellationToken::new();
        Ok(Self { client, url, headers, options, agreed: Mutex::default(), inbox, closing })
    }

    pub(super) fn agreed(&self) -> MutexGuard<'_, Agreed> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn call(&self, method: Method) -> RequestBuilder {
        let mut headers = self.headers.clone();
        let agreed = self.agreed();
        if let Some(id) = &agreed.session_id {
            headers.insert(SESSION_HEADER, id.clone());
        }
        if let Some(version) = &agreed.version {
            headers.insert(VERSION_HEADER, version.clone());
        }
        drop(agreed);
        self.client.request(method, self.url.clone()).headers(headers)
    }

    /// Passes something up; false when nobody reads any more.
    pub(super) async fn deliver(&self, received: Received) -> bool {
        tokio::select! {
            biased;
            () = self.closing.cancelled() => false,
            sent = self.inbox.send(received) => sent.is_ok(),
        }
    }

    pub(super) fn closed(&self, message: impl Into<String>) -> McpError {
        McpError::Closed { server: self.options.server.clone(), message: message.into() }
    }

    /// Remembers the revision that the answer to `initialize` names.
    pub(super) fn learn_version(&self, result: &RawJson) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Hello {
            protocol_version: String,
        }
        let hello = serde_json::from_str::<Hello>(result.get()).ok();
        let version = hello.and_then(|hello| HeaderValue::try_from(hello.protocol_version).ok());
        self.agreed().version = version;
    }
}

/// The writing half.
pub(super) struct HttpSink {
    session: Arc<Session>,
}

impl HttpSink {
    pub(super) fn new(session: Arc<Session>) -> Self {
        Self { session }
    }
}

#[async_trait]
impl FrameSink for HttpSink {
    async fn send(&mut self, frame: Frame) -> Result<(), McpError> {
        if self.session.closing.is_cancelled() {
            return Err(self.session.closed("the session has ended"));
        }
        match Message::parse(&frame) {
            Ok(Message::Request { id, method, .. }) => exchange::ask(&self.session, id, &method, frame).await,
            Ok(Message::Notification { method, params }) => {
                exchange::tell(&self.session, &method, params.as_deref(), frame).await
            }
            Ok(Message::Response { .. }) | Err(_) => exchange::tell(&self.session, "", None, frame).await,
        }
    }

    async fn close(&mut self) {
        if self.session.closing.is_cancelled() {
            return;
        }
        self.session.closing.cancel();
        if self.session.agreed().session_id.is_some() {
            let clock = &self.session.options.clock;
            let goodbye = Box::pin(self.session.call(Method::DELETE).send());
            // Whatever the server makes of it, the session is over here.
            let _ = timeout_at(clock.as_ref(), clock.now().after(GOODBYE), goodbye).await;
        }
    }
}

impl Drop for HttpSink {
    fn drop(&mut self) {
        self.session.closing.cancel();
    }
}

/// The reading half.
pub(super) struct HttpSource {
    received: mpsc::Receiver<Received>,
    closing: CancellationToken,
    lost_id: Option<String>,
}

impl HttpSource {
    pub(super) fn new(received: mpsc::Receiver<Received>, closing: CancellationToken) -> Self {
        Self { received, closing, lost_id: None }
    }
}

#[async_trait]
impl FrameSource for HttpSource {
    async fn next(&mut self) -> Option<Result<Frame, McpError>> {
        let received = tokio::select! {
            biased;
            received = self.received.recv() => received?,
            () = self.closing.cancelled() => return None,
        };
        self.lost_id = received.lost_id;
        Some(received.item)
    }

    fn lost_id(&self) -> Option<String> {
        self.lost_id.clone()
    }
}
