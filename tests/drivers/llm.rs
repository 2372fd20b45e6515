//! The Chat Completions driver against real HTTP: the conformance suite's real arm, and what is the dialect's own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::StreamExt;
use greenroom::drivers::llm::{LlmWorld, OpenAiChat, OpenAiOptions};
use greenroom::drivers::{EgressPolicy, SystemClock};
use greenroom_boundary::conformance::llm::{Answer, Assembled, CONNECTOR, LlmStage, assemble, request};
use greenroom_boundary::egress::DenyAll;
use greenroom_boundary::llm::{ChatMessage, LlmError, LlmEvent, LlmRequest, Role};
use greenroom_boundary::{CancellationToken, Credentials, Llm, conformance};
use serde_json::{Value, json};
use test_case::test_case;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wiremock::matchers::{body_json, header, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

const KEY: &str = "sk-very-secret";

/// Loopback is allowed here, and nothing else.
pub(crate) fn world() -> LlmWorld {
    LlmWorld {
        egress: Arc::new(EgressPolicy::parse(["127.0.0.1"]).unwrap()),
        clock: Arc::new(SystemClock::new()),
        credentials: Credentials::default(),
    }
}

fn model(base_url: &str) -> OpenAiChat {
    let options = OpenAiOptions {
        base_url: Some(format!("{base_url}/v1")),
        api_key: Some(KEY.to_owned()),
        headers: BTreeMap::from([("X-Team".to_owned(), "stage".to_owned())]),
        model: "small".to_owned(),
    };
    OpenAiChat::new(CONNECTOR, &options, world()).unwrap()
}

fn sse(lines: &[Value], done: bool) -> String {
    let end = done.then(|| json!("[DONE]"));
    let data = lines.iter().chain(&end).map(|line| line.as_str().map_or_else(|| line.to_string(), str::to_owned));
    data.fold(String::new(), |body, data| body + "data: " + &data + "\n\n")
}

fn chunk(delta: Value) -> Value {
    json!({ "id": "c1", "object": "chat.completion.chunk", "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
}

fn finish(reason: &str) -> Value {
    json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": reason }] })
}

/// Text in pieces of a few characters.
fn text_chunks(text: &str) -> Vec<Value> {
    let chars: Vec<char> = text.chars().collect();
    let first = chunk(json!({ "role": "assistant", "content": "" }));
    let pieces = chars.chunks(5).map(|piece| chunk(json!({ "content": piece.iter().collect::<String>() })));
    std::iter::once(first).chain(pieces).collect()
}

/// Tool calls as OpenAI streams them, all starts first and the arguments interleaved, to show that the index decides.
fn call_chunks(calls: &[(String, String)]) -> Vec<Value> {
    let starts = calls.iter().enumerate().map(|(index, (name, _))| {
        json!({ "index": index, "id": format!("call_{index}"), "type": "function", "function": { "name": name, "arguments": "" } })
    });
    let arguments: Vec<Vec<char>> = calls.iter().map(|(_, arguments)| arguments.chars().collect()).collect();
    let longest = arguments.iter().map(Vec::len).max().unwrap_or_default();
    let pieces = (0..longest).step_by(7).flat_map(|at| {
        let arguments = &arguments;
        (0..arguments.len()).filter(move |index| at < arguments[*index].len()).map(move |index| {
            let piece: String = arguments[index][at..].iter().take(7).collect();
            json!({ "index": index, "function": { "arguments": piece } })
        })
    });
    starts.chain(pieces).map(|call| chunk(json!({ "tool_calls": [call] }))).collect()
}

fn usage(usage: greenroom_boundary::llm::Usage) -> Value {
    json!({ "choices": [], "usage": { "prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens, "total_tokens": 0 } })
}

async fn serve(response: ResponseTemplate) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("POST")).and(path("/v1/chat/completions")).respond_with(response).mount(&server).await;
    server
}

async fn serve_events(body: &str) -> MockServer {
    serve(ResponseTemplate::new(200).set_body_raw(body.as_bytes(), "text/event-stream; charset=utf-8")).await
}

async fn ask(server: &MockServer) -> Result<Assembled, LlmError> {
    Ok(assemble(model(&server.uri()).stream(request(), &CancellationToken::new()).await?).await)
}

async fn heard(body: &str) -> Assembled {
    ask(&serve_events(body).await).await.unwrap()
}

/// A provider that sends `body` of a chunked answer, then does as `then` says. It reports when its peer has gone.
#[expect(clippy::disallowed_methods, reason = "a provider that breaks off cannot be had from an HTTP server")]
async fn raw_provider(body: String, then: Then) -> (SocketAddr, tokio::sync::oneshot::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (gone, peer_gone) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        read_request(&mut socket).await;
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        socket.write_all(format!("{head}{:x}\r\n{body}\r\n", body.len()).as_bytes()).await.unwrap();
        if matches!(then, Then::Stall) {
            let mut rest = Vec::new();
            let _ = socket.read_to_end(&mut rest).await;
            let _ = gone.send(());
        }
    });
    (address, peer_gone)
}

enum Then {
    HangUp,
    Stall,
}

/// Reads a whole request, so that closing the socket does not reset the connection.
async fn read_request(socket: &mut TcpStream) {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = socket.read(&mut buffer).await.unwrap();
        seen.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&seen).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length: usize = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
            if body.len() >= length {
                return;
            }
        }
    }
}

