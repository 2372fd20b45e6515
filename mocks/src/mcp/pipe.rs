//! An in-memory connection: frames as messages of two channels.
//!
//! Invariant: order within a direction is kept; dropping an end ends the other. Deliberately unbounded: a scripted
//! server is never faster than its script.

use async_trait::async_trait;
use greenroom_boundary::mcp::{Frame, FrameDuplex, FrameSink, FrameSource, McpError};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What comes from the server: a frame, or the error that ends the connection.
pub(super) type FromServer = Result<Frame, McpError>;

/// The server's end.
pub(super) struct ServerEnd {
    pub(super) requests: UnboundedReceiver<Frame>,
    pub(super) answers: UnboundedSender<FromServer>,
}

/// A connection: the host's end and the server's.
pub(super) fn pipe(server: &str) -> (FrameDuplex, ServerEnd) {
    let (to_server, requests) = unbounded_channel();
    let (answers, from_server) = unbounded_channel();
    let sink = PipeSink { server: server.to_owned(), to_server: Some(to_server) };
    let source = PipeSource { from_server };
    (FrameDuplex { sink: Box::new(sink), source: Box::new(source) }, ServerEnd { requests, answers })
}

struct PipeSink {
    server: String,
    to_server: Option<UnboundedSender<Frame>>,
}

#[async_trait]
impl FrameSink for PipeSink {
    async fn send(&mut self, frame: Frame) -> Result<(), McpError> {
        let sent = self.to_server.as_ref().is_some_and(|to_server| to_server.send(frame).is_ok());
        if sent {
            return Ok(());
        }
        Err(McpError::Closed { server: self.server.clone(), message: "the scripted server has ended".to_owned() })
    }

    async fn close(&mut self) {
        self.to_server = None;
    }
}

struct PipeSource {
    from_server: UnboundedReceiver<FromServer>,
}

#[async_trait]
impl FrameSource for PipeSource {
    async fn next(&mut self) -> Option<FromServer> {
        self.from_server.recv().await
    }
}
