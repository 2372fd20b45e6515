//! Keeps a virtual clock from jumping while something live is under way.
//!
//! Invariant: a hold lives from the moment a request leaves the host until its answer has reached the host's reader, and
//! never longer than the connection or stream. A request that the host cancels holds no more. Deliberately nothing about
//! what a live server says unasked: when that arrives is up to the real world.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use async_trait::async_trait;
use futures::Stream;
use greenroom_boundary::cli::{CliError, CliEvent, CliRunner, CliStream, CommandSpec};
use greenroom_boundary::clock::Hold;
use greenroom_boundary::llm::{LlmCapabilities, LlmError, LlmRequest, LlmStream};
use greenroom_boundary::mcp::{Frame, FrameDuplex, FrameSink, FrameSource, McpError, McpTarget};
use greenroom_boundary::{BoxStream, CancellationToken, Clock, Llm, McpConnector};

use crate::cassette::envelope::{Envelope, Kind};

/// A live LLM driver that holds the clock.
#[derive(Clone, Debug)]
pub struct HoldingLlm {
    inner: Arc<dyn Llm>,
    clock: Arc<dyn Clock>,
}

impl HoldingLlm {
    /// Holds `clock` during each completion.
    pub fn new(inner: Arc<dyn Llm>, clock: Arc<dyn Clock>) -> Self {
        Self { inner, clock }
    }
}

#[async_trait]
impl Llm for HoldingLlm {
    fn capabilities(&self) -> LlmCapabilities {
        self.inner.capabilities()
    }

    async fn stream(&self, request: LlmRequest, cancel: &CancellationToken) -> Result<LlmStream, LlmError> {
        let hold = self.clock.hold();
        let inner = self.inner.stream(request, cancel).await?;
        Ok(Box::pin(Held { inner, hold: Some(hold), is_last: |item| item.is_err() }))
    }
}

/// A live CLI runner that holds the clock.
#[derive(Clone, Debug)]
pub struct HoldingCli {
    inner: Arc<dyn CliRunner>,
    clock: Arc<dyn Clock>,
}

impl HoldingCli {
    /// Holds `clock` during each run.
    pub fn new(inner: Arc<dyn CliRunner>, clock: Arc<dyn Clock>) -> Self {
        Self { inner, clock }
    }
}

#[async_trait]
impl CliRunner for HoldingCli {
    async fn run(&self, command: CommandSpec, cancel: &CancellationToken) -> Result<CliStream, CliError> {
        let hold = self.clock.hold();
        let inner = self.inner.run(command, cancel).await?;
        Ok(Box::pin(Held { inner, hold: Some(hold), is_last: |item| matches!(item, Err(_) | Ok(CliEvent::Exit(_))) }))
    }
}

/// A stream that holds the clock until its last item.
struct Held<T> {
    inner: BoxStream<'static, T>,
    hold: Option<Hold>,
    is_last: fn(&T) -> bool,
}

impl<T> Stream for Held<T> {
    type Item = T;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let polled = self.inner.as_mut().poll_next(cx);
        let over = match &polled {
            Poll::Ready(Some(item)) => (self.is_last)(item),
            Poll::Ready(None) => true,
            Poll::Pending => false,
        };
        if over {
            self.hold = None;
        }
        polled
    }
}

/// A live MCP connector that holds the clock.
#[derive(Clone, Debug)]
pub struct HoldingMcp {
    inner: Arc<dyn McpConnector>,
    clock: Arc<dyn Clock>,
}

impl HoldingMcp {
    /// Holds `clock` while a connection is opened and during each exchange.
    pub fn new(inner: Arc<dyn McpConnector>, clock: Arc<dyn Clock>) -> Self {
        Self { inner, clock }
    }
}

/// The holds of a connection, by the id of the request under way.
type Holds = Arc<Mutex<BTreeMap<String, Hold>>>;

#[async_trait]
impl McpConnector for HoldingMcp {
    async fn open(&self, target: &McpTarget, cancel: &CancellationToken) -> Result<FrameDuplex, McpError> {
        let _opening = self.clock.hold();
        let FrameDuplex { sink, source } = self.inner.open(target, cancel).await?;
        let holds = Holds::default();
        Ok(FrameDuplex {
            sink: Box::new(HoldingSink { inner: sink, holds: holds.clone(), clock: self.clock.clone() }),
            source: Box::new(HoldingSource { inner: source, holds }),
        })
    }
}

fn edit(holds: &Holds, change: impl FnOnce(&mut BTreeMap<String, Hold>)) {
    change(&mut holds.lock().unwrap_or_else(PoisonError::into_inner));
}

struct HoldingSink {
    inner: Box<dyn FrameSink>,
    holds: Holds,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl FrameSink for HoldingSink {
    async fn ready(&mut self) -> Result<(), McpError> {
        self.inner.ready().await
    }

    async fn send(&mut self, frame: Frame) -> Result<(), McpError> {
        let _sending = self.clock.hold();
        let envelope = Envelope::of(&frame.to_text());
        if let (Kind::Request, Some(id)) = (envelope.kind, &envelope.id) {
            edit(&self.holds, |holds| {
                holds.insert(id.clone(), self.clock.hold());
            });
        }
        let sent = self.inner.send(frame).await;
        if let Some(id) = envelope.cancels() {
            edit(&self.holds, |holds| {
                holds.remove(id);
            });
        }
        if sent.is_err() {
            edit(&self.holds, BTreeMap::clear);
        }
        sent
    }

    async fn close(&mut self) {
        edit(&self.holds, BTreeMap::clear);
        let _closing = self.clock.hold();
        self.inner.close().await;
    }
}

struct HoldingSource {
    inner: Box<dyn FrameSource>,
    holds: Holds,
}

#[async_trait]
impl FrameSource for HoldingSource {
    async fn next(&mut self) -> Option<Result<Frame, McpError>> {
        let next = self.inner.next().await;
        match &next {
            Some(Ok(frame)) => {
                let envelope = Envelope::of(&frame.to_text());
                if let (Kind::Result | Kind::Error, Some(id)) = (envelope.kind, &envelope.id) {
                    edit(&self.holds, |holds| {
                        holds.remove(id);
                    });
                }
            }
            Some(Err(McpError::TooLarge { .. })) => {}
            Some(Err(_)) | None => edit(&self.holds, BTreeMap::clear),
        }
        next
    }

    fn lost_id(&self) -> Option<String> {
        self.inner.lost_id()
    }
}

impl Drop for HoldingSource {
    fn drop(&mut self) {
        edit(&self.holds, BTreeMap::clear);
    }
}
