//! What any connector to an MCP server must do.
//!
//! Invariant: only frames are looked at, as bytes and as JSON; which server answers is the arm's business. Deliberately
//! nothing about the protocol beyond what the reference server below needs.
//!
//! Both arms connect to the **reference server**. It speaks 2025-11-25 and has these tools: `echo` answers
//! `structuredContent: { text }` with the `text` it was given; `steps` sends three progress notifications (1, 2, 3) and
//! then answers; `crash` ends the server without an answer.

use serde_json::{Value, json};

use crate::mcp::{Frame, FrameDuplex, McpError, McpTarget};
use crate::{CancellationToken, McpConnector};

/// Text whose characters take one to four bytes, with one that JavaScript takes for a line end.
pub const TEXT: &str = "é 漢 🧪 \u{2028} end";

/// Runs the whole suite. `reference` reaches the reference server, `absent` a server that does not exist.
pub async fn all(connector: &dyn McpConnector, reference: &McpTarget, absent: &McpTarget) {
    a_handshake_is_answered(connector, reference).await;
    an_answer_carries_the_requests_id(connector, reference).await;
    text_passes_unchanged(connector, reference).await;
    frames_keep_their_order(connector, reference).await;
    requests_may_be_pipelined(connector, reference).await;
    connections_are_independent(connector, reference).await;
    closing_ends_both_directions(connector, reference).await;
    a_crash_is_an_error_and_the_next_connection_works(connector, reference).await;
    an_absent_server_is_refused(connector, absent).await;
    a_cancelled_open_is_refused(connector, reference).await;
}

async fn open(connector: &dyn McpConnector, target: &McpTarget) -> FrameDuplex {
    connector.open(target, &CancellationToken::new()).await.expect("the reference server must be reachable")
}

async fn send(connection: &mut FrameDuplex, message: &Value) {
    connection.sink.ready().await.expect("an open connection is ready");
    connection.sink.send(Frame::from(message.to_string())).await.expect("an open connection takes frames");
}

async fn receive(connection: &mut FrameDuplex) -> Value {
    let frame = connection.source.next().await.expect("a frame, not the end").expect("a frame, not an error");
    serde_json::from_slice(&frame.0).expect("a frame is JSON")
}

fn call(id: Value, tool: &str, arguments: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}

/// Opens a connection and does the handshake.
pub async fn connect(connector: &dyn McpConnector, target: &McpTarget) -> FrameDuplex {
    let mut connection = open(connector, target).await;
    let params = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "conformance", "version": "1" }
    });
    send(&mut connection, &json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params })).await;
    let answer = receive(&mut connection).await;
    assert_eq!(answer["id"], json!(0), "{answer}");
    assert_eq!(answer["result"]["protocolVersion"], json!("2025-11-25"), "{answer}");
    assert!(answer["result"]["capabilities"]["tools"].is_object(), "{answer}");
    send(&mut connection, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    connection
}

/// `initialize` gets its answer, and a second connection does too.
pub async fn a_handshake_is_answered(connector: &dyn McpConnector, reference: &McpTarget) {
    let mut connection = connect(connector, reference).await;
    connection.sink.close().await;
}

/// Ids of both JSON types come back as they were sent.
pub async fn an_answer_carries_the_requests_id(connector: &dyn McpConnector, reference: &McpTarget) {
    let mut connection = connect(connector, reference).await;
    for id in [json!(7), json!("seven"), json!("7")] {
        send(&mut connection, &json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).await;
        let answer = receive(&mut connection).await;
        assert_eq!((&answer["id"], &answer["result"]), (&id, &json!({})));
    }
    connection.sink.close().await;
}

/// No character is lost on the way, in either direction.
pub async fn text_passes_unchanged(connector: &dyn McpConnector, reference: &McpTarget) {
    let mut connection = connect(connector, reference).await;
    send(&mut connection, &call(json!(1), "echo", json!({ "text": TEXT }))).await;
    let answer = receive(&mut connection).await;
    assert_eq!(answer["result"]["structuredContent"]["text"], json!(TEXT), "{answer}");
    connection.sink.close().await;
}

