//! Faults on connections to MCP servers.
//!
//! Invariant: a connection that no fault names passes untouched. On others a pump reads ahead, so that a late frame does not
//! hold up the frames behind it. Deliberately faults on the host's requests and their answers only.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use greenroom_boundary::clock::sleep;
use greenroom_boundary::mcp::{Frame, FrameDuplex, FrameSink, FrameSource, McpError, McpTarget};
use greenroom_boundary::{CancellationToken, Clock, McpConnector, Tracer};
use serde_json::json;
use tokio::sync::{Mutex as AsyncMutex, mpsc};
use tokio::task::JoinHandle;

use super::{FaultAction, FaultPhase, FaultPlan, Strike};
use crate::cassette::envelope::{Envelope, Kind};

/// An MCP connector with faults.
#[derive(Clone, Debug)]
pub struct FaultyMcp {
    inner: Arc<dyn McpConnector>,
    plan: FaultPlan,
    clock: Arc<dyn Clock>,
    tracer: Tracer,
}

impl FaultyMcp {
    /// Strikes what passes to and from `inner`.
    pub fn new(inner: Arc<dyn McpConnector>, plan: FaultPlan, clock: Arc<dyn Clock>, tracer: Tracer) -> Self {
        Self { inner, plan, clock, tracer }
    }
}

#[async_trait]
impl McpConnector for FaultyMcp {
    async fn open(&self, target: &McpTarget, cancel: &CancellationToken) -> Result<FrameDuplex, McpError> {
        let duplex = self.inner.open(target, cancel).await?;
        let boundary = format!("mcp.{}", target.server);
        if !self.plan.touches(&boundary) {
            return Ok(duplex);
        }
        let (arrivals, arriving) = mpsc::unbounded_channel();
        let line = Arc::new(Line {
            driver: self.clone(),
            server: target.server.to_string(),
            boundary,
            sink: AsyncMutex::new(duplex.sink),
            arrivals,
            state: Mutex::default(),
        });
        let pump = tokio::spawn(pump(duplex.source, line.clone()));
        line.state().tasks.push(pump);
        Ok(FrameDuplex {
            sink: Box::new(FaultySink(line.clone())),
            source: Box::new(FaultySource { line, arriving, over: false, lost_id: None }),
        })
    }
}

/// What reaches the host's reader.
enum Arrival {
    Frame(Frame),
    Error(McpError, Option<String>),
    End,
}

/// A connection with faults.
struct Line {
    driver: FaultyMcp,
    server: String,
    boundary: String,
    sink: AsyncMutex<Box<dyn FrameSink>>,
    arrivals: mpsc::UnboundedSender<Arrival>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What awaits the answers of requests under way, by id, with the method.
    awaiting: BTreeMap<String, (String, Strike)>,
    tasks: Vec<JoinHandle<()>>,
    broken: bool,
}

impl Line {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fired(&self, method: &str, strike: &Strike) {
        self.driver.plan.fired(&self.driver.tracer, &self.boundary, method, strike);
    }

    fn arrive(&self, arrival: Arrival) {
        // Nobody reads any more: then nobody misses it.
        let _ = self.arrivals.send(arrival);
    }

    fn later(self: &Arc<Self>, task: impl Future<Output = ()> + Send + 'static) {
        let mut state = self.state();
        state.tasks.retain(|task| !task.is_finished());
        state.tasks.push(tokio::spawn(task));
    }

    fn broken_error(&self) -> McpError {
        McpError::Closed { server: self.server.clone(), message: "the connection was broken by an injected fault".to_owned() }
    }

    fn disconnect(self: &Arc<Self>) {
        if std::mem::replace(&mut self.state().broken, true) {
            return;
        }
        self.arrive(Arrival::Error(self.broken_error(), None));
        let line = self.clone();
        self.later(async move { line.sink.lock().await.close().await });
    }

    async fn send(&self, frame: Frame) -> Result<(), McpError> {
        self.sink.lock().await.send(frame).await
    }

