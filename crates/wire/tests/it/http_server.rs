//! The endpoint's statuses, and where messages go, asked with plain HTTP.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use axum::http::HeaderMap;
use greenroom_boundary::Entropy;
use greenroom_wire::http::server::{
    Acceptor, Expiry, KeepAlive, Refusal, ServerOptions, SessionInfo, Sessions, Streams, mcp_router,
};
use greenroom_wire::splice::progress_token_of;
use greenroom_wire::{
    FrameDuplex, IncomingRequest, Peer, RawJson, RequestId, RequestOptions, RpcError, negotiate, server_hello,
};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, Response};
use serde_json::json;
use serde_json::value::to_raw_value;
use test_case::test_case;

use crate::support::{HandClock, Notes, options, raw, settle};

#[derive(Debug, Default)]
struct Counting(Mutex<u64>);

impl Entropy for Counting {
    fn next_u64(&self) -> u64 {
        let mut next = self.0.lock().unwrap();
        *next += 1;
        *next
    }
}

/// Starts a peer per session, and keeps it.
#[derive(Default)]
pub(crate) struct Front {
    pub(crate) peers: Mutex<Vec<Peer>>,
    pub(crate) infos: Mutex<Vec<SessionInfo>>,
    notes: Mutex<Vec<Arc<Notes>>>,
}

#[async_trait]
impl Acceptor for Front {
    async fn accept(&self, session: SessionInfo, duplex: FrameDuplex) -> Result<(), Refusal> {
        if session.headers.get("user-agent").is_some_and(|agent| agent == "unwanted") {
            return Err(Refusal { status: 403, message: "not you".to_owned() });
        }
        self.infos.lock().unwrap().push(session);
        let notes = Notes::answering(serve);
        self.notes.lock().unwrap().push(notes.clone());
        self.peers.lock().unwrap().push(Peer::start(duplex, notes, options(&HandClock::new())));
        Ok(())
    }

    fn authorize(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match headers.get("authorization") {
            Some(value) if value == "Bearer wrong" => Err(Refusal { status: 401, message: "log in".to_owned() }),
            _ => Ok(()),
        }
    }
}

async fn serve(request: IncomingRequest) -> Result<RawJson, RpcError> {
    match request.method.as_str() {
        "initialize" if request.params.is_some() => {
            let hello = server_hello(negotiate("2025-11-25"), &json!({"name": "s"}), &json!({}), None);
            Ok(hello.unwrap())
        }
        "initialize" => Err(RpcError::invalid_params("no params")),
        "steps" => {
            let token = progress_token_of(request.params.as_deref()).unwrap();
            for step in 1..=3 {
                let params = to_raw_value(&json!({"progressToken": token, "progress": step})).unwrap();
                request.peer.notify("notifications/progress", Some(params)).await.unwrap();
            }
            Ok(raw("\"done\""))
        }
        "ask back" => request.peer.request("roots/list", None, RequestOptions::default()).await.map_err(|error| error.to_rpc()),
        "wait" => {
            request.cancel.cancelled().await;
            Ok(raw("0"))
        }
        "echo" => Ok(request.params.unwrap_or_else(|| raw("null"))),
        other => Err(RpcError::method_not_found(other)),
    }
}

/// A running endpoint.
pub(crate) struct Served {
    pub(crate) url: String,
    pub(crate) front: Arc<Front>,
    pub(crate) sessions: Sessions,
    pub(crate) client: reqwest::Client,
}

#[expect(clippy::disallowed_methods, reason = "the test is the driver: it listens and connects on the loopback interface")]
pub(crate) async fn listen(router: axum::Router) -> (String, reqwest::Client) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, reqwest::Client::builder().no_proxy().build().unwrap())
}

