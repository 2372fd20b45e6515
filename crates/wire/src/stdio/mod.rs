//! Newline framing over any pair of byte streams, either role.
//!
//! Invariant: one frame is one line. Reading never loses its place: a line beyond the limit is dropped whole and the next
//! one works. Deliberately no processes; a driver starts them and hands over their pipes.

mod oversize;
mod sink;
mod source;

use greenroom_boundary::mcp::FrameDuplex;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use oversize::IdScanner;
pub use sink::LineSink;
pub use source::LineSource;

/// How lines are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StdioOptions {
    /// Names the other side in errors.
    pub server: String,
    /// The longest line that is accepted, in bytes, without its end.
    pub limit_bytes: usize,
}

impl StdioOptions {
    /// 16 MiB.
    pub const DEFAULT_LIMIT_BYTES: usize = 16 * 1024 * 1024;

    /// The default limit, for the server `name`.
    pub fn new(name: impl Into<String>) -> Self {
        Self { server: name.into(), limit_bytes: Self::DEFAULT_LIMIT_BYTES }
    }
}

/// A connection that reads lines from `reader` and writes lines to `writer`.
pub fn duplex<R, W>(reader: R, writer: W, options: &StdioOptions) -> FrameDuplex
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    FrameDuplex {
        sink: Box::new(LineSink::new(writer, options.server.clone())),
        source: Box::new(LineSource::new(reader, options.clone())),
    }
}