/// Keeps the servers of the suite alive.
#[derive(Default)]
struct Stage(Mutex<Vec<MockServer>>);

impl Stage {
    fn keep(&self, server: MockServer) -> Arc<dyn Llm> {
        let model = model(&server.uri());
        self.0.lock().unwrap().push(server);
        Arc::new(model)
    }
}

#[async_trait]
impl LlmStage for Stage {
    async fn model(&self, answer: Answer) -> Arc<dyn Llm> {
        match answer {
            Answer::Complete { text, calls, usage: counted, finish: reason } => {
                let mut lines = text_chunks(&text);
                lines.extend(call_chunks(&calls));
                lines.push(finish(&reason));
                lines.extend(counted.map(usage));
                self.keep(serve_events(&sse(&lines, true)).await)
            }
            Answer::Error { status, message, retry_after_s } => {
                let body = json!({ "error": { "message": message, "type": "x", "code": null } });
                let response = ResponseTemplate::new(status).set_body_json(body);
                let response = match retry_after_s {
                    Some(seconds) => response.insert_header("retry-after", seconds.to_string()),
                    None => response,
                };
                self.keep(serve(response).await)
            }
            Answer::Cut { text } => {
                let (address, _) = raw_provider(sse(&text_chunks(&text), false), Then::HangUp).await;
                Arc::new(model(&format!("http://{address}")))
            }
            Answer::Stalls { word } => {
                let (address, _) = raw_provider(sse(&text_chunks(&word), false), Then::Stall).await;
                Arc::new(model(&format!("http://{address}")))
            }
        }
    }
}

#[tokio::test]
async fn conformance_over_http() {
    conformance::llm::all(&Stage::default()).await;
}

