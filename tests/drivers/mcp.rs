//! Real MCP servers: the conformance suite's real arm, what only real processes can show, and real servers of others.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use greenroom::drivers::SystemClock;
use greenroom::drivers::mcp::{RealMcp, RealMcpLimits};
use greenroom::drivers::sandbox::ChildEnvironment;
use greenroom_boundary::clock::UnixNanos;
use greenroom_boundary::conformance;
use greenroom_boundary::conformance::mcp::connect;
use greenroom_boundary::egress::DenyAll;
use greenroom_boundary::mcp::{Frame, FrameDuplex, McpError, McpTarget, ServerAddress};
use greenroom_boundary::{CancellationToken, Credentials, McpConnector, ServerName};
use greenroom_mocks::VirtualClock;
use greenroom_wire::{IncomingRequest, Peer, PeerHandler, PeerOptions, RawJson, RequestOptions, RpcError};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use test_case::test_case;

use crate::processes::gone;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn connector() -> RealMcp {
    RealMcp::new(Arc::new(SystemClock::new()), Arc::new(DenyAll), Credentials::default(), ChildEnvironment::of_this_process())
}

pub(crate) fn process(server: &str, command: &str, args: &[&str]) -> McpTarget {
    let address = ServerAddress::Process {
        command: command.to_owned(),
        args: args.iter().map(|&arg| arg.to_owned()).collect(),
        env: BTreeMap::new(),
        workdir: None,
    };
    McpTarget { server: ServerName::from(server), address }
}

/// The small server of `tests/fixtures`.
pub(crate) fn reference(modes: &[&str]) -> McpTarget {
    let program = root().join("tests/fixtures/mcp_server.py");
    let mut args = vec![program.to_str().unwrap()];
    args.extend(modes);
    process("reference", &installed("python/bin/python3"), &args)
}

pub(crate) async fn call(connection: &mut FrameDuplex, id: u32, tool: &str, arguments: Value) {
    let params = json!({ "name": tool, "arguments": arguments });
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    connection.sink.send(Frame::from(message.to_string())).await.unwrap();
}

pub(crate) async fn answer(connection: &mut FrameDuplex) -> Value {
    let frame = connection.source.next().await.unwrap().unwrap();
    serde_json::from_slice(&frame.0).unwrap()
}

pub(crate) async fn result(connection: &mut FrameDuplex, tool: &str, arguments: Value) -> Value {
    call(connection, 1, tool, arguments).await;
    answer(connection).await["result"]["structuredContent"].clone()
}

pub(crate) async fn open(connector: &RealMcp, target: &McpTarget) -> FrameDuplex {
    connector.open(target, &CancellationToken::new()).await.unwrap()
}

/// The error that ends a connection.
pub(crate) async fn end(connection: &mut FrameDuplex) -> McpError {
    loop {
        match connection.source.next().await.unwrap() {
            Ok(_) => {}
            Err(error) => return error,
        }
    }
}

#[tokio::test]
async fn conforms() {
    conform(&connector()).await;
}

pub(crate) async fn conform(connector: &RealMcp) {
    let absent = process("absent", "greenroom-no-such-program", &[]);
    conformance::mcp::all(connector, &reference(&[]), &absent).await;
}

#[tokio::test]
async fn a_server_gets_its_own_environment_and_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut target = reference(&[]);
    let ServerAddress::Process { env, workdir, .. } = &mut target.address else { unreachable!() };
    env.insert("GIVEN".to_owned(), "yes".to_owned());
    *workdir = Some(folder.path().to_str().unwrap().to_owned());
    let mut connection = connect(&connector(), &target).await;
    let environment = result(&mut connection, "environment", json!({})).await;
    let allowed = ["PATH", "HOME", "USER", "GIVEN", "LC_CTYPE"];
    let names: Vec<_> = environment.as_object().unwrap().keys().collect();
    // Python sets LC_CTYPE for itself.
    assert!(names.iter().all(|name| allowed.contains(&name.as_str())), "{names:?}");
    assert_eq!(environment["GIVEN"], json!("yes"));
    let path = result(&mut connection, "folder", json!({})).await["path"].clone();
    assert_eq!(path, json!(folder.path().canonicalize().unwrap()));
    connection.sink.close().await;
}

/// C11: whatever a server writes to stderr, it never waits for a reader.
#[tokio::test]
async fn a_chatty_server_is_never_blocked_by_its_stderr() {
    let mut connection = connect(&connector(), &reference(&["--noisy-start"])).await;
    for _ in 0..3 {
        assert_eq!(result(&mut connection, "chatty", json!({})).await, json!({}));
    }
    connection.sink.close().await;
}