pub(crate) async fn start() -> Served {
    let front = Arc::new(Front::default());
    let mut options = ServerOptions::new(Arc::new(Counting::default()));
    options.allowed_origins.push("https://app.example.com".to_owned());
    options.body_limit_bytes = 4096;
    options.buffer_frames = 2;
    options.max_sessions = 2;
    let (router, sessions) = mcp_router("/mcp", front.clone(), options);
    let (url, client) = listen(router).await;
    Served { url, front, sessions, client }
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
const SESSION: &str = "00000000000000010000000000000002";

impl Served {
    fn call(&self, method: Method) -> RequestBuilder {
        self.client.request(method, &self.url)
    }

    /// A POST within the first session, with the usual headers.
    fn post(&self, body: &str) -> RequestBuilder {
        let call = self.call(Method::POST).header(CONTENT_TYPE, "application/json");
        let call = call.header("accept", "application/json, text/event-stream");
        call.header("mcp-session-id", SESSION).body(body.to_owned())
    }

    async fn initialize(&self) -> Response {
        let call = self.call(Method::POST).header(CONTENT_TYPE, "application/json").body(INITIALIZE);
        call.send().await.unwrap()
    }

    fn peer(&self) -> Peer {
        self.front.peers.lock().unwrap()[0].clone()
    }
}

fn kind(response: &Response) -> String {
    response.headers().get(CONTENT_TYPE).map_or("-", |value| value.to_str().unwrap()).to_owned()
}

fn messages(stream: &str) -> Vec<String> {
    stream.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect()
}

/// Sends what a table row says in an initialized session, and gives status and JSON-RPC code.
async fn status(method: Method, headers: &[(&'static str, &str)], body: &str) -> (u16, i64) {
    let served = start().await;
    served.initialize().await;
    let mut all = vec![
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-session-id", SESSION),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    for (name, value) in headers {
        all.retain(|(known, _)| known != name);
        if !value.is_empty() {
            all.push((name, value));
        }
    }
    let mut call = served.call(method).body(body.to_owned());
    for (name, value) in all {
        call = call.header(name, value);
    }
    let response = call.send().await.unwrap();
    let status = response.status().as_u16();
    if kind(&response).starts_with("text/event-stream") {
        return (status, 0);
    }
    let body: serde_json::Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap_or_default();
    (status, body["error"]["code"].as_i64().unwrap_or_default())
}

const ECHO: &str = r#"{"jsonrpc":"2.0","id":"e","method":"echo"}"#;
const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;

#[test_case(&[], ECHO => (200, 0); "request")]
#[test_case(&[], NOTE => (202, 0); "notification")]
#[test_case(&[], r#"{"jsonrpc":"2.0","id":1,"result":{}}"# => (202, 0); "response")]
#[test_case(&[("mcp-session-id", "")], ECHO => (400, -32000); "no session")]
#[test_case(&[("mcp-session-id", "")], NOTE => (400, -32000); "notification without session")]
#[test_case(&[("mcp-session-id", "ffff")], ECHO => (404, -32000); "unknown session")]
#[test_case(&[("mcp-protocol-version", "")], ECHO => (200, 0); "no revision")]
#[test_case(&[("mcp-protocol-version", "2025-06-18")], ECHO => (200, 0); "another revision")]
#[test_case(&[("mcp-protocol-version", "1999-01-01")], ECHO => (400, -32000); "unsupported revision")]
#[test_case(&[("accept", "application/json")], ECHO => (406, -32000); "accepts no stream")]
#[test_case(&[("accept", "text/event-stream")], ECHO => (406, -32000); "accepts no json")]
#[test_case(&[("accept", "*/*")], ECHO => (200, 0); "accepts all")]
#[test_case(&[("accept", "Application/*;q=0.5, text/event-stream; q=1")], ECHO => (200, 0); "accepts with weights")]
#[test_case(&[("content-type", "text/plain")], ECHO => (415, -32000); "not json by header")]
#[test_case(&[("content-type", "application/json; charset=utf-8")], ECHO => (200, 0); "with charset")]
#[test_case(&[("origin", "http://evil.example.com")], ECHO => (403, -32000); "foreign origin")]
#[test_case(&[("origin", "http://localhost.evil.example.com")], ECHO => (403, -32000); "origin that looks local")]
#[test_case(&[("origin", "http://localhost:evil")], ECHO => (403, -32000); "origin with odd port")]
#[test_case(&[("origin", "null")], ECHO => (403, -32000); "null origin")]
#[test_case(&[("origin", "http://localhost:3000")], ECHO => (200, 0); "local origin")]
#[test_case(&[("origin", "http://[::1]:3000")], ECHO => (200, 0); "local origin in ipv6")]
#[test_case(&[("origin", "https://app.example.com")], ECHO => (200, 0); "allowed origin")]
#[test_case(&[("authorization", "Bearer wrong")], ECHO => (401, -32000); "not authorized")]
#[test_case(&[], "{\"jsonrpc\"" => (400, -32700); "bad json")]
#[test_case(&[], "[]" => (400, -32600); "batch")]
#[test_case(&[], r#"{"jsonrpc":"2.0","id":null,"method":"echo"}"# => (400, -32600); "null id")]
#[test_case(&[], INITIALIZE => (200, 0); "initialize within a session is the handler's business")]
#[tokio::test]
async fn a_post_is_answered_with(headers: &[(&'static str, &str)], body: &str) -> (u16, i64) {
    status(Method::POST, headers, body).await
}

#[test_case(Method::GET, &[] => (200, 0); "stream")]
#[test_case(Method::GET, &[("accept", "application/json")] => (406, -32000); "get accepts no stream")]
#[test_case(Method::GET, &[("mcp-session-id", "")] => (400, -32000); "get without session")]
#[test_case(Method::GET, &[("mcp-session-id", "x")] => (404, -32000); "get of unknown session")]
#[test_case(Method::GET, &[("origin", "http://evil.example.com")] => (403, -32000); "get from foreign origin")]
#[test_case(Method::DELETE, &[] => (200, 0); "delete")]
#[test_case(Method::DELETE, &[("mcp-session-id", "")] => (400, -32000); "delete without session")]
#[test_case(Method::DELETE, &[("mcp-session-id", "x")] => (404, -32000); "delete of unknown session")]
#[test_case(Method::PUT, &[] => (405, 0); "put")]
#[tokio::test]
async fn other_methods_are_answered_with(method: Method, headers: &[(&'static str, &str)]) -> (u16, i64) {
    status(method, headers, "").await
}

#[test_case(r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":{"x":"#, false => json!(1); "a request")]
#[test_case(r#"{"jsonrpc":"2.0","id":"a","method":"echo","params":{"x":"#, true => json!("a"); "a request in chunks")]
#[test_case(r#"{"jsonrpc":"2.0","id":1,"params":{"x":"#, false => json!(null); "it is not said that it is a request")]
#[test_case(r#"{"jsonrpc":"2.0","method":"echo","params":{"x":"#, true => json!(null); "no id before the limit")]
#[test_case(r#"{"jsonrpc":"2.0","id":1,"result":{"x":"#, false => json!(null); "a response")]
#[tokio::test]
async fn a_body_beyond_the_limit_is_refused(begin: &str, in_chunks: bool) -> serde_json::Value {
    let served = start().await;
    served.initialize().await;
    let body = format!(r#"{begin}"{}"}}}}"#, "x".repeat(5000));
    let call = served.post("");
    let chunks: Vec<Result<Vec<u8>, std::io::Error>> = body.as_bytes().chunks(700).map(|chunk| Ok(chunk.to_vec())).collect();
    let in_chunks = in_chunks.then(|| reqwest::Body::wrap_stream(futures::stream::iter(chunks)));
    let call = call.body(in_chunks.unwrap_or_else(|| body.into()));
    let refused = call.send().await.unwrap();
    assert_eq!(refused.status(), 413);
    let error: serde_json::Value = serde_json::from_slice(&refused.bytes().await.unwrap()).unwrap();
    assert_eq!(error["error"]["code"], -32000);
    error["id"].clone()
}

#[tokio::test]
async fn a_session_whose_client_stays_away_is_ended() {
    let clock = HandClock::new();
    let front = Arc::new(Front::default());
    let mut options = ServerOptions::new(Arc::new(Counting::default()));
    options.expiry = Some(Expiry { clock: clock.clone(), after: Duration::from_mins(30) });
    let (router, sessions) = mcp_router("/mcp", front.clone(), options);
    let (url, client) = listen(router).await;
    let served = Served { url, front, sessions, client };
    served.initialize().await;
    let minutes = async |minutes: u64| {
        clock.advance(Duration::from_mins(minutes));
        for _ in 0..20 {
            settle().await;
        }
    };
    minutes(29).await;
    assert_eq!(served.post(ECHO).send().await.unwrap().status(), 200, "that counts");
    minutes(29).await;
    let own = served.call(Method::GET).header("accept", "text/event-stream").header("mcp-session-id", SESSION);
    let own = own.send().await.unwrap();
    minutes(100).await;
    assert_eq!(served.sessions.len(), 1, "an open stream is presence");
    drop(own);
    let peer = served.peer();
    // That it is closed is noticed in its own time.
    while !served.sessions.is_empty() {
        minutes(31).await;
    }
    peer.closed().await;
    assert_eq!(served.post(ECHO).send().await.unwrap().status(), 404);
    assert_eq!(clock.sleepers(), 0, "nothing waits for an end that has come");
}

/// Nobody reads the stream: what can be done without is dropped and counted, and answers come all the same.
#[tokio::test]
async fn a_stream_that_nobody_reads_does_not_grow() {
    let served = start().await;
    served.initialize().await;
    let own = served.call(Method::GET).header("accept", "text/event-stream").header("mcp-session-id", SESSION);
    let _own = own.send().await.unwrap();
    let peer = served.peer();
    let line = raw(&format!(r#"{{"level":"info","data":"{}"}}"#, "x".repeat(100_000)));
    let mut refused = 0;
    for _ in 0..600 {
        refused += usize::from(peer.notify("notifications/message", Some(line.clone())).await.is_err());
    }
    // 4 MiB wait here; the rest is in the buffers of the connection.
    assert!(refused > 300, "{refused}");
    assert_eq!(served.post(ECHO).send().await.unwrap().status(), 200);
    let notes = served.front.notes.lock().unwrap()[0].take();
    let told: usize = notes.iter().filter_map(|line| line.strip_prefix("flooded ")?.parse::<usize>().ok()).sum();
    assert_eq!(told, refused);
}

#[tokio::test]
async fn sessions_are_minted_counted_and_ended() {
    let served = start().await;
    let response = served.initialize().await;
    assert_eq!((response.status().as_u16(), kind(&response).as_str()), (200, "application/json"));
    assert_eq!(response.headers()["mcp-session-id"], SESSION);
    served.initialize().await;
    assert_eq!(served.sessions.len(), 2);
    let peer = served.peer();
    let deleted = served.call(Method::DELETE).header("mcp-session-id", SESSION).send().await.unwrap();
    assert_eq!(deleted.status(), 200);
    peer.closed().await;
    assert_eq!(served.post(ECHO).send().await.unwrap().status(), 404);
    served.sessions.shutdown();
    assert!(served.sessions.is_empty());
}

#[tokio::test]
async fn a_full_table_gives_up_what_is_idle_longest_and_nothing_else() {
    let served = start().await;
    served.initialize().await;
    let second = served.initialize().await.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    served.post(ECHO).send().await.unwrap();
    // The second was used least lately, so it makes room for the third.
    let third = served.initialize().await.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let stream = |id: &str| {
        let call = served.call(Method::GET).header("accept", "text/event-stream");
        call.header("mcp-session-id", id.to_owned()).send()
    };
    assert_eq!(stream(&second).await.unwrap().status(), 404);
    let (_first, _third) = (stream(SESSION).await.unwrap(), stream(&third).await.unwrap());
    assert_eq!(served.initialize().await.status(), 503);
    assert_eq!(served.sessions.len(), 2);
}

#[tokio::test]
async fn a_failed_initialize_leaves_no_session() {
    let served = start().await;
    let call = |body: &'static str| served.call(Method::POST).header(CONTENT_TYPE, "application/json").body(body);
    let refused = call(INITIALIZE).header("user-agent", "unwanted").send().await.unwrap();
    assert_eq!(refused.status(), 403);
    let failed = call(r#"{"jsonrpc":"2.0","id":0,"method":"initialize"}"#).send().await.unwrap();
    assert_eq!(failed.status(), 200);
    assert!(!failed.headers().contains_key("mcp-session-id"));
    assert!(failed.text().await.unwrap().contains("-32602"));
    assert!(served.sessions.is_empty());
}

#[tokio::test]
async fn the_acceptor_learns_who_calls() {
    let served = start().await;
    let call = served.call(Method::POST).header(CONTENT_TYPE, "application/json").header("authorization", "Bearer t");
    call.header("user-agent", "test").header("x-other", "1").body(INITIALIZE).send().await.unwrap();
    let info = served.front.infos.lock().unwrap()[0].clone();
    let headers = [("authorization", "Bearer t"), ("user-agent", "test")];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    assert_eq!((info.id.as_str(), info.headers), (SESSION, headers));
}

#[tokio::test]
async fn progress_comes_on_the_stream_of_its_request() {
    let served = start().await;
    served.initialize().await;
    // The server's own stream is open as well, and must stay silent.
    let mut own = served.call(Method::GET).header("accept", "text/event-stream").header("mcp-session-id", SESSION);
    own = own.header("mcp-protocol-version", "2025-11-25");
    let mut own = own.send().await.unwrap();
    let body = r#"{"jsonrpc":"2.0","id":"a","method":"steps","params":{"_meta":{"progressToken":0}}}"#;
    let response = served.post(body).send().await.unwrap();
    assert_eq!(kind(&response), "text/event-stream");
    assert_eq!(response.headers()["cache-control"], "no-cache, no-transform");
    let mut expected: Vec<_> = (1..=3)
        .map(|step| {
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":0,"progress":{step}}}}}"#)
        })
        .collect();
    expected.push(r#"{"jsonrpc":"2.0","id":"a","result":"done"}"#.to_owned());
    assert_eq!(messages(&response.text().await.unwrap()), expected);
    served.peer().notify("notifications/own", None).await.unwrap();
    let chunk = own.chunk().await.unwrap().unwrap();
    assert_eq!(chunk, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/own\"}\n\n");
}

#[tokio::test]
async fn without_a_stream_of_its_own_the_server_asks_on_an_open_request() {
    let served = start().await;
    served.initialize().await;
    let mut asked = served.post(r#"{"jsonrpc":"2.0","id":5,"method":"ask back"}"#).send().await.unwrap();
    let question = String::from_utf8(asked.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    assert_eq!(messages(&question), [r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#]);
    let told = served.post(r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#).send().await.unwrap();
    assert_eq!(told.status(), 202);
    assert_eq!(messages(&asked.text().await.unwrap()), [r#"{"jsonrpc":"2.0","id":5,"result":{"roots":[]}}"#]);
}

#[tokio::test]
async fn a_question_goes_out_on_the_request_that_it_comes_from() {
    let served = start().await;
    served.initialize().await;
    let own = served.call(Method::GET).header("accept", "text/event-stream").header("mcp-session-id", SESSION);
    let own = own.send().await.unwrap();
    let streams = served.front.infos.lock().unwrap()[0].streams.clone();
    streams.comes_from(&RequestId::Number(1), &RequestId::Number(5));
    let mut asked = served.post(r#"{"jsonrpc":"2.0","id":5,"method":"ask back"}"#).send().await.unwrap();
    let question = String::from_utf8(asked.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    assert_eq!(messages(&question), [r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#]);
    served.post(r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#).send().await.unwrap();
    assert_eq!(messages(&asked.text().await.unwrap()), [r#"{"jsonrpc":"2.0","id":5,"result":{"roots":[]}}"#]);
    served.sessions.shutdown();
    assert_eq!(own.text().await.unwrap(), "");
}

#[tokio::test]
async fn a_question_that_finds_no_stream_fails_at_once() {
    let served = start().await;
    served.initialize().await;
    let failed = served.peer().request("roots/list", None, RequestOptions::default()).await.unwrap_err();
    assert_eq!((failed.code(), failed.to_rpc().code), ("MCP_CLOSED", -32000));
    assert!(failed.to_string().contains("no stream open"), "{failed}");
    assert_eq!(served.post(ECHO).send().await.unwrap().status(), 200, "the connection goes on");
}

#[tokio::test]
async fn a_silent_stream_says_that_it_lives() {
    let clock = HandClock::new();
    let front = Arc::new(Front::default());
    let mut options = ServerOptions::new(Arc::new(Counting::default()));
    options.keep_alive = Some(KeepAlive { clock: clock.clone(), every: Duration::from_secs(15) });
    let (router, sessions) = mcp_router("/mcp", front.clone(), options);
    let (url, client) = listen(router).await;
    let served = Served { url, front, sessions, client };
    served.initialize().await;
    let waiting = tokio::spawn(served.post(r#"{"jsonrpc":"2.0","id":"w","method":"wait"}"#).send());
    while clock.sleepers() == 0 {
        settle().await;
    }
    clock.advance(Duration::from_secs(15));
    // A request that takes long is answered on a stream, too.
    let mut waiting = waiting.await.unwrap().unwrap();
    assert_eq!(kind(&waiting), "text/event-stream");
    while clock.sleepers() == 0 {
        settle().await;
    }
    clock.advance(Duration::from_secs(15));
    assert_eq!(waiting.chunk().await.unwrap().unwrap(), ": still here\n\n");
}

#[tokio::test]
async fn messages_wait_for_a_stream_up_to_a_limit() {
    let served = start().await;
    served.initialize().await;
    let peer = served.peer();
    peer.notify("one", None).await.unwrap();
    peer.notify("two", None).await.unwrap();
    assert_eq!(peer.notify("three", None).await.unwrap_err().code(), "MCP_CLOSED");
    let call = served.call(Method::GET).header("accept", "text/event-stream").header("mcp-session-id", SESSION);
    let stream = call.send().await.unwrap();
    peer.notify("four", None).await.unwrap();
    served.sessions.shutdown();
    let heard = messages(&stream.text().await.unwrap());
    assert_eq!(heard, ["one", "two", "four"].map(|name| format!(r#"{{"jsonrpc":"2.0","method":"{name}"}}"#)));
}

#[tokio::test]
async fn a_cancelled_request_ends_its_stream_without_an_answer() {
    let served = start().await;
    served.initialize().await;
    let waiting = tokio::spawn(served.post(r#"{"jsonrpc":"2.0","id":"w","method":"wait"}"#).send());
    while served.peer().answering() == 0 {
        settle().await;
    }
    // A second use of the id is refused while the first is under way.
    let twice = served.post(r#"{"jsonrpc":"2.0","id":"w","method":"echo"}"#).send().await.unwrap();
    assert_eq!(twice.status(), 400);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"w"}}"#;
    assert_eq!(served.post(cancel).send().await.unwrap().status(), 202);
    let ended = waiting.await.unwrap().unwrap();
    assert_eq!((ended.status().as_u16(), ended.text().await.unwrap().as_str()), (200, ""));
}

#[tokio::test]
async fn hanging_up_cancels_nothing() {
    let served = start().await;
    served.initialize().await;
    let waiting = tokio::spawn(served.post(r#"{"jsonrpc":"2.0","id":"w","method":"wait"}"#).send());
    while served.peer().answering() == 0 {
        settle().await;
    }
    waiting.abort();
    assert_eq!(served.post(ECHO).send().await.unwrap().status(), 200);
    assert_eq!(served.peer().answering(), 1);
}

#[test]
fn secrets_stay_out_of_debug_output() {
    let headers = [("authorization".to_owned(), "Bearer t".to_owned())].into();
    let info = SessionInfo { id: SESSION.to_owned(), headers, streams: Streams::default() };
    assert_eq!(format!("{info:?}"), r#"SessionInfo { headers: ["authorization"], .. }"#);
}