    /// A request on its way out, with a fault that strikes it there.
    async fn struck_request(self: &Arc<Self>, frame: Frame, envelope: &Envelope, strike: Strike) -> Result<(), McpError> {
        self.fired(&envelope.method, &strike);
        match strike.action.clone() {
            FaultAction::Delay(by) => {
                let line = self.clone();
                self.later(async move {
                    sleep(&*line.driver.clock, by).await;
                    if let Err(error) = line.send(frame).await {
                        line.arrive(Arrival::Error(error, None));
                    }
                });
                Ok(())
            }
            FaultAction::Hang => {
                if let Some(id) = &envelope.id {
                    self.state().awaiting.insert(id.clone(), (envelope.method.clone(), strike));
                }
                self.send(frame).await
            }
            FaultAction::Drop => Ok(()),
            FaultAction::Error { code, message } => {
                self.arrive(Arrival::Frame(error_answer(envelope.id.as_deref(), code, &message)));
                Ok(())
            }
            FaultAction::Disconnect => {
                self.disconnect();
                Ok(())
            }
        }
    }

    /// A frame on its way in.
    fn received(self: &Arc<Self>, frame: Frame) {
        let envelope = Envelope::of(&frame.to_text());
        let struck = match (envelope.kind, &envelope.id) {
            (Kind::Result | Kind::Error, Some(id)) => self.state().awaiting.remove(id),
            _ => None,
        };
        let Some((method, strike)) = struck else {
            self.arrive(Arrival::Frame(frame));
            return;
        };
        if strike.phase == FaultPhase::Response {
            self.fired(&method, &strike);
        }
        match strike.action {
            FaultAction::Delay(by) => {
                let line = self.clone();
                self.later(async move {
                    sleep(&*line.driver.clock, by).await;
                    line.arrive(Arrival::Frame(frame));
                });
            }
            FaultAction::Hang | FaultAction::Drop => {}
            FaultAction::Error { code, message } => {
                self.arrive(Arrival::Frame(error_answer(envelope.id.as_deref(), code, &message)));
            }
            FaultAction::Disconnect => self.disconnect(),
        }
    }
}

fn error_answer(id: Option<&str>, code: i64, message: &str) -> Frame {
    let error = json!({ "code": code, "message": message });
    Frame::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{error}}}", id.unwrap_or("null")))
}

/// Reads ahead until the connection ends.
async fn pump(mut source: Box<dyn FrameSource>, line: Arc<Line>) {
    loop {
        match source.next().await {
            Some(Ok(frame)) => line.received(frame),
            Some(Err(error)) => {
                let last = !matches!(error, McpError::TooLarge { .. });
                line.arrive(Arrival::Error(error, source.lost_id()));
                if last {
                    return;
                }
            }
            None => {
                line.arrive(Arrival::End);
                return;
            }
        }
    }
}

struct FaultySink(Arc<Line>);

#[async_trait]
impl FrameSink for FaultySink {
    async fn ready(&mut self) -> Result<(), McpError> {
        self.0.sink.lock().await.ready().await
    }

    async fn send(&mut self, frame: Frame) -> Result<(), McpError> {
        if self.0.state().broken {
            return Err(self.0.broken_error());
        }
        let envelope = Envelope::of(&frame.to_text());
        let strike = match envelope.kind {
            Kind::Request => self.0.driver.plan.exchange(&self.0.boundary, &envelope.method),
            _ => None,
        };
        match (strike, &envelope.id) {
            (Some(strike), Some(id)) if strike.phase == FaultPhase::Response => {
                self.0.state().awaiting.insert(id.clone(), (envelope.method.clone(), strike));
                self.0.send(frame).await
            }
            (Some(strike), _) => self.0.struck_request(frame, &envelope, strike).await,
            (None, _) => self.0.send(frame).await,
        }
    }

    async fn close(&mut self) {
        self.0.sink.lock().await.close().await;
    }
}

struct FaultySource {
    line: Arc<Line>,
    arriving: mpsc::UnboundedReceiver<Arrival>,
    over: bool,
    lost_id: Option<String>,
}

#[async_trait]
impl FrameSource for FaultySource {
    async fn next(&mut self) -> Option<Result<Frame, McpError>> {
        if self.over {
            return None;
        }
        match self.arriving.recv().await? {
            Arrival::Frame(frame) => Some(Ok(frame)),
            Arrival::Error(error, lost_id) => {
                self.lost_id = lost_id;
                self.over = !matches!(error, McpError::TooLarge { .. });
                Some(Err(error))
            }
            Arrival::End => {
                self.over = true;
                None
            }
        }
    }

    fn lost_id(&self) -> Option<String> {
        self.lost_id.clone()
    }
}

impl Drop for FaultySource {
    fn drop(&mut self) {
        // The pump and the late frames go with the connection.
        for task in self.line.state().tasks.drain(..) {
            task.abort();
        }
    }
}
