//! A connection within the process.
//!
//! Invariant: frames come out as they went in, in order; a full pipe makes the writer wait. Deliberately no copying.

use async_trait::async_trait;
use greenroom_boundary::mcp::{Frame, FrameDuplex, FrameSink, FrameSource, McpError};
use tokio::sync::mpsc;

/// How many frames wait in one direction before the writer does.
const CAPACITY: usize = 256;

/// Two ends of a connection; `server` names it in errors.
pub fn pipe(server: &str) -> (FrameDuplex, FrameDuplex) {
    let (to_b, from_a) = mpsc::channel(CAPACITY);
    let (to_a, from_b) = mpsc::channel(CAPACITY);
    let end = |sender, receiver| FrameDuplex {
        sink: Box::new(PipeSink { server: server.to_owned(), sender: Some(sender) }),
        source: Box::new(PipeSource { receiver }),
    };
    (end(to_b, from_b), end(to_a, from_a))
}

struct PipeSink {
    server: String,
    sender: Option<mpsc::Sender<Frame>>,
}

impl PipeSink {
    fn closed(&self) -> McpError {
        McpError::Closed { server: self.server.clone(), message: "the other end is gone".to_owned() }
    }
}

#[async_trait]
impl FrameSink for PipeSink {
    async fn ready(&mut self) -> Result<(), McpError> {
        let sender = self.sender.as_ref().ok_or_else(|| self.closed())?;
        sender.reserve().await.map(drop).map_err(|_| self.closed())
    }

    async fn send(&mut self, frame: Frame) -> Result<(), McpError> {
        let sender = self.sender.as_ref().ok_or_else(|| self.closed())?;
        sender.send(frame).await.map_err(|_| self.closed())
    }

    async fn close(&mut self) {
        self.sender = None;
    }
}

struct PipeSource {
    receiver: mpsc::Receiver<Frame>,
}

#[async_trait]
impl FrameSource for PipeSource {
    async fn next(&mut self) -> Option<Result<Frame, McpError>> {
        self.receiver.recv().await.map(Ok)
    }
}