/// What the server sends in one order arrives in that order.
pub async fn frames_keep_their_order(connector: &dyn McpConnector, reference: &McpTarget) {
    let mut connection = connect(connector, reference).await;
    let mut request = call(json!(1), "steps", json!({}));
    request["params"]["_meta"] = json!({ "progressToken": "p" });
    send(&mut connection, &request).await;
    for step in 1..=3 {
        let notification = receive(&mut connection).await;
        assert_eq!(notification["method"], json!("notifications/progress"), "{notification}");
        assert_eq!(notification["params"]["progressToken"], json!("p"), "{notification}");
        assert_eq!(notification["params"]["progress"], json!(step), "{notification}");
    }
    assert_eq!(receive(&mut connection).await["id"], json!(1));
    connection.sink.close().await;
}

/// A second request may be sent before the first is answered.
pub async fn requests_may_be_pipelined(connector: &dyn McpConnector, reference: &McpTarget) {
    let mut connection = connect(connector, reference).await;
    send(&mut connection, &call(json!("a"), "echo", json!({ "text": "first" }))).await;
    send(&mut connection, &call(json!("b"), "echo", json!({ "text": "second" }))).await;
    let mut answers = [receive(&mut connection).await, receive(&mut connection).await];
    answers.sort_by_key(|answer| answer["id"].to_string());
    let texts = answers.map(|answer| answer["result"]["structuredContent"]["text"].clone());
    assert_eq!(texts, [json!("first"), json!("second")]);
    connection.sink.close().await;
}

/// Two connections to one server do not see each other's messages.
pub async fn connections_are_independent(connector: &dyn McpConnector, reference: &McpTarget) {
    let mut left = connect(connector, reference).await;
    let mut right = connect(connector, reference).await;
    send(&mut left, &call(json!(1), "echo", json!({ "text": "left" }))).await;
    send(&mut right, &call(json!(1), "echo", json!({ "text": "right" }))).await;
    for (connection, text) in [(&mut right, "right"), (&mut left, "left")] {
        assert_eq!(receive(connection).await["result"]["structuredContent"]["text"], json!(text));
        connection.sink.close().await;
    }
}

/// After `close` the source ends cleanly, `close` may be repeated, and sending fails.
pub async fn closing_ends_both_directions(connector: &dyn McpConnector, reference: &McpTarget) {
    let mut connection = connect(connector, reference).await;
    connection.sink.close().await;
    connection.sink.close().await;
    assert!(connection.source.next().await.is_none(), "a connection that the host closed ends without an error");
    assert!(connection.source.next().await.is_none());
    let sent = connection.sink.send(Frame::from(json!({ "jsonrpc": "2.0", "method": "x" }).to_string())).await;
    assert_eq!(sent.map_err(|error| error.code()), Err("MCP_CLOSED"));
}

/// A server that ends by itself is an error, said once; then the same target can be opened again.
pub async fn a_crash_is_an_error_and_the_next_connection_works(connector: &dyn McpConnector, reference: &McpTarget) {
    let mut connection = connect(connector, reference).await;
    send(&mut connection, &call(json!(1), "crash", json!({}))).await;
    let end = connection.source.next().await.expect("an error, not a clean end");
    assert!(matches!(end, Err(McpError::Closed { .. })), "{end:?}");
    assert!(connection.source.next().await.is_none());
    drop(connection);
    connect(connector, reference).await.sink.close().await;
}

/// A server that does not exist is an error of `open` that names the server.
pub async fn an_absent_server_is_refused(connector: &dyn McpConnector, absent: &McpTarget) {
    let error = connector.open(absent, &CancellationToken::new()).await.expect_err("there is no such server");
    assert!(["MCP_UNREACHABLE", "MCP_DENIED"].contains(&error.code()), "{error}");
    assert!(error.to_string().contains(absent.server.as_str()), "{error}");
}

/// A cancelled token opens nothing.
pub async fn a_cancelled_open_is_refused(connector: &dyn McpConnector, reference: &McpTarget) {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let error = connector.open(reference, &cancel).await.expect_err("the token is cancelled");
    assert_eq!(error.code(), "MCP_CANCELLED");
}
