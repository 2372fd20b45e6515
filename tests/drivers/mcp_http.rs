//! MCP over HTTP: the real client against a real endpoint, behind which a scripted server stands.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use greenroom::drivers::mcp::RealMcp;
use greenroom::drivers::sandbox::ChildEnvironment;
use greenroom::drivers::{EgressPolicy, SystemClock};
use greenroom_boundary::conformance::mcp::{self as suite, TEXT};
use greenroom_boundary::mcp::{Frame, FrameDuplex, FrameSink, FrameSource, McpTarget, ServerAddress};
use greenroom_boundary::{CancellationToken, Clock, Credentials, McpConnector, ServerName};
use greenroom_mocks::mcp::ScriptedMcp;
use greenroom_mocks::{SeededEntropy, VirtualClock};
use greenroom_wire::http::server::{Acceptor, Refusal, ServerOptions, SessionInfo, mcp_router};
use serde_json::{Value, json};

/// Joins each HTTP session with a connection of its own to the scripted server.
struct Joined(ScriptedMcp);

#[async_trait]
impl Acceptor for Joined {
    async fn accept(&self, _: SessionInfo, client: FrameDuplex) -> Result<(), Refusal> {
        let target = McpTarget { server: ServerName::from("reference"), address: ServerAddress::Simulated };
        let server = self.0.open(&target, &CancellationToken::new()).await.unwrap();
        tokio::spawn(pump(client.source, server.sink));
        tokio::spawn(pump(server.source, client.sink));
        Ok(())
    }
}

async fn pump(mut from: Box<dyn FrameSource>, mut to: Box<dyn FrameSink>) {
    while let Some(Ok(frame)) = from.next().await {
        if to.send(frame).await.is_err() {
            break;
        }
    }
    to.close().await;
}

/// Serves the reference server and returns where.
#[expect(clippy::disallowed_methods, reason = "this test is the server")]
async fn serve() -> String {
    let echo = |text: &str| {
        let when = json!({ "tool": "echo", "arguments": { "text": text } });
        json!({ "when": when, "result": { "structuredContent": { "text": text } } })
    };
    let mut calls: Vec<_> = [TEXT, "first", "second", "left", "right"].into_iter().map(echo).collect();
    let progress = json!([{ "progress": 1 }, { "progress": 2 }, { "progress": 3 }]);
    calls.push(json!({ "when": { "tool": "steps" }, "progress": progress, "result": {} }));
    let script = serde_json::from_value(json!({ "calls": calls })).unwrap();
    let scripted = ScriptedMcp::new(script, Arc::new(SystemClock::new()));
    let options = ServerOptions::new(Arc::new(SeededEntropy::new(1)));
    let (router, _) = mcp_router("/mcp", Arc::new(Joined(scripted)), options);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://127.0.0.1:{port}/mcp")
}

fn connector() -> RealMcp {
    let egress = EgressPolicy::parse(["127.0.0.1"]).unwrap();
    RealMcp::new(Arc::new(SystemClock::new()), Arc::new(egress), Credentials::default(), ChildEnvironment::default())
}

fn target(url: &str) -> McpTarget {
    let address = ServerAddress::Http { url: url.to_owned(), headers: BTreeMap::new() };
    McpTarget { server: ServerName::from("reference"), address }
}

/// A crash is no case here: over HTTP each request fails on its own, and the session goes on.
#[tokio::test]
async fn conforms() {
    let (connector, target) = (connector(), target(&serve().await));
    suite::a_handshake_is_answered(&connector, &target).await;
    suite::an_answer_carries_the_requests_id(&connector, &target).await;
    suite::text_passes_unchanged(&connector, &target).await;
    suite::frames_keep_their_order(&connector, &target).await;
    suite::requests_may_be_pipelined(&connector, &target).await;
    suite::connections_are_independent(&connector, &target).await;
    suite::closing_ends_both_directions(&connector, &target).await;
    suite::a_cancelled_open_is_refused(&connector, &target).await;
}

#[tokio::test]
async fn a_virtual_clock_is_held_exactly_while_an_answer_is_owed() {
    let held = VirtualClock::new(SystemClock::new().wall(), 0);
    let connector = connector().holding(Arc::new(held.clone()));
    let mut connection = suite::connect(&connector, &target(&serve().await)).await;
    assert_eq!(held.holds(), 0);
    let ping = json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" });
    connection.sink.send(Frame::from(ping.to_string())).await.unwrap();
    assert_eq!(held.holds(), 1);
    let answer: Value = serde_json::from_slice(&connection.source.next().await.unwrap().unwrap().0).unwrap();
    assert_eq!((answer["id"].clone(), held.holds()), (json!("p"), 0));
    connection.sink.close().await;
    assert_eq!(held.holds(), 0);
}
