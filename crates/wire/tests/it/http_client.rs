//! The HTTP client: against our own endpoint, and against servers that misbehave.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Method};
use axum::response::Response;
use axum::routing::any;
use greenroom_wire::http::client::{HttpClientOptions, duplex};
use greenroom_wire::{
    HandshakeError, Peer, Progress, ProtocolVersion, RequestError, RequestOptions, RpcError, ServerHello, client_handshake,
};
use serde_json::json;
use test_case::test_case;

use crate::http_server::{Served, listen, start};
use crate::support::{HandClock, Notes, options, raw, secs, settle};

struct Client {
    peer: Peer,
    notes: Arc<Notes>,
    clock: Arc<HandClock>,
}

fn connect(url: &str, http: reqwest::Client, notes: Arc<Notes>) -> Client {
    let clock = HandClock::new();
    let options_of_http = HttpClientOptions {
        server: "s".to_owned(),
        url: url.to_owned(),
        headers: BTreeMap::from([("Authorization".to_owned(), "Bearer t".to_owned())]),
        limit_bytes: 2048,
        clock: clock.clone(),
    };
    let peer = Peer::start(duplex(http, options_of_http).unwrap(), notes.clone(), options(&clock));
    Client { peer, notes, clock }
}

impl Client {
    async fn shake(&self) -> Result<ServerHello, HandshakeError> {
        let info = json!({"name": "c"});
        client_handshake(&self.peer, &info, &json!({}), ProtocolVersion::LATEST, RequestOptions::default()).await
    }

    async fn ask(&self, method: &str) -> Result<String, RequestError> {
        let answer = self.peer.request(method, None, RequestOptions::default()).await;
        answer.map(|raw| raw.get().to_owned())
    }
}

