//! Frames to lines.
//!
//! Invariant: a frame takes one line; a line break between the tokens of its JSON becomes a space. Deliberately no buffer
//! that outlives a frame.

use async_trait::async_trait;
use bytes::{BufMut, Bytes, BytesMut};
use greenroom_boundary::mcp::{Frame, FrameSink, McpError};
use tokio::io::{AsyncWrite, AsyncWriteExt};

/// Writes frames as lines.
#[derive(Debug)]
pub struct LineSink<W> {
    writer: Option<W>,
    server: String,
}

impl<W: AsyncWrite + Send + Unpin> LineSink<W> {
    /// A sink on `writer`; `server` names the other side in errors.
    pub fn new(writer: W, server: String) -> Self {
        Self { writer: Some(writer), server }
    }

    fn closed(&self, message: String) -> McpError {
        McpError::Closed { server: self.server.clone(), message }
    }
}

/// A JSON text may have line breaks only between tokens, where a space means the same.
fn one_line(frame: Bytes) -> BytesMut {
    let mut line = BytesMut::with_capacity(frame.len() + 1);
    line.extend_from_slice(&frame);
    for byte in line.iter_mut().filter(|byte| matches!(**byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    line.put_u8(b'\n');
    line
}

#[async_trait]
impl<W: AsyncWrite + Send + Unpin> FrameSink for LineSink<W> {
    async fn send(&mut self, frame: Frame) -> Result<(), McpError> {
        let Some(writer) = &mut self.writer else { return Err(self.closed("it was closed here".to_owned())) };
        let line = one_line(frame.0);
        let written = match writer.write_all(&line).await {
            Ok(()) => writer.flush().await,
            Err(error) => Err(error),
        };
        written.map_err(|error| self.closed(format!("writing to it failed: {error}")))
    }

    async fn close(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            let _ = writer.shutdown().await;
        }
    }
}