#[tokio::test]
async fn the_request_is_what_the_dialect_asks_for() {
    let server = MockServer::start().await;
    let expected = json!({
        "top_p": 0.5,
        "model": "small",
        "messages": [
            { "role": "user", "content": "Hello" },
            { "role": "assistant", "tool_calls": [{ "id": "call_1", "type": "function", "function": { "name": "clock__now", "arguments": "{}" } }] },
            { "role": "tool", "content": "noon", "tool_call_id": "call_1", "name": "clock__now" },
        ],
        "tools": [{ "type": "function", "function": { "name": "clock__now", "description": "Tells the time.", "parameters": { "type": "object" } } }],
        "tool_choice": { "type": "function", "function": { "name": "clock__now" } },
        "temperature": 0.25,
        "max_tokens": 100,
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    Mock::given(method("POST"))
        .and(path("/v1/chat/completions"))
        .and(header("authorization", format!("Bearer {KEY}").as_str()))
        .and(header("content-type", "application/json"))
        .and(header("accept", "text/event-stream"))
        .and(header("x-team", "stage"))
        .and(body_json(expected))
        .respond_with(ResponseTemplate::new(200).set_body_raw(sse(&[finish("stop")], true), "text/event-stream"))
        .expect(1)
        .mount(&server)
        .await;
    let asked: LlmRequest = serde_json::from_value(json!({
        "connector": "main",
        "messages": [
            { "role": "user", "content": "Hello" },
            { "role": "assistant", "tool_calls": [{ "id": "call_1", "function": { "name": "clock__now", "arguments": "{}" } }] },
            { "role": "tool", "content": "noon", "tool_call_id": "call_1", "name": "clock__now", "is_error": false, "structured": {} },
        ],
        "tools": request().tools,
        "tool_choice": "clock__now",
        "temperature": 0.25,
        "max_tokens": 100,
        "params": { "top_p": 0.5, "stream": false },
        "agent": "desk",
    }))
    .unwrap();
    let stream = model(&server.uri()).stream(asked, &CancellationToken::new()).await.unwrap();
    assert_eq!(assemble(stream).await.finish.as_deref(), Some("stop"));
}

#[tokio::test]
async fn a_request_may_name_its_model() {
    let server = serve_events(&sse(&[finish("stop")], true)).await;
    let asked = LlmRequest { model: "large".to_owned(), tools: Vec::new(), tool_choice: Some("auto".to_owned()), ..request() };
    assemble(model(&server.uri()).stream(asked, &CancellationToken::new()).await.unwrap()).await;
    let sent: Value = server.received_requests().await.unwrap()[0].body_json().unwrap();
    assert_eq!((&sent["model"], sent.get("tools"), sent.get("tool_choice")), (&json!("large"), None, None));
}

#[tokio::test]
async fn reasoning_refusals_and_other_choices_are_told_apart() {
    let lines = [
        chunk(json!({ "reasoning_content": "Hm. " })),
        chunk(json!({ "reasoning": "Well.", "reasoning_content": "Well." })),
        chunk(json!({ "reasoning": " So." })),
        chunk(json!({ "content": "No: ", "tool_calls": null })),
        chunk(json!({ "refusal": "I will not." })),
        json!({ "choices": [{ "index": 1, "delta": { "content": "another choice" }, "finish_reason": "length" }] }),
        finish("stop"),
    ];
    let got = heard(&sse(&lines, true)).await;
    assert_eq!((got.reasoning.as_str(), got.text.as_str()), ("Hm. Well. So.", "No: I will not."));
    assert_eq!(got.finish.as_deref(), Some("stop"));
}

#[test_case(&[json!({ "id": "a", "function": { "name": "t", "arguments": "{\"n\":" } }), json!({ "function": { "arguments": "1}" } }),
    json!({ "id": "b", "function": { "name": "u", "arguments": "{}" } })]; "no index")]
#[test_case(&[json!({ "index": 1, "id": "a", "function": { "name": "t", "arguments": "{\"n\":" } }),
    json!({ "index": 1, "id": "a", "function": { "name": "t", "arguments": "1}" } }),
    json!({ "index": 4, "id": "b", "function": { "name": "u", "arguments": "{}" } })]; "gaps and repeated ids")]
#[test_case(&[json!({ "index": 0, "id": "a", "function": { "name": "t" } }), json!({ "index": 0, "id": "", "function": { "arguments": "{\"n\":1}" } }),
    json!({ "index": 1, "id": "b", "function": { "name": "u", "arguments": "{}" } })]; "empty ids")]
#[tokio::test]
async fn providers_that_number_calls_their_own_way_are_understood(pieces: &[Value]) {
    let mut lines: Vec<Value> = pieces.iter().map(|piece| chunk(json!({ "tool_calls": [piece] }))).collect();
    lines.push(finish("tool_calls"));
    let got = heard(&sse(&lines, true)).await;
    let calls: Vec<_> = got
        .calls
        .iter()
        .map(|call| (call.id.as_str(), call.function.name.as_str(), call.function.arguments.as_str()))
        .collect();
    assert_eq!(calls, [("a", "t", "{\"n\":1}"), ("b", "u", "{}")]);
}

