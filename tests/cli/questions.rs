//! Questions of a real server on their way through `serve` to a client, on both transports.
//!
//! Invariant: the server and the host are programs of their own. Deliberately no policies: scenarios have those.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};
use tempfile::TempDir;
use test_case::test_case;

use crate::http::{Session, call_tool, initialize};
use crate::support::{Running, at, folder, tool};

/// The public test server, which asks its client things.
pub(crate) fn everything() -> TempDir {
    let server = tool("node/node_modules/.bin/mcp-server-everything");
    folder(&[("greenroom.yaml", &format!("mcpServers:\n  everything: {{ command: {server}, args: [stdio] }}\n"))])
}

pub(crate) fn able_client() -> Value {
    let mut hello = initialize();
    hello["params"]["capabilities"] = json!({"sampling": {}, "elicitation": {"form": {}}, "roots": {}});
    hello
}

/// The client's answer to what the host asks; `None` for anything else.
fn answer(frame: &Value) -> Option<Value> {
    let result = match frame["method"].as_str()? {
        "sampling/createMessage" => {
            let asked = frame["params"]["messages"][0]["content"]["text"].as_str().unwrap();
            assert!(asked.contains("two words"), "{frame}");
            json!({"role": "assistant", "content": {"type": "text", "text": "good day"}, "model": "theirs"})
        }
        "elicitation/create" => json!({"action": "decline"}),
        "roots/list" => json!({"roots": [{"uri": "file:///projects/ada", "name": "Home"}]}),
        _ => return None,
    };
    Some(json!({"jsonrpc": "2.0", "id": frame["id"], "result": result}))
}

pub(crate) const SAMPLING: &str = "trigger-sampling-request";

#[test_case(SAMPLING, json!({"prompt": "two words"}), "good day"; "a sample")]
#[test_case("trigger-elicitation-request", json!({}), "declined"; "a form")]
#[test_case("get-roots-list", json!({}), "file:///projects/ada"; "roots")]
#[tokio::test]
async fn a_client_on_stdio_is_asked(name: &str, arguments: Value, expected: &str) {
    let files = everything();
    let mut server = Running::start(["serve", "-c", &at(&files, "greenroom.yaml"), "--stdio"]);
    let mut input = server.child.stdin.take().unwrap();
    let mut output = BufReader::new(server.child.stdout.take().unwrap()).lines();
    writeln!(input, "{}", able_client()).unwrap();
    // Until it is answered the host does not know what the client can do, and so the server may not either.
    let hello: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
    assert!(hello["result"]["protocolVersion"].is_string(), "{hello}");
    for message in [json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), call_tool(7, name, arguments)] {
        writeln!(input, "{message}").unwrap();
    }
    let mut asked = 0;
    for line in output {
        let frame: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if let Some(answer) = answer(&frame) {
            asked += 1;
            writeln!(input, "{answer}").unwrap();
        } else if frame["id"] == 7 && frame.get("method").is_none() {
            assert!(frame["result"].to_string().contains(expected), "{frame}");
            break;
        }
    }
    assert!(asked > 0);
    drop(input);
    assert_eq!(server.ended().await.code(), Some(0));
}

#[tokio::test]
async fn a_client_on_http_is_asked_on_the_stream_of_its_call() {
    let files = everything();
    let mut server = Running::start(["serve", "-c", &at(&files, "greenroom.yaml"), "--listen", "127.0.0.1:0"]);
    let url = server.line_after("greenroom serves MCP at ");
    let session = Session::introduce(&url, &able_client()).await;
    assert!(session.tools().await.iter().any(|tool| tool == SAMPLING));
    // Nobody answers on this one: a question without a known cause would go there.
    let unheard = session.listen().await;
    let text = converse(&session, &call_tool(7, SAMPLING, json!({"prompt": "two words"}))).await;
    assert!(text.contains("good day"), "{text}");
    drop(unheard);
    let plain = Session::open(&url).await;
    assert!(!plain.tools().await.iter().any(|tool| tool == SAMPLING), "what a client cannot do its servers are not offered");
    assert!(session.delete().await.is_success());
}

/// Sends a request and answers what its stream asks, until it ends; the whole stream.
pub(crate) async fn converse(session: &Session, request: &Value) -> String {
    let mut stream = session.send(request).await;
    let (mut text, mut seen) = (String::new(), 0);
    while let Some(chunk) = stream.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
        let frames: Vec<Value> = text.split("\n\n").filter_map(frame).collect();
        for frame in &frames[seen..] {
            if let Some(answer) = answer(frame) {
                assert_eq!(session.send(&answer).await.status(), 202);
            }
        }
        seen = frames.len();
    }
    text
}

/// The message of a whole event.
fn frame(event: &str) -> Option<Value> {
    event.lines().find_map(|line| serde_json::from_str(line.strip_prefix("data:")?).ok())
}
