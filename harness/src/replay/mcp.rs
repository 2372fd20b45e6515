//! Serves recorded connections to MCP servers.
//!
//! Invariant: frames come as they were recorded, but for the host's own ids and progress tokens, which are those of now.
//! Deliberately no understanding of MCP beyond that.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::future::{Either, select};
use greenroom_boundary::mcp::{Frame, FrameDuplex, FrameSink, FrameSource, McpError, McpTarget};
use greenroom_boundary::{CancellationToken, McpConnector};
use serde_json::Value;

use super::Replay;
use super::schedule::{Event, Fate, Index, What};
use super::session::Asked;
use crate::cassette::body;
use crate::cassette::envelope::{Envelope, Kind};
use crate::cassette::failure::{At, at, to_mcp};
use crate::record::mcp::connect_request;

/// The MCP connector of a replay.
#[derive(Clone, Debug)]
pub struct ReplayMcp(pub(super) Arc<Replay>);

#[async_trait]
impl McpConnector for ReplayMcp {
    async fn open(&self, target: &McpTarget, cancel: &CancellationToken) -> Result<FrameDuplex, McpError> {
        let server = target.server.to_string();
        let lane = format!("mcp.{server}");
        let body = connect_request(target);
        // Any recorded connection of the lane will do; the first is as good as the others.
        let conn = self
            .0
            .schedule
            .first_pending(|event| event.lane == lane && is_connect(event))
            .map(|i| self.0.schedule.events[i].conn);
        let asked = Asked { lane: &lane, op: "connect", scope: &lane, conn: conn.unwrap_or_default(), body: &body };
        let open =
            self.0.find(&asked).map_err(|miss| McpError::Denied { server: server.clone(), message: miss.to_string() })?;
        let mut guard = ConnectGuard { replay: self.0.clone(), open, done: false };
        let connecting = async {
            self.0.schedule.turn(open).await;
            self.0.schedule.reproduced(open);
            match self.0.schedule.answers(open).first().copied() {
                Some(answer) if !matches!(self.0.schedule.events[answer].what, What::GivenUp) => {
                    self.0.schedule.release(answer).await;
                    self.0.schedule.reproduced(answer);
                    answer
                }
                _ => std::future::pending().await,
            }
        };
        let answer = match select(Box::pin(cancel.cancelled()), Box::pin(connecting)).await {
            Either::Left(_) => return Err(McpError::Cancelled { server }),
            Either::Right((answer, _)) => answer,
        };
        guard.done = true;
        if let What::Close { body: Some(body), .. } = &self.0.schedule.events[answer].what {
            return Err(to_mcp(&serde_json::from_str(body).unwrap_or_default()));
        }
        let conn = self.0.schedule.events[open].conn;
        let connection = Arc::new(Connection { replay: self.0.clone(), server, lane, conn, state: Mutex::default() });
        Ok(FrameDuplex {
            sink: Box::new(ReplaySink(connection.clone())),
            source: Box::new(ReplaySource { connection, ended: false, lost_id: None }),
        })
    }
}

fn is_connect(event: &Event) -> bool {
    matches!(&event.what, What::Open { op, .. } if op == "connect")
}

/// Gives a connect up that is cancelled or dropped.
struct ConnectGuard {
    replay: Arc<Replay>,
    open: Index,
    done: bool,
}

impl Drop for ConnectGuard {
    fn drop(&mut self) {
        if !self.done {
            self.replay.abandon(self.replay.schedule.answers(self.open), false);
        }
    }
}

struct Connection {
    replay: Arc<Replay>,
    server: String,
    lane: String,
    /// The recorded connection that this one repeats.
    conn: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Exchanges under way, by the live id of their request.
    by_live_id: BTreeMap<String, Index>,
    /// Live id and progress token of each exchange.
    live: BTreeMap<Index, Live>,
    closed: bool,
}

#[derive(Clone, Default)]
struct Live {
    id: Option<String>,
    token: Option<String>,
}

impl Connection {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_mine(&self, event: &Event) -> bool {
        event.conn == self.conn && event.lane == self.lane
    }

