//! Records connections to MCP servers, frame by frame.
//!
//! Invariant: frames pass through untouched. A request of the host opens an exchange that the server's answer closes; all
//! other frames are notes. The end of a connection is a note `{"$end": …}`, unless the host closed it; what comes after that
//! is not recorded. Deliberately no
//! record of failed sends of one-way frames: the end of the connection tells.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use greenroom_boundary::mcp::{Frame, FrameDuplex, FrameSink, FrameSource, McpError, McpTarget};
use greenroom_boundary::trace::{Direction, Outcome};
use greenroom_boundary::{CancellationToken, McpConnector};
use serde_json::{Value, json};

use super::Recording;
use super::recording::{NoteAt, Opening};
use crate::cassette::body;
use crate::cassette::envelope::{Envelope, Kind};
use crate::cassette::failure::{At, from_mcp};

/// An MCP connector that is recorded.
#[derive(Clone, Debug)]
pub struct RecordingMcp {
    inner: Arc<dyn McpConnector>,
    recording: Arc<Recording>,
    connections: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl RecordingMcp {
    /// Records what passes to and from `inner`.
    pub fn new(inner: Arc<dyn McpConnector>, recording: Arc<Recording>) -> Self {
        Self { inner, recording, connections: Arc::default() }
    }

    fn next_connection(&self, lane: &str) -> u64 {
        let mut connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let next = connections.entry(lane.to_owned()).or_insert(0);
        *next += 1;
        *next - 1
    }
}

/// The request of a connection as it is recorded and matched: addresses may hold secrets and differ between machines.
pub(crate) fn connect_request(target: &McpTarget) -> String {
    json!({ "server": target.server }).to_string()
}

#[async_trait]
impl McpConnector for RecordingMcp {
    async fn open(&self, target: &McpTarget, cancel: &CancellationToken) -> Result<FrameDuplex, McpError> {
        let lane = format!("mcp.{}", target.server);
        let conn = self.next_connection(&lane);
        let body = connect_request(target);
        let of = self.recording.open(&Opening { lane: &lane, op: "connect", scope: &lane, conn, body: &body });
        let mut opening = OpenGuard { recording: self.recording.clone(), of, closed: false };
        match self.inner.open(target, cancel).await {
            Err(error) => {
                let outcome = if matches!(error, McpError::Cancelled { .. }) { Outcome::Cancelled } else { Outcome::Error };
                opening.close(outcome, Some(&from_mcp(At::Start, &error).to_string()));
                Err(error)
            }
            Ok(duplex) => {
                let last = opening.close(Outcome::Ok, None);
                let connection = Arc::new(Connection {
                    recording: self.recording.clone(),
                    lane,
                    conn,
                    state: Mutex::new(ConnectionState { last, ..ConnectionState::default() }),
                });
                Ok(FrameDuplex {
                    sink: Box::new(RecordedSink { inner: duplex.sink, connection: connection.clone() }),
                    source: Box::new(RecordedSource { inner: duplex.source, connection }),
                })
            }
        }
    }
}

/// Closes the exchange of a connect that is given up.
struct OpenGuard {
    recording: Arc<Recording>,
    of: u64,
    closed: bool,
}

impl OpenGuard {
    fn close(&mut self, outcome: Outcome, body: Option<&str>) -> u64 {
        self.closed = true;
        self.recording.close(self.of, outcome, body, None)
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        if !self.closed {
            self.close(Outcome::Cancelled, None);
        }
    }
}

struct Connection {
    recording: Arc<Recording>,
    lane: String,
    conn: u64,
    state: Mutex<ConnectionState>,
}

#[derive(Default)]
struct ConnectionState {
    pending: BTreeMap<String, u64>,
    tokens: BTreeMap<String, u64>,
    last: u64,
    ended: bool,
}

impl Connection {
    fn state(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sent(&self, frame: &Frame) -> Option<u64> {
        let envelope = Envelope::of(&frame.to_text());
        let text = body::from_frame(frame);
        let mut state = self.state();
        if envelope.kind != Kind::Request {
            let of = envelope.cancels().and_then(|id| state.pending.get(id)).copied();
            state.last = self.note(Direction::Out, of, state.last, &text);
            return None;
        }
        let opening = Opening { lane: &self.lane, op: envelope.op(), scope: &self.lane, conn: self.conn, body: &text };
        let seq = self.recording.open(&opening);
        if let Some(token) = envelope.progress_token() {
            state.tokens.insert(token.to_owned(), seq);
        }
        if let Some(id) = envelope.id {
            state.pending.insert(id, seq);
        }
        state.last = seq;
        Some(seq)
    }

    fn received(&self, frame: &Frame) {
        let envelope = Envelope::of(&frame.to_text());
        let text = body::from_frame(frame);
        let mut state = self.state();
        if state.ended {
            return;
        }
        let answers = match envelope.kind {
            Kind::Result | Kind::Error => envelope.id.as_deref().and_then(|id| state.pending.remove(id)),
            _ => None,
        };
        state.last = match answers {
            Some(of) => {
                let outcome = if envelope.kind == Kind::Error { Outcome::Error } else { Outcome::Ok };
                self.recording.close(of, outcome, Some(&text), None)
            }
            None => {
                let of = envelope.reports_on().and_then(|token| state.tokens.get(token)).copied();
                self.note(Direction::In, of, state.last, &text)
            }
        };
    }

    fn ended(&self, error: Option<&McpError>, lost_id: Option<String>) {
        let mut state = self.state();
        let mut end = error.map_or(Value::Null, |error| from_mcp(At::Stream, error));
        let of = lost_id.as_ref().and_then(|id| state.pending.remove(id));
        if let Some(id) = lost_id {
            end["lost_id"] = Value::String(id);
        }
        let last_word = !matches!(error, Some(McpError::TooLarge { .. }));
        if !state.ended {
            state.last = self.note(Direction::In, of, state.last, &json!({ "$end": end }).to_string());
            state.ended = last_word;
        }
    }

    fn note(&self, dir: Direction, of: Option<u64>, last: u64, text: &str) -> u64 {
        let at = NoteAt { lane: &self.lane, dir, of, anchor: Some(last), conn: self.conn };
        self.recording.note(&at, text)
    }
}

struct RecordedSink {
    inner: Box<dyn FrameSink>,
    connection: Arc<Connection>,
}

#[async_trait]
impl FrameSink for RecordedSink {
    async fn ready(&mut self) -> Result<(), McpError> {
        self.inner.ready().await
    }

    async fn send(&mut self, frame: Frame) -> Result<(), McpError> {
        let opened = self.connection.sent(&frame);
        let sent = self.inner.send(frame).await;
        if let (Err(error), Some(of)) = (&sent, opened) {
            let mut state = self.connection.state();
            state.pending.retain(|_, seq| *seq != of);
            state.last =
                self.connection.recording.close(of, Outcome::Lost, Some(&from_mcp(At::Start, error).to_string()), None);
        }
        sent
    }

    async fn close(&mut self) {
        self.connection.state().ended = true;
        self.inner.close().await;
    }
}

struct RecordedSource {
    inner: Box<dyn FrameSource>,
    connection: Arc<Connection>,
}

#[async_trait]
impl FrameSource for RecordedSource {
    async fn next(&mut self) -> Option<Result<Frame, McpError>> {
        let next = self.inner.next().await;
        self.connection.recording.gate.pass().await;
        match &next {
            Some(Ok(frame)) => self.connection.received(frame),
            Some(Err(error)) => self.connection.ended(Some(error), self.inner.lost_id()),
            None => self.connection.ended(None, None),
        }
        next
    }

    fn lost_id(&self) -> Option<String> {
        self.inner.lost_id()
    }
}
