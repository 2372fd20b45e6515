//! A server on Streamable HTTP.
//!
//! Invariant: egress is asked before the client that could connect exists; redirects are not followed, as nobody asked
//! for their goal. Deliberately no protocol here: the wire crate speaks it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use greenroom_boundary::egress::Destination;
use greenroom_boundary::mcp::{Frame, FrameDuplex, FrameSink, FrameSource, McpError};
use greenroom_wire::http::client::{HttpClientOptions, duplex};

use super::connector::RealMcp;
use super::exchange::Exchanges;

/// Prepares a connection; the first frame opens it.
pub(super) fn open(
    settings: &RealMcp,
    server: &str,
    url: &str,
    headers: &BTreeMap<String, String>,
) -> Result<FrameDuplex, McpError> {
    let unreachable = |message: String| McpError::Unreachable { server: server.to_owned(), message };
    let destination = destination(server, url).map_err(unreachable)?;
    settings
        .egress
        .check(&destination)
        .map_err(|denied| McpError::Denied { server: server.to_owned(), message: denied.to_string() })?;
    let client = client().map_err(|error| unreachable(format!("no HTTP client: {error}")))?;
    let options = HttpClientOptions {
        server: server.to_owned(),
        url: url.to_owned(),
        headers: headers.clone(),
        limit_bytes: settings.limits.frame_bytes,
        clock: settings.clock.clone(),
    };
    let inner = duplex(client, options)?;
    let exchanges = Exchanges::new(settings.held.clone());
    Ok(FrameDuplex {
        sink: Box::new(HoldingSink { inner: inner.sink, exchanges: exchanges.clone() }),
        source: Box::new(HoldingSource { inner: inner.source, exchanges }),
    })
}

fn destination(server: &str, url: &str) -> Result<Destination, String> {
    let url = reqwest::Url::parse(url).map_err(|error| format!("`{url}` is no address: {error}"))?;
    if !["http", "https"].contains(&url.scheme()) {
        return Err(format!("`{url}` must start with http:// or https://"));
    }
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']').to_owned();
    let port = url.port_or_known_default().unwrap_or_default();
    Ok(Destination { host, port, purpose: format!("mcp.{server}") })
}

#[expect(clippy::disallowed_methods, reason = "this driver makes the connections, after egress said yes")]
fn client() -> reqwest::Result<reqwest::Client> {
    // A proxy would be another destination than the one that egress was asked about.
    reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build()
}

/// Passes frames on and holds the host's clock while a request waits for its answer.
struct HoldingSink {
    inner: Box<dyn FrameSink>,
    exchanges: Exchanges,
}

#[async_trait]
impl FrameSink for HoldingSink {
    async fn ready(&mut self) -> Result<(), McpError> {
        self.inner.ready().await
    }

    async fn send(&mut self, frame: Frame) -> Result<(), McpError> {
        self.exchanges.sent(&frame);
        let sent = self.inner.send(frame).await;
        if sent.is_err() {
            self.exchanges.end();
        }
        sent
    }

    async fn close(&mut self) {
        self.exchanges.end();
        let _hold = self.exchanges.hold();
        self.inner.close().await;
    }
}

impl Drop for HoldingSink {
    fn drop(&mut self) {
        self.exchanges.end();
    }
}

struct HoldingSource {
    inner: Box<dyn FrameSource>,
    exchanges: Exchanges,
}

#[async_trait]
impl FrameSource for HoldingSource {
    async fn next(&mut self) -> Option<Result<Frame, McpError>> {
        let item = self.inner.next().await;
        match &item {
            Some(Ok(frame)) => self.exchanges.received(frame),
            Some(Err(McpError::TooLarge { .. })) => {
                if let Some(id) = self.inner.lost_id() {
                    self.exchanges.answered(&id);
                }
            }
            Some(Err(_)) | None => self.exchanges.end(),
        }
        item
    }

    fn lost_id(&self) -> Option<String> {
        self.inner.lost_id()
    }
}
