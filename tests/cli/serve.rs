//! `serve` over HTTP: clients of others, sessions, refusals, and an end that leaves nothing behind.
//!
//! Invariant: every port is free and chosen by the system. Deliberately no test of the transport's finer rules: the wire
//! crate has them.

use std::collections::BTreeSet;

use nix::sys::signal::Signal;
use reqwest::StatusCode;
use serde_json::{Value, json};
use test_case::test_case;

use crate::http::{Session, call_tool, client, initialize, post};
use crate::support::{
    Running, at, command_line, descendants, folder, gone, greenroom, program, root, stderr, stdout, tool, until,
};

const EXAMPLE: [&str; 5] = ["serve", "-c", "examples/greenroom.yaml", "--listen", "127.0.0.1:0"];
const SERVES: &str = "greenroom serves MCP at ";

fn greet(id: u32, who: &str) -> Value {
    call_tool(id, "chat-with-greeter", json!({"prompt": format!("Hi, I am {who}")}))
}

#[test]
fn the_inspector_lists_the_published_tools() {
    let mut server = Running::start(EXAMPLE);
    let url = server.line_after(SERVES);
    let inspector = tool("node/node_modules/.bin/mcp-inspector");
    let arguments = [&inspector, "--cli", &url, "--method", "tools/list"];
    let listed = program(&tool("node/node_modules/.bin/node"), arguments).success();
    let tools: Value = serde_json::from_str(&stdout(&listed)).unwrap();
    let names: Vec<&str> = tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for name in ["chat-with-greeter", "get_current_time"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
}

#[tokio::test]
async fn the_python_client_is_served_and_sigterm_ends_everything() {
    let mut server = Running::start(EXAMPLE);
    let url = server.line_after(SERVES);
    let served = program(&tool("python/bin/python"), ["examples/outside_client.py", &url]).success();
    assert!(stdout(&served).contains("agent, hook and external server answered"), "{}", stdout(&served));
    // That client's session has ended, and its servers with it: another one has its own.
    let session = Session::open(&url).await;
    session.request(&call_tool(2, "get_current_time", json!({"timezone": "UTC"}))).await;
    let children = descendants(server.pid());
    assert!(!children.is_empty(), "the time server runs");
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().await.code(), Some(0));
    gone(&children).await;
}

#[tokio::test]
async fn sigint_ends_it_while_a_client_waits_on_its_stream() {
    let mut server = Running::start(EXAMPLE);
    let url = server.line_after(SERVES);
    let session = Session::open(&url).await;
    let stream = client().get(&url).header("accept", "text/event-stream").header("mcp-session-id", &session.id);
    let stream = stream.send().await.unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    server.signal(Signal::SIGINT);
    assert_eq!(server.ended().await.code(), Some(0));
}