#[tokio::test]
async fn a_body_that_ends_after_its_finish_reason_is_whole_without_the_end_mark() {
    let mut lines = text_chunks("Hi.");
    lines.push(finish("stop"));
    let got = heard(&sse(&lines, false)).await;
    assert_eq!((got.text.as_str(), got.finish.as_deref(), got.error), ("Hi.", Some("stop"), None));
}

#[test_case("data: {\"choices\": [\n\n", "LLM_MALFORMED"; "broken json")]
#[test_case("data: [DONE]\n\n", "LLM_MALFORMED"; "done without a finish reason")]
#[test_case("data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"name\":\"t\"}}]}}]}\n\n", "LLM_MALFORMED"; "a call without id")]
#[test_case("data: {\"error\":{\"message\":\"overloaded sk-very-secret\",\"code\":502}}\n\n", "LLM_STATUS"; "an error with a status")]
#[test_case("data: {\"error\":{\"message\":\"overloaded sk-very-secret\"}}\n\n", "LLM_TRANSPORT"; "an error without a status")]
#[test_case(": keep-alive\n\n", "LLM_TRUNCATED"; "nothing")]
#[tokio::test]
async fn a_faulty_stream_is_an_error_after_what_came(line: &str, code: &str) {
    let got = heard(&format!("{}{line}", sse(&text_chunks("Half"), false))).await;
    let error = got.error.unwrap();
    assert_eq!((got.text.as_str(), error.code()), ("Half", code));
    assert!(!error.to_string().contains(KEY), "{error}");
}

#[tokio::test]
async fn an_answer_that_is_no_event_stream_is_malformed() {
    let server = serve(ResponseTemplate::new(200).set_body_json(json!({ "choices": [] }))).await;
    let error = ask(&server).await.unwrap_err();
    assert_eq!(error.to_string(), "main: malformed answer: expected an event stream, got `application/json`");
}

#[test_case(401, "{\"error\":{\"message\":\"Incorrect API key provided: sk-very-secret.\"}}", "Incorrect API key provided: «secret:llm.main/apiKey»."; "the key is echoed")]
#[test_case(500, "{\"error\":\"out of memory\"}", "out of memory"; "error as text")]
#[test_case(404, "{\"message\":\"no such model\"}", "no such model"; "message at the top")]
#[test_case(502, "<html>Bad Gateway</html>", "<html>Bad Gateway</html>"; "no json")]
#[test_case(307, "", ""; "a redirect is not followed")]
#[tokio::test]
async fn an_error_body_of_any_shape_gives_the_message(status: u16, body: &str, message: &str) {
    let response = ResponseTemplate::new(status).set_body_string(body).insert_header("location", "http://127.0.0.1:1/");
    let error = ask(&serve(response).await).await.unwrap_err();
    let expected = LlmError::Status { connector: "main".to_owned(), status, message: message.to_owned(), retry_after_ms: None };
    assert_eq!(error, expected);
}

#[test_case("retry-after", "2.5", Some(2500))]
#[test_case("retry-after-ms", "1200", Some(1200))]
#[test_case("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT", None)]
#[test_case("retry-after", "-1", None)]
#[tokio::test]
async fn retry_after_is_read_in_its_usual_spellings(header: &str, value: &str, expected: Option<u64>) {
    let error = ask(&serve(ResponseTemplate::new(429).insert_header(header, value)).await).await.unwrap_err();
    assert!(matches!(error, LlmError::Status { retry_after_ms, .. } if retry_after_ms == expected), "{error:?}");
}

