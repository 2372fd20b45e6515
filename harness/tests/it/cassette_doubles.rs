//! Small drivers that tests of recording, replay and faults stand on, and a host that uses them.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::{StreamExt, stream};
use greenroom_boundary::clock::UnixNanos;
use greenroom_boundary::llm::{ChatMessage, LlmCapabilities, LlmError, LlmEvent, LlmRequest, LlmStream, Role};
use greenroom_boundary::mcp::{Frame, FrameDuplex, FrameSink, FrameSource, McpError, McpTarget, ServerAddress};
use greenroom_boundary::{CancellationToken, ConnectorName, Credentials, Llm, McpConnector, ServerName};
use greenroom_harness::cassette::RedactionKey;
use greenroom_harness::record::{HeadSpec, Recording};
use greenroom_mocks::clock::VirtualClock;
use greenroom_mocks::entropy::SeededEntropy;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

pub(crate) fn clock() -> VirtualClock {
    VirtualClock::new(UnixNanos(1_786_543_387_120_000_000), 0)
}

pub(crate) fn run<T>(clock: &VirtualClock, test: impl Future<Output = T>) -> T {
    clock.runtime().unwrap().block_on(test)
}

pub(crate) fn recording(path: &Path, clock: &VirtualClock, credentials: &Credentials) -> Arc<Recording> {
    let spec = HeadSpec { id: "cas_test".to_owned(), seed: 7, spec: "2025-11-25".to_owned(), ..HeadSpec::default() };
    let key = RedactionKey::new("a project's key");
    Recording::start(path, spec, Arc::new(clock.clone()), &SeededEntropy::new(7), credentials.clone(), Some(key)).unwrap()
}

pub(crate) fn request(connector: &str, user: &str) -> LlmRequest {
    LlmRequest {
        connector: ConnectorName::new(connector),
        model: "m-1".to_owned(),
        messages: vec![ChatMessage::text(Role::User, user)],
        tools: Vec::new(),
        tool_choice: None,
        temperature: None,
        max_tokens: None,
        params: Map::new(),
        agent: Some("desk".to_owned()),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "an item of a stream")]
pub(crate) fn text(delta: &str) -> Result<LlmEvent, LlmError> {
    Ok(LlmEvent::Text { delta: delta.to_owned() })
}

#[expect(clippy::unnecessary_wraps, reason = "an item of a stream")]
pub(crate) fn finish() -> Result<LlmEvent, LlmError> {
    Ok(LlmEvent::Finish { reason: "stop".to_owned() })
}

pub(crate) type Answer = Result<Vec<Result<LlmEvent, LlmError>>, LlmError>;

/// Gives its answers in their order; an answer without a finish goes on until it is cancelled.
#[derive(Debug)]
pub(crate) struct LlmDouble(Mutex<VecDeque<Answer>>);

impl LlmDouble {
    pub(crate) fn new(answers: Vec<Answer>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(answers.into())))
    }
}

#[async_trait]
impl Llm for LlmDouble {
    fn capabilities(&self) -> LlmCapabilities {
        LlmCapabilities { tools: true, streaming: true }
    }

    async fn stream(&self, request: LlmRequest, cancel: &CancellationToken) -> Result<LlmStream, LlmError> {
        let pieces = self.0.lock().unwrap().pop_front().expect("no answer is left")?;
        let ends = pieces.iter().any(|piece| matches!(piece, Ok(LlmEvent::Finish { .. }) | Err(_)));
        let cancelled = cancel.clone().cancelled_owned();
        let rest = stream::once(async move {
            cancelled.await;
            Err(LlmError::Cancelled { connector: request.connector.to_string() })
        });
        let pieces = stream::iter(pieces).then(async |piece| {
            away().await;
            piece
        });
        Ok(if ends { pieces.boxed() } else { pieces.chain(rest).boxed() })
    }
}

/// The world takes its time: everything else that can run does so first.
async fn away() {
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
}

type Script = dyn Fn(&str, &Value) -> Vec<String> + Send + Sync;

/// Answers each frame of the host with frames of a script.
#[derive(Clone)]
pub(crate) struct McpDouble(Arc<Script>);

impl std::fmt::Debug for McpDouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("McpDouble")
    }
}

impl McpDouble {
    /// The script gets the server's name and the frame.
    pub(crate) fn new(script: impl Fn(&str, &Value) -> Vec<String> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self(Arc::new(script)))
    }
}

struct DoubleSink {
    server: String,
    script: Arc<Script>,
    out: Option<mpsc::UnboundedSender<String>>,
}

struct DoubleSource(mpsc::UnboundedReceiver<String>);

#[async_trait]
impl McpConnector for McpDouble {
    async fn open(&self, target: &McpTarget, _cancel: &CancellationToken) -> Result<FrameDuplex, McpError> {
        if target.server.as_str() == "absent" {
            return Err(McpError::Unreachable { server: "absent".to_owned(), message: "no such program".to_owned() });
        }
        away().await;
        let (out, source) = mpsc::unbounded_channel();
        let sink = DoubleSink { server: target.server.to_string(), script: self.0.clone(), out: Some(out) };
        Ok(FrameDuplex { sink: Box::new(sink), source: Box::new(DoubleSource(source)) })
    }
}

#[async_trait]
impl FrameSink for DoubleSink {
    async fn send(&mut self, frame: Frame) -> Result<(), McpError> {
        let message: Value = serde_json::from_slice(&frame.0).unwrap();
        for answer in (self.script)(&self.server, &message) {
            if answer == "END" {
                self.out = None;
            } else if let Some(out) = &self.out {
                let _ = out.send(answer);
            }
        }
        Ok(())
    }

    async fn close(&mut self) {
        self.out = None;
    }
}

#[async_trait]
impl FrameSource for DoubleSource {
    async fn next(&mut self) -> Option<Result<Frame, McpError>> {
        away().await;
        self.0.recv().await.map(|text| Ok(Frame::from(text)))
    }
}

pub(crate) fn target(server: &str) -> McpTarget {
    McpTarget { server: ServerName::new(server), address: ServerAddress::Simulated }
}

pub(crate) fn call(id: u64, tool: &str, arguments: Value) -> String {
    let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": id } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

pub(crate) fn result(id: &Value, value: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": value }).to_string()
}

/// An open connection of the test's host.
pub(crate) struct Session(pub(crate) FrameDuplex);

impl Session {
    pub(crate) async fn open(driver: &dyn McpConnector, server: &str) -> Self {
        Self(driver.open(&target(server), &CancellationToken::new()).await.unwrap())
    }

    pub(crate) async fn send(&mut self, frame: String) -> Result<(), McpError> {
        self.0.sink.ready().await?;
        self.0.sink.send(Frame::from(frame)).await
    }

    pub(crate) async fn next(&mut self) -> String {
        match self.0.source.next().await {
            Some(Ok(frame)) => frame.to_text(),
            Some(Err(error)) => format!("{}: {error}", error.code()),
            None => "END".to_owned(),
        }
    }
}

/// The pieces of a completion as text.
pub(crate) async fn complete(llm: &dyn Llm, request: LlmRequest) -> Vec<String> {
    match llm.stream(request, &CancellationToken::new()).await {
        Err(error) => vec![format!("{}: {error}", error.code())],
        Ok(stream) => {
            stream
                .map(|piece| piece.map_or_else(|error| error.code().to_owned(), |piece| json!(piece).to_string()))
                .collect()
                .await
        }
    }
}
