//! A bare MCP client over HTTP: it sends what a test tells it to, right or wrong.
//!
//! Invariant: every request has a deadline. Deliberately no state but the session's id.

use std::time::Duration;

use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};

/// Longest wait for an answer; the first call starts the servers.
const PATIENCE: Duration = Duration::from_secs(40);

pub(crate) fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }})
}

pub(crate) fn call_tool(id: u32, name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

/// A session with a host.
#[derive(Clone)]
pub(crate) struct Session {
    client: Client,
    url: String,
    pub(crate) id: String,
}

#[expect(clippy::disallowed_methods, reason = "an outside client")]
pub(crate) fn client() -> Client {
    Client::builder().timeout(PATIENCE).no_proxy().build().unwrap()
}

/// A POST as the transport demands it.
pub(crate) fn post(client: &Client, url: &str, message: &Value) -> RequestBuilder {
    client
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body(message.to_string())
}

impl Session {
    pub(crate) async fn open(url: &str) -> Self {
        Self::introduce(url, &initialize()).await
    }

    /// A session of a client that says this `initialize`.
    pub(crate) async fn introduce(url: &str, hello: &Value) -> Self {
        let client = client();
        let answer = post(&client, url, hello).send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let id = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
        let session = Self { client, url: url.to_owned(), id };
        let ready = session.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        assert_eq!(ready.status(), StatusCode::ACCEPTED);
        session
    }

    pub(crate) async fn send(&self, message: &Value) -> reqwest::Response {
        self.call(message).await.unwrap()
    }

    /// As `send`, for a host that may end meanwhile.
    pub(crate) async fn call(&self, message: &Value) -> reqwest::Result<reqwest::Response> {
        self.with_session(post(&self.client, &self.url, message)).send().await
    }

    /// The answer to a request, from JSON or from a stream of events.
    pub(crate) async fn request(&self, message: &Value) -> Value {
        let answer = self.send(message).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let text = answer.text().await.unwrap();
        let frames = text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line));
        let mut answers = frames.filter_map(|frame| serde_json::from_str::<Value>(frame).ok());
        answers.find(|frame| frame["id"] == message["id"]).unwrap_or_else(|| panic!("no answer in {text}"))
    }

    /// The published tools, in order.
    pub(crate) async fn tools(&self) -> Vec<String> {
        let answer = self.request(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
        let tools = answer["result"]["tools"].as_array().unwrap();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The client's own stream, which hears what belongs to none of its requests.
    pub(crate) async fn listen(&self) -> reqwest::Response {
        let get = self.client.get(&self.url).header("accept", "text/event-stream");
        let stream = self.with_session(get).send().await.unwrap();
        assert_eq!(stream.status(), StatusCode::OK);
        stream
    }

    pub(crate) async fn delete(&self) -> StatusCode {
        self.with_session(self.client.delete(&self.url)).send().await.unwrap().status()
    }

    fn with_session(&self, request: RequestBuilder) -> RequestBuilder {
        request.header("mcp-session-id", &self.id).header("mcp-protocol-version", "2025-11-25")
    }
}