#[tokio::test]
async fn the_last_words_of_a_server_are_told_without_its_secrets() {
    let credentials = Credentials::default();
    credentials.register("mcp.reference/API_KEY", "sk-canary-0001");
    let connector =
        RealMcp::new(Arc::new(SystemClock::new()), Arc::new(DenyAll), credentials, ChildEnvironment::of_this_process());
    let mut connection = open(&connector, &reference(&["--die", "key sk-canary-0001 is not valid"])).await;
    let error = end(&mut connection).await;
    insta::assert_snapshot!(error.to_string(), @r"
    server reference closed the connection: it exited with status 3; the last lines of its stderr:
    starting
    key «secret:mcp.reference/API_KEY» is not valid
    ");
    let sent = connection.sink.send(Frame::from("{}".to_owned())).await.unwrap_err();
    assert_eq!(sent, error, "a failed write says how the process ended, too");
}

/// C13: both directions go on by themselves, so that full pipes cannot stop each other.
#[tokio::test]
async fn large_requests_pass_a_server_that_reads_slowly_and_writes_much() {
    let connector = connector();
    let mut connection = open(&connector, &reference(&["--slow-reader"])).await;
    let text = "é漢🧪x".repeat(840_000);
    let FrameDuplex { sink, source } = &mut connection;
    let params = json!({ "name": "digest", "arguments": { "text": text } });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let reading = async {
        let mut notifications = 0;
        loop {
            let frame = source.next().await.unwrap().unwrap();
            let message: Value = serde_json::from_slice(&frame.0).unwrap();
            if message["id"] == json!(1) {
                break (notifications, message["result"]["structuredContent"].clone());
            }
            notifications += 1;
        }
    };
    let (sent, (notifications, digest)) = tokio::join!(sink.send(Frame::from(request.to_string())), reading);
    sent.unwrap();
    assert_eq!(notifications, 64);
    let expected = hex::encode(Sha256::digest(text.as_bytes()));
    assert_eq!(digest, json!({ "bytes": text.len(), "sha256": expected }));
    connection.sink.close().await;
}

#[test_case(1 << 10)]
#[test_case(8 << 10)]
#[test_case(200 << 10)]
#[tokio::test]
async fn requests_of_any_size_arrive_whole(bytes: usize) {
    let mut connection = connect(&connector(), &reference(&[])).await;
    let text = "x".repeat(bytes);
    let digest = result(&mut connection, "digest", json!({ "text": text })).await;
    assert_eq!(digest["sha256"], json!(hex::encode(Sha256::digest(text.as_bytes()))));
    connection.sink.close().await;
}

#[tokio::test]
async fn results_of_any_size_arrive_whole_and_one_beyond_the_limit_fails_alone() {
    let limits = RealMcpLimits { frame_bytes: 5 << 20, ..RealMcpLimits::default() };
    let mut connection = connect(&connector().limits(limits), &reference(&[])).await;
    // Around the pipe's and the reader's buffers: a line's end and a character of four bytes meet every border.
    let around = |border: usize| (border - 120..border + 8).step_by(1);
    for bytes in [60 << 10, 66 << 10, 4 << 20].into_iter().chain(around(1 << 16)) {
        let text = result(&mut connection, "blob", json!({ "bytes": bytes })).await["text"].clone();
        let text = text.as_str().unwrap();
        assert!(text.len() == bytes && text.ends_with("a🧪"), "{bytes} bytes");
    }
    call(&mut connection, 7, "blob", json!({ "bytes": 6 << 20 })).await;
    let error = connection.source.next().await.unwrap().unwrap_err();
    assert_eq!(error, McpError::TooLarge { server: "reference".to_owned(), limit_bytes: 5 << 20 });
    assert_eq!(connection.source.lost_id().as_deref(), Some("7"));
    assert_eq!(result(&mut connection, "echo", json!({ "text": "on" })).await, json!({ "text": "on" }));
    connection.sink.close().await;
}

#[tokio::test]
async fn calls_side_by_side_never_mix_their_bytes() {
    struct Silent;

    #[async_trait]
    impl PeerHandler for Silent {
        async fn request(&self, request: IncomingRequest) -> Result<RawJson, RpcError> {
            Err(RpcError::method_not_found(&request.method))
        }
    }

    let options = PeerOptions { clock: Arc::new(SystemClock::new()), name: "reference".to_owned() };
    let peer = Peer::start(open(&connector(), &reference(&[])).await, Arc::new(Silent), options);
    let calls = (0..8).map(|number| {
        let peer = peer.clone();
        async move {
            let text = format!("{number}é").repeat(100_000);
            let params = json!({ "name": "digest", "arguments": { "text": text } });
            let params = serde_json::value::to_raw_value(&params).unwrap();
            let answer = peer.request("tools/call", Some(params), RequestOptions::default()).await.unwrap();
            let answer: Value = serde_json::from_str(answer.get()).unwrap();
            let expected = json!({ "bytes": text.len(), "sha256": hex::encode(Sha256::digest(text.as_bytes())) });
            assert_eq!(answer["structuredContent"], expected, "call {number}");
        }
    });
    futures::future::join_all(calls).await;
    peer.close().await;
}

#[derive(Clone, Copy)]
enum Ending {
    Close,
    Drop,
    Crash,
}

#[test_case(Ending::Close; "when it is closed")]
#[test_case(Ending::Drop; "when it is dropped")]
#[test_case(Ending::Crash; "when the server crashes")]
#[tokio::test]
async fn nothing_of_a_server_outlives_its_connection(ending: Ending) {
    let mut connection = connect(&connector(), &reference(&[])).await;
    let pids = result(&mut connection, "grandchild", json!({})).await;
    match ending {
        Ending::Close => connection.sink.close().await,
        Ending::Drop => drop(connection),
        Ending::Crash => {
            call(&mut connection, 2, "crash", json!({})).await;
            assert_eq!(end(&mut connection).await.code(), "MCP_CLOSED");
        }
    }
    for pid in ["server", "child"] {
        assert!(gone(i32::try_from(pids[pid].as_i64().unwrap()).unwrap()).await, "{pid} lives on");
    }
}

#[tokio::test]
async fn a_stubborn_server_is_killed() {
    let short = Duration::from_millis(20);
    let limits = RealMcpLimits { grace: short, term_grace: short, ..RealMcpLimits::default() };
    let mut connection = connect(&connector().limits(limits), &reference(&["--stubborn"])).await;
    let pids = result(&mut connection, "grandchild", json!({})).await;
    connection.sink.close().await;
    assert!(gone(i32::try_from(pids["server"].as_i64().unwrap()).unwrap()).await);
}

#[tokio::test]
async fn a_virtual_clock_is_held_exactly_while_an_answer_is_owed() {
    let held = VirtualClock::new(UnixNanos(0), 0);
    let mut connection = connect(&connector().holding(Arc::new(held.clone())), &reference(&[])).await;
    assert_eq!(held.holds(), 0);
    call(&mut connection, 1, "echo", json!({ "text": "a" })).await;
    call(&mut connection, 2, "echo", json!({ "text": "b" })).await;
    assert_eq!(held.holds(), 1);
    answer(&mut connection).await;
    assert_eq!(held.holds(), 1);
    answer(&mut connection).await;
    assert_eq!(held.holds(), 0);
    connection.sink.close().await;
    assert_eq!(held.holds(), 0);
}

#[test_case("http://127.0.0.1:9/mcp", "MCP_DENIED"; "egress says no")]
#[test_case("ftp://example.com/mcp", "MCP_UNREACHABLE"; "a foreign scheme")]
#[test_case("mcp", "MCP_UNREACHABLE"; "no address at all")]
#[tokio::test]
async fn an_endpoint_is_refused(url: &str, code: &str) {
    let address = ServerAddress::Http { url: url.to_owned(), headers: BTreeMap::new() };
    let target = McpTarget { server: ServerName::from("shop"), address };
    let error = connector().open(&target, &CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
}

#[tokio::test]
async fn a_server_that_only_a_simulation_knows_is_refused() {
    let target = McpTarget { server: ServerName::from("shop"), address: ServerAddress::Simulated };
    let error = connector().open(&target, &CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.code(), "MCP_DENIED");
}

/// A tool that `./x tools` installs.
fn installed(path: &str) -> String {
    let path: PathBuf = root().join(".tools").join(path);
    assert!(path.exists(), "{} is missing: run `./x tools`", path.display());
    path.to_str().unwrap().to_owned()
}

fn node(package: &str, args: &[&str]) -> McpTarget {
    let script = installed(&format!("node/node_modules/@modelcontextprotocol/{package}/dist/index.js"));
    let mut all = vec![script.as_str()];
    all.extend(args);
    process(package, &installed("node/node_modules/.bin/node"), &all)
}

#[test_case("everything", "echo")]
#[test_case("filesystem", "read_text_file")]
#[test_case("time", "convert_time")]
#[tokio::test]
async fn servers_of_others_are_reached_and_ended(server: &str, tool: &str) {
    let folder = tempfile::tempdir().unwrap();
    let target = match server {
        "everything" => node("server-everything", &["stdio"]),
        "filesystem" => node("server-filesystem", &[folder.path().to_str().unwrap()]),
        _ => process("time", &installed("python/bin/mcp-server-time"), &[]),
    };
    let mut connection = open(&connector(), &target).await;
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    for message in [hello, json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })] {
        connection.sink.send(Frame::from(message.to_string())).await.unwrap();
    }
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    connection.sink.send(Frame::from(list.to_string())).await.unwrap();
    let tools = loop {
        let message = answer(&mut connection).await;
        if message["id"] == json!(1) {
            break message["result"]["tools"].clone();
        }
    };
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert!(names.contains(&json!(tool)), "{names:?}");
    connection.sink.close().await;
    while let Some(rest) = connection.source.next().await {
        assert!(rest.is_ok(), "a connection that the host closed ends without an error: {rest:?}");
    }
}