    fn asked<'a>(&'a self, op: &'a str, body: &'a str) -> Asked<'a> {
        Asked { lane: &self.lane, op, scope: &self.lane, conn: self.conn, body }
    }

    fn closed_error(&self) -> McpError {
        McpError::Closed { server: self.server.clone(), message: "the connection was closed by the host".to_owned() }
    }

    /// The next frame that the host sent when it was recorded.
    fn next_outbound(&self) -> Option<Index> {
        self.replay.schedule.first_pending(|event| {
            self.is_mine(event) && matches!(event.what, What::Open { .. } | What::NoteOut { .. }) && !is_connect(event)
        })
    }

    fn request(&self, envelope: &Envelope, text: &str) -> Result<Index, McpError> {
        let found = self.replay.find(&self.asked(envelope.op(), text));
        let index = found.map_err(|miss| McpError::Denied { server: self.server.clone(), message: miss.to_string() })?;
        let live = Live { id: envelope.id.clone(), token: envelope.progress_token().map(str::to_owned) };
        let mut state = self.state();
        if let Some(id) = &live.id {
            state.by_live_id.insert(id.clone(), index);
        }
        state.live.insert(index, live);
        Ok(index)
    }

    /// The recorded id of the request that a live id stands for.
    fn recorded_id(&self, live: &str) -> Option<String> {
        let index = *self.state().by_live_id.get(live)?;
        match &self.replay.schedule.events[index].what {
            What::Open { body, .. } => Envelope::of(&body::to_frame(body).to_text()).id,
            _ => None,
        }
    }

    /// A one-way frame; one that was not recorded is a problem, but no reason to break the connection.
    fn one_way(&self, envelope: &Envelope, text: String) -> Option<Index> {
        let recorded = envelope.cancels().and_then(|live| self.recorded_id(live));
        let text = match recorded {
            Some(id) => envelope.with(&["params", "requestId"], &id),
            None => text,
        };
        self.replay.find_note(&self.asked(envelope.op(), &text)).ok()
    }

    /// The frame, or the end, that a recorded event stands for.
    fn delivery(&self, index: Index) -> Delivery {
        let event = &self.replay.schedule.events[index];
        let (What::NoteIn { body } | What::Close { body: Some(body), .. }) = &event.what else { return Delivery::Nothing };
        if let Some(end) = ended(body) {
            let live = event.of.and_then(|of| self.state().live.get(&of)?.id.clone());
            let lost_id = live.or_else(|| end["lost_id"].as_str().map(str::to_owned));
            return Delivery::End((!end.is_null()).then(|| to_mcp(&end)), lost_id);
        }
        let frame = body::to_frame(body);
        let live = event.of.and_then(|of| self.state().live.get(&of).cloned()).unwrap_or_default();
        let envelope = Envelope::of(&frame.to_text());
        let rewritten = match envelope.kind {
            Kind::Result | Kind::Error => {
                live.id.filter(|id| envelope.id.as_deref() != Some(id.as_str())).map(|id| envelope.with(&["id"], &id))
            }
            Kind::Notification => live
                .token
                .filter(|token| envelope.reports_on().is_some_and(|recorded| recorded != token.as_str()))
                .map(|token| envelope.with(&["params", "progressToken"], &token)),
            Kind::Request | Kind::Other => None,
        };
        Delivery::Frame(rewritten.map_or(frame, Frame::from))
    }

    /// A send that failed when it was recorded fails again.
    async fn failed_send(&self, index: Index) -> Result<(), McpError> {
        let Some(answer) = self.replay.schedule.answers(index).first().copied() else { return Ok(()) };
        let Some(error) = send_failure(&self.replay.schedule.events[answer].what) else { return Ok(()) };
        self.replay.schedule.release(answer).await;
        self.replay.schedule.reproduced(answer);
        Err(error)
    }

    /// What is still to come on this connection will not come.
    fn close(&self) {
        if std::mem::replace(&mut self.state().closed, true) {
            return;
        }
        let events = &self.replay.schedule.events;
        let left: Vec<Index> =
            (0..events.len()).filter(|index| self.is_mine(&events[*index]) && !is_connect(&events[*index])).collect();
        self.replay.schedule.skip(left);
    }
}