async fn connected() -> (Served, Client) {
    let served = start().await;
    let notes = Notes::answering(|request| async move {
        match request.method.as_str() {
            "roots/list" => Ok(raw(r#"{"roots":[]}"#)),
            other => Err(RpcError::method_not_found(other)),
        }
    });
    let client = connect(&served.url, served.client.clone(), notes);
    client.shake().await.unwrap();
    (served, client)
}

#[tokio::test]
async fn a_session_from_handshake_to_delete() {
    let (served, client) = connected().await;
    assert_eq!(served.front.infos.lock().unwrap()[0].headers["authorization"], "Bearer t");
    assert_eq!(client.ask("echo").await.unwrap(), "null");
    let unknown = client.ask("nothing").await.unwrap_err();
    assert_eq!(unknown, RequestError::Rpc(RpcError::method_not_found("nothing")));
    let params = raw(r#"{"n": 1.0,  "big":9007199254740993}"#);
    let echo = client.peer.request("echo", Some(params.clone()), RequestOptions::default()).await.unwrap();
    assert_eq!(echo.get(), params.get());
    client.peer.close().await;
    assert!(served.sessions.is_empty());
}

#[tokio::test]
async fn progress_and_questions_back_pass() {
    let (_served, client) = connected().await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = heard.clone();
    let note = move |step: Progress| listener.lock().unwrap().push(step.progress);
    let options = RequestOptions { progress: Some(Box::new(note)), attach_progress_token: true, ..RequestOptions::default() };
    assert_eq!(client.peer.request("steps", None, options).await.unwrap().get(), "\"done\"");
    assert_eq!(*heard.lock().unwrap(), [1.0, 2.0, 3.0]);
    assert_eq!(client.ask("ask back").await.unwrap(), r#"{"roots":[]}"#);
}

#[tokio::test]
async fn a_slow_request_holds_up_no_other() {
    let (served, client) = connected().await;
    let peer = client.peer.clone();
    let slow = tokio::spawn(async move { peer.request("wait", None, RequestOptions::default()).await });
    while served.front.peers.lock().unwrap()[0].answering() == 0 {
        settle().await;
    }
    assert_eq!(client.ask("echo").await.unwrap(), "null");
    slow.abort();
    // The server hears of it, and no answer is made up for what was cancelled.
    while served.front.peers.lock().unwrap()[0].answering() > 0 {
        settle().await;
    }
    assert_eq!(client.ask("echo").await.unwrap(), "null");
    assert_eq!(client.notes.take(), [] as [String; 0]);
}

/// Counts a request that a server works on until it is dropped.
struct Working(Arc<AtomicUsize>);

impl Working {
    fn on(counter: &Arc<AtomicUsize>) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        Self(counter.clone())
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_request_that_is_given_up_lets_its_connection_go() {
    let busy = Arc::new(AtomicUsize::new(0));
    let of_server = busy.clone();
    let answer = move |body: String| {
        let working = body.contains("hang").then(|| Working::on(&of_server));
        async move {
            if working.is_some() {
                std::future::pending::<()>().await;
            }
            drop(working);
            Response::builder().status(202).body(Body::empty()).unwrap()
        }
    };
    let (url, http) = listen(Router::new().route("/mcp", any(answer))).await;
    let client = connect(&url, http, Notes::new());
    let peer = client.peer.clone();
    let asking = tokio::spawn(async move { peer.request("hang", None, RequestOptions::default()).await });
    while busy.load(Ordering::SeqCst) == 0 {
        settle().await;
    }
    asking.abort();
    while busy.load(Ordering::SeqCst) > 0 {
        settle().await;
    }
    assert!(!client.peer.is_closed());
}

#[tokio::test]
async fn the_servers_own_messages_arrive() {
    let (served, client) = connected().await;
    let server = served.front.peers.lock().unwrap()[0].clone();
    server.notify("notifications/own", Some(raw("{}"))).await.unwrap();
    let roots = server.request("roots/list", None, RequestOptions::default()).await.unwrap();
    assert_eq!(roots.get(), r#"{"roots":[]}"#);
    assert_eq!(client.notes.take(), ["notification notifications/own {}"]);
}

#[tokio::test]
async fn a_forgotten_session_ends_the_connection() {
    let (served, client) = connected().await;
    served.sessions.shutdown();
    assert_eq!(client.ask("echo").await.unwrap_err().code(), "MCP_CLOSED");
    client.peer.closed().await;
    assert_eq!(client.notes.take(), ["closed MCP_CLOSED"]);
}

type Answer = fn(&Method, &HeaderMap, &str) -> (u16, &'static str, String);

/// A server that answers as `answer` says.
async fn odd(answer: Answer) -> Client {
    let answer = move |method: Method, headers: HeaderMap, body: String| async move {
        let (status, kind, body) = answer(&method, &headers, &body);
        Response::builder().status(status).header("content-type", kind).body(Body::from(body)).unwrap()
    };
    let (url, http) = listen(Router::new().route("/mcp", any(answer))).await;
    connect(&url, http, Notes::new())
}

const STREAM: &str = "text/event-stream";

#[test_case(|_, _, _| (503, "text/plain", "busy".to_owned()) => "-32000 server s answered HTTP 503: busy"; "status")]
#[test_case(|_, _, _| (404, "text/plain", String::new()) => "-32000 server s answered HTTP 404: "; "not found without session")]
#[test_case(|_, _, _| (400, "application/json", r#"{"jsonrpc":"2.0","id":1,"error":{"code":-7,"message":"m"}}"#.to_owned()) => "-7 m"; "status with an answer")]
#[test_case(|_, _, _| (202, "text/plain", String::new()) => "-32000 server s closed the connection: the exchange ended without an answer"; "no body")]
#[test_case(|_, _, _| (200, STREAM, ": hello\n\n".to_owned()) => "-32000 server s closed the connection: the stream ended before the answer came"; "stream without answer")]
#[test_case(|_, _, _| (200, "application/json", format!("\"{}\"", "x".repeat(4096))) => "MCP_TOO_LARGE"; "body beyond the limit")]
#[test_case(|_, _, _| (200, STREAM, format!("data: {}\n\n", "x".repeat(4096))) => "MCP_TOO_LARGE"; "event beyond the limit")]
#[tokio::test]
async fn a_failed_exchange_fails_its_request_alone(answer: Answer) -> String {
    let client = odd(answer).await;
    let error = client.ask("a").await.unwrap_err();
    assert!(!client.peer.is_closed());
    match error {
        RequestError::Rpc(error) => {
            error.to_string().replace(&format!(" (code {})", error.code), "").replacen("", &format!("{} ", error.code), 1)
        }
        other => other.code().to_owned(),
    }
}

#[tokio::test]
async fn a_failed_initialize_says_what_happened() {
    let client = odd(|_, _, _| (401, "text/plain", "log in".to_owned())).await;
    let error = client.shake().await.unwrap_err();
    assert_eq!((error.code(), error.to_string().as_str()), ("MCP_STATUS", "server s answered HTTP 401: log in"));
}

#[tokio::test]
async fn a_server_that_is_not_there_says_so() {
    let (url, http) = listen(Router::new()).await;
    let client = connect(&url.replace("127.0.0.1", "127.0.0.2").replace("http:", "https:"), http, Notes::new());
    assert_eq!(client.shake().await.unwrap_err().code(), "MCP_UNREACHABLE");
}

#[tokio::test]
async fn a_broken_stream_is_taken_up_where_it_broke() {
    let client = odd(|method, headers, _| match (method.as_str(), headers.get("last-event-id")) {
        ("POST", _) => (200, STREAM, "retry: 500\nid: e1\ndata:\n\n".to_owned()),
        (_, Some(id)) if id == "e1" => {
            (200, STREAM, "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"at last\"}\n\n".to_owned())
        }
        _ => (405, "text/plain", String::new()),
    })
    .await;
    let peer = client.peer.clone();
    let asking = tokio::spawn(async move { peer.request("a", None, RequestOptions::default()).await });
    while !asking.is_finished() {
        settle().await;
        client.clock.advance(secs(1));
    }
    assert_eq!(asking.await.unwrap().unwrap().get(), "\"at last\"");
}

#[tokio::test]
async fn the_agreed_revision_and_session_go_with_every_request() {
    let client = odd(|_, headers, body| {
        let header = |name: &str| headers.get(name).map_or("-", |value| value.to_str().unwrap());
        if body.contains("\"initialize\"") {
            assert_eq!((header("mcp-protocol-version"), header("mcp-session-id")), ("-", "-"));
            let hello = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{}}}"#;
            return (200, "application/json", hello.to_owned());
        }
        let seen = format!(r#"{{"jsonrpc":"2.0","id":2,"result":"{}"}}"#, header("mcp-protocol-version"));
        (if body.contains("\"id\"") { 200 } else { 202 }, "application/json", seen)
    })
    .await;
    client.shake().await.unwrap();
    assert_eq!(client.ask("a").await.unwrap(), "\"2025-03-26\"");
}

#[test_case("no url", "x"; "bad url")]
#[test_case("http://127.0.0.1:1/", "b\nad"; "bad header value")]
fn unusable_options_are_refused(url: &str, value: &str) {
    let options = HttpClientOptions {
        server: "s".to_owned(),
        url: url.to_owned(),
        headers: BTreeMap::from([("x".to_owned(), value.to_owned())]),
        limit_bytes: 1,
        clock: HandClock::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (_, http) = runtime.block_on(listen(Router::new()));
    assert_eq!(duplex(http, options).unwrap_err().code(), "MCP_UNREACHABLE");
}