#[tokio::test]
async fn sessions_live_side_by_side_until_they_are_deleted() {
    let mut server = Running::start(EXAMPLE);
    let url = server.line_after(SERVES);
    let (one, two, three) = futures::join!(Session::open(&url), Session::open(&url), Session::open(&url));
    assert!(one.id != two.id && two.id != three.id && one.id != three.id);
    let (ada, bob, cy) = (greet(7, "Ada"), greet(7, "Bob"), greet(7, "Cy"));
    let (ada, bob, cy) = futures::join!(one.request(&ada), two.request(&bob), three.request(&cy));
    for (answer, greeting) in [(ada, "Hello, Ada!"), (bob, "Hello, Bob!"), (cy, "Hello, Cy!")] {
        assert_eq!(answer["result"]["structuredContent"]["greeting"], greeting);
    }
    assert!(one.delete().await.is_success());
    assert_eq!(one.send(&greet(8, "Ada")).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(two.request(&greet(8, "Bob")).await["result"]["structuredContent"]["greeting"], "Hello, Bob!");
}

#[tokio::test]
async fn what_is_refused() {
    let mut server = Running::start(EXAMPLE);
    let url = server.line_after(SERVES);
    let client = client();
    let status = async |request: reqwest::RequestBuilder| request.send().await.unwrap().status();
    let unknown = post(&client, &url, &greet(1, "Ada")).header("mcp-session-id", "no-such-session");
    assert_eq!(status(unknown).await, StatusCode::NOT_FOUND);
    let foreign = post(&client, &url, &initialize()).header("origin", "https://evil.example");
    assert_eq!(status(foreign).await, StatusCode::FORBIDDEN);
    let local = post(&client, &url, &initialize()).header("origin", "http://localhost:3000");
    assert_eq!(status(local).await, StatusCode::OK);
    let sessionless = post(&client, &url, &greet(1, "Ada"));
    assert_eq!(status(sessionless).await, StatusCode::BAD_REQUEST);
    let session = Session::open(&url).await;
    let misnamed = session.request(&call_tool(2, "chat-with-greter", json!({}))).await;
    let message = misnamed["error"]["message"].as_str().unwrap();
    assert!(message.contains("did you mean chat-with-greeter?"), "{message}");
}

#[test]
fn a_busy_port_is_named() {
    let mut server = Running::start(EXAMPLE);
    let url = server.line_after(SERVES);
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let refused = greenroom(["serve", "-c", "examples/greenroom.yaml", "--listen", address]).code(2);
    assert!(stderr(&refused).contains(&format!("cannot listen at {address}")), "{}", stderr(&refused));
    let files = folder(&[]);
    let cassette = at(&files, "s.cas");
    greenroom(["record", "-c", "examples/greenroom.yaml", "-o", &cassette, "--listen", address]).code(2);
    assert_eq!(std::fs::read_dir(files.path()).unwrap().count(), 0, "a recording that cannot start leaves no file");
}

/// The three public servers, all published.
fn three_servers() -> String {
    let (node, python) = ("node/node_modules/.bin", "python/bin");
    let everything = tool(&format!("{node}/mcp-server-everything"));
    let files = tool(&format!("{node}/mcp-server-filesystem"));
    let time = tool(&format!("{python}/mcp-server-time"));
    format!(
        "mcpServers:\n  everything: {{ command: {everything}, args: [stdio] }}\n  files: {{ command: {files}, args: ['.'] }}\n  \
         time: {{ command: {time}, args: [--local-timezone, UTC] }}\n\
         publish: {{ mcpServers: [everything, files, time] }}\n"
    )
}

#[tokio::test]
async fn no_server_survives_a_killed_host() {
    let files = folder(&[("greenroom.yaml", &three_servers())]);
    let mut server = Running::start(["serve", "-c", &at(&files, "greenroom.yaml"), "--listen", "127.0.0.1:0"]);
    let url = server.line_after(SERVES);
    let session = Session::open(&url).await;
    let tools = session.tools().await;
    for name in ["echo", "read_text_file", "convert_time"] {
        assert!(tools.iter().any(|tool| tool == name), "{name} in {tools:?}");
    }
    let children = descendants(server.pid());
    let lines: Vec<String> = children.iter().map(|pid| command_line(*pid)).collect();
    for name in ["mcp-server-everything", "mcp-server-filesystem", "mcp-server-time"] {
        assert!(lines.iter().any(|line| line.contains(name)), "{name} in {lines:?}");
    }
    server.signal(Signal::SIGKILL);
    assert_eq!(server.ended().await.code(), None);
    gone(&children).await;
}

/// A server that starts a child, and a grandchild that leaves the process group; with a mode of the fixture's.
fn family(mode: &str) -> String {
    let (python, server) = (tool("python/bin/python"), root().join("tests/fixtures/mcp_server.py"));
    format!("mcpServers:\n  shop: {{ command: {python}, args: [{}, {mode}] }}\n", server.display())
}

#[cfg(target_os = "linux")]
#[test_case("--willing"; "one that ends with its input")]
#[test_case("--stubborn"; "one that ignores the end of its input and SIGTERM")]
#[tokio::test]
async fn no_descendant_of_a_server_survives_a_killed_host(mode: &str) {
    let files = folder(&[("greenroom.yaml", &family(mode))]);
    let mut server = Running::start(["serve", "-c", &at(&files, "greenroom.yaml"), "--listen", "127.0.0.1:0"]);
    let url = server.line_after(SERVES);
    let session = Session::open(&url).await;
    let answer = session.request(&call_tool(2, "family", json!({}))).await;
    let pids = answer["result"]["structuredContent"].as_object().unwrap();
    let mut family: BTreeSet<i32> = pids.values().map(|pid| i32::try_from(pid.as_i64().unwrap()).unwrap()).collect();
    assert_eq!(family.len(), 3);
    family.extend(descendants(server.pid()));
    server.signal(Signal::SIGKILL);
    assert_eq!(server.ended().await.code(), None);
    gone(&family).await;
}

#[tokio::test]
async fn sigterm_ends_it_while_a_call_hangs() {
    let python = tool("python/bin/python");
    let config = format!("mcpServers:\n  shop: {{ command: {python}, args: [server.py] }}\n");
    let files = folder(&[("greenroom.yaml", &config), ("server.py", include_str!("fixtures/hanging_server.py"))]);
    let mut server = Running::start(["serve", "-c", &at(&files, "greenroom.yaml"), "--listen", "127.0.0.1:0"]);
    let url = server.line_after(SERVES);
    let session = Session::open(&url).await;
    assert_eq!(session.tools().await, ["echo", "hang"]);
    let hanging = tokio::spawn({
        let session = session.clone();
        async move { session.call(&call_tool(2, "hang", json!({}))).await }
    });
    let sign = files.path().join("hanging");
    until("the call at the server", || sign.exists().then_some(())).await;
    let children = descendants(server.pid());
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().await.code(), Some(0));
    gone(&children).await;
    drop(hanging.await.unwrap());
}