enum Delivery {
    Frame(Frame),
    /// The end, or a frame that was too large, with the id that it answered.
    End(Option<McpError>, Option<String>),
    Nothing,
}

fn ended(body: &str) -> Option<Value> {
    if !body.starts_with("{\"$end\":") {
        return None;
    }
    let body: Value = serde_json::from_str(body).ok()?;
    body.get("$end").cloned()
}

fn send_failure(what: &What) -> Option<McpError> {
    let What::Close { outcome: greenroom_boundary::trace::Outcome::Lost, body: Some(body) } = what else { return None };
    let body = serde_json::from_str(body).unwrap_or_default();
    (at(&body) == At::Start).then(|| to_mcp(&body))
}

struct ReplaySink(Arc<Connection>);

#[async_trait]
impl FrameSink for ReplaySink {
    async fn ready(&mut self) -> Result<(), McpError> {
        let schedule = &self.0.replay.schedule;
        let mut watch = schedule.watch();
        while schedule.is_strict() {
            watch.borrow_and_update();
            if self.0.state().closed {
                return Err(self.0.closed_error());
            }
            match self.0.next_outbound() {
                Some(index) if !schedule.is_due(index) => {
                    if watch.changed().await.is_err() {
                        break;
                    }
                }
                _ => break,
            }
        }
        Ok(())
    }

    async fn send(&mut self, frame: Frame) -> Result<(), McpError> {
        self.ready().await?;
        if self.0.state().closed {
            return Err(self.0.closed_error());
        }
        let envelope = Envelope::of(&frame.to_text());
        let text = body::from_frame(&frame);
        if envelope.kind == Kind::Request {
            let index = self.0.request(&envelope, &text)?;
            self.0.replay.schedule.reproduced(index);
            return self.0.failed_send(index).await;
        }
        if let Some(index) = self.0.one_way(&envelope, text) {
            self.0.replay.schedule.reproduced(index);
        }
        Ok(())
    }

    async fn close(&mut self) {
        self.0.close();
    }
}

struct ReplaySource {
    connection: Arc<Connection>,
    ended: bool,
    lost_id: Option<String>,
}

impl ReplaySource {
    /// The next event for the reader that may happen now.
    fn due(&self) -> Option<Index> {
        let schedule = &self.connection.replay.schedule;
        schedule.first_due(|event| {
            let for_reader = match &event.what {
                What::NoteIn { .. } => true,
                What::Close { .. } => {
                    send_failure(&event.what).is_none() && !event.of.is_some_and(|of| is_connect(&schedule.events[of]))
                }
                _ => false,
            };
            for_reader && self.connection.is_mine(event)
        })
    }
}

#[async_trait]
impl FrameSource for ReplaySource {
    async fn next(&mut self) -> Option<Result<Frame, McpError>> {
        let schedule = &self.connection.replay.schedule;
        let mut watch = schedule.watch();
        while !self.ended {
            watch.borrow_and_update();
            if self.connection.state().closed {
                return None;
            }
            let Some(index) = self.due() else {
                watch.changed().await.ok()?;
                continue;
            };
            schedule.settle(index).await;
            if schedule.fate(index) != Fate::Pending {
                continue;
            }
            let delivery = self.connection.delivery(index);
            schedule.reproduced(index);
            match delivery {
                Delivery::Frame(frame) => return Some(Ok(frame)),
                Delivery::End(error, lost_id) => {
                    self.lost_id = lost_id;
                    self.ended = !matches!(error, Some(McpError::TooLarge { .. }));
                    return error.map(Err);
                }
                Delivery::Nothing => {}
            }
        }
        None
    }

    fn lost_id(&self) -> Option<String> {
        self.lost_id.clone()
    }
}

impl Drop for ReplaySource {
    fn drop(&mut self) {
        // With nobody to read, what is left cannot be delivered; others must not wait for it.
        self.connection.close();
    }
}
