//! Lines to frames.
//!
//! Invariant: a line ends at LF; a CR before it and blank lines do not count. Memory stays within the limit plus one read.
//! Deliberately no look at what a line says: a banner in plain text is passed up like any other.

use async_trait::async_trait;
use bytes::{Buf, BytesMut};
use greenroom_boundary::mcp::{Frame, FrameSource, McpError};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::StdioOptions;
use super::oversize::{IdScanner, Lost};

const READ_BYTES: usize = 64 * 1024;

/// Reads frames from lines.
#[derive(Debug)]
pub struct LineSource<R> {
    reader: R,
    options: StdioOptions,
    buffer: BytesMut,
    /// Bytes of the buffer that are known to have no line end.
    searched_bytes: usize,
    /// Set while a line beyond the limit is being dropped.
    dropping: Option<IdScanner>,
    lost: Lost,
    ended: bool,
}

impl<R: AsyncRead + Send + Unpin> LineSource<R> {
    /// A source on `reader`.
    pub fn new(reader: R, options: StdioOptions) -> Self {
        let buffer = BytesMut::new();
        Self { reader, options, buffer, searched_bytes: 0, dropping: None, lost: Lost::default(), ended: false }
    }

    /// The next line that is in the buffer.
    fn take_line(&mut self) -> Option<Result<Frame, McpError>> {
        loop {
            let found = self.buffer[self.searched_bytes..].iter().position(|byte| *byte == b'\n');
            let Some(end) = found.map(|at| at + self.searched_bytes) else {
                self.searched_bytes = self.buffer.len();
                // One byte more than the limit may be the CR of the line's end.
                if self.dropping.is_some() || self.buffer.len() > self.options.limit_bytes + 1 {
                    self.drop_bytes(self.buffer.len());
                }
                return None;
            };
            self.searched_bytes = 0;
            if self.dropping.is_some() {
                self.drop_bytes(end);
                self.buffer.advance(1);
                return Some(Err(self.finish_dropping()));
            }
            let line = self.buffer.split_to(end);
            self.buffer.advance(1);
            if let Some(item) = self.finish_line(line) {
                return Some(item);
            }
        }
    }

    fn finish_line(&mut self, mut line: BytesMut) -> Option<Result<Frame, McpError>> {
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        if line.len() > self.options.limit_bytes {
            self.dropping.get_or_insert_default().feed(&line);
            return Some(Err(self.finish_dropping()));
        }
        if line.iter().all(u8::is_ascii_whitespace) { None } else { Some(Ok(Frame(line.freeze()))) }
    }

    fn drop_bytes(&mut self, count: usize) {
        self.dropping.get_or_insert_default().feed(&self.buffer[..count]);
        self.buffer.advance(count);
        self.searched_bytes = 0;
    }

    fn finish_dropping(&mut self) -> McpError {
        self.lost = self.dropping.take().map(IdScanner::finish).unwrap_or_default();
        McpError::TooLarge { server: self.options.server.clone(), limit_bytes: self.options.limit_bytes }
    }

    /// What is left when the stream ends without a line end.
    fn take_rest(&mut self) -> Option<Result<Frame, McpError>> {
        self.ended = true;
        let rest = self.buffer.split();
        if self.dropping.is_some() {
            return Some(Err(self.finish_dropping()));
        }
        self.finish_line(rest)
    }
}

#[async_trait]
impl<R: AsyncRead + Send + Unpin> FrameSource for LineSource<R> {
    async fn next(&mut self) -> Option<Result<Frame, McpError>> {
        loop {
            if self.ended {
                return None;
            }
            if let Some(item) = self.take_line() {
                return Some(item);
            }
            self.buffer.reserve(READ_BYTES);
            match self.reader.read_buf(&mut self.buffer).await {
                Ok(0) => return self.take_rest(),
                Ok(_) => {}
                Err(error) => {
                    self.ended = true;
                    let message = format!("reading from it failed: {error}");
                    return Some(Err(McpError::Closed { server: self.options.server.clone(), message }));
                }
            }
        }
    }

    fn lost_id(&self) -> Option<String> {
        self.lost.answered.clone()
    }

    fn lost_request(&self) -> Option<String> {
        self.lost.request.clone()
    }
}