#[tokio::test]
async fn egress_is_asked_before_anything_is_sent() {
    let server = serve_events(&sse(&[finish("stop")], true)).await;
    let options = OpenAiOptions { base_url: Some(format!("{}/v1", server.uri())), ..OpenAiOptions::default() };
    let model = OpenAiChat::new(CONNECTOR, &options, LlmWorld { egress: Arc::new(DenyAll), ..world() }).unwrap();
    let error = model.stream(request(), &CancellationToken::new()).await.err().unwrap();
    assert_eq!(error.code(), "LLM_UNAVAILABLE");
    assert!(error.to_string().starts_with("llm.main may not contact 127.0.0.1:"), "{error}");
    assert!(server.received_requests().await.unwrap().is_empty());
}

#[tokio::test]
async fn a_provider_that_cannot_be_reached_is_a_transport_error_without_the_address() {
    // Port 1 of loopback: nothing listens there.
    let options =
        OpenAiOptions { base_url: Some("http://127.0.0.1:1/v1?key=sk-in-query".to_owned()), ..OpenAiOptions::default() };
    let model = OpenAiChat::new(CONNECTOR, &options, world()).unwrap();
    let error = model.stream(request(), &CancellationToken::new()).await.err().unwrap();
    assert_eq!(error.code(), "LLM_TRANSPORT");
    assert!(error.to_string().to_lowercase().contains("refused") && !error.to_string().contains("sk-in-query"), "{error}");
}

#[tokio::test]
async fn cancelling_hangs_up() {
    let (address, peer_gone) = raw_provider(sse(&text_chunks("One"), false), Then::Stall).await;
    let (world, cancel) = (world(), CancellationToken::new());
    let options = OpenAiOptions { base_url: Some(format!("http://{address}/v1")), ..OpenAiOptions::default() };
    let model = OpenAiChat::new(CONNECTOR, &options, world).unwrap();
    let mut stream = model.stream(request(), &cancel).await.unwrap();
    assert_eq!(stream.next().await, Some(Ok(LlmEvent::Text { delta: "One".to_owned() })));
    cancel.cancel();
    assert_eq!(stream.next().await, Some(Err(LlmError::Cancelled { connector: "main".to_owned() })));
    assert_eq!(stream.next().await, None);
    peer_gone.await.unwrap();
}

#[tokio::test]
async fn dropping_the_stream_hangs_up() {
    let (address, peer_gone) = raw_provider(sse(&text_chunks("One"), false), Then::Stall).await;
    let model = model(&format!("http://{address}"));
    let stream = model.stream(request(), &CancellationToken::new()).await.unwrap();
    drop(stream);
    peer_gone.await.unwrap();
}

#[test]
fn a_live_exchange_holds_a_virtual_clock() {
    let clock = greenroom_mocks::VirtualClock::new(greenroom_boundary::clock::UnixNanos(0), 0);
    clock.runtime().unwrap().block_on(async {
        let server = serve_events(&sse(&[finish("stop")], true)).await;
        let world = LlmWorld { clock: Arc::new(clock.clone()), ..world() };
        let options = OpenAiOptions { base_url: Some(format!("{}/v1", server.uri())), ..OpenAiOptions::default() };
        let model = OpenAiChat::new(CONNECTOR, &options, world).unwrap();
        let asked = async { assemble(model.stream(request(), &CancellationToken::new()).await.unwrap()).await.finish };
        let deadline = greenroom_boundary::clock::MonoNanos(1);
        let outcome = greenroom_boundary::clock::timeout_at(&clock, deadline, std::pin::pin!(asked)).await;
        assert_eq!(outcome.unwrap().as_deref(), Some("stop"), "a jump would have fired the timeout of a live exchange");
    });
    assert_eq!((clock.holds(), clock.pending_timers()), (0, 0));
}

#[test]
fn no_debug_print_shows_the_key() {
    let options = OpenAiOptions { api_key: Some(KEY.to_owned()), ..OpenAiOptions::default() };
    let model = OpenAiChat::new(CONNECTOR, &options, world()).unwrap();
    let shown = format!("{options:?} {model:?} {:?}", ChatMessage::text(Role::User, "Hello"));
    assert!(!shown.contains(KEY) && shown.contains("https://api.openai.com"), "{shown}");
}
