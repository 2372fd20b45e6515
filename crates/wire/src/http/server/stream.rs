//! One stream towards a client, and what waits on it.
//!
//! Invariant: beyond a limit in bytes nothing waits but answers, one for each stream. Deliberately no choice of stream.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use greenroom_boundary::clock::{Clock, MonoNanos};
use greenroom_boundary::mcp::Frame;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Most bytes that wait for a reader, an answer aside; as many as wait for a client on stdio before messages are dropped. One
/// frame alone may be larger.
const MOST_UNREAD_BYTES: usize = 4 << 20;

/// A frame on a stream.
#[derive(Debug)]
pub(super) struct Out {
    pub(super) frame: Frame,
    /// It is the answer that the stream was opened for.
    pub(super) answer: bool,
    /// It is an error answer.
    pub(super) error: bool,
}

/// Why a frame does not go on a stream.
pub(super) enum Refused {
    /// The client has hung up.
    Closed(Out),
    /// The client does not read what waits.
    Unread(Out),
}

/// The server's end.
#[derive(Clone)]
pub(super) struct StreamSender {
    frames: UnboundedSender<Out>,
    unread_bytes: Arc<AtomicUsize>,
}

/// The client's end. The stream is open until it is dropped.
pub(super) struct Stream {
    frames: UnboundedReceiver<Out>,
    unread_bytes: Arc<AtomicUsize>,
    used: Arc<Used>,
}

/// Opens a stream of a session that is in use until its end.
pub(super) fn stream(used: Arc<Used>) -> (StreamSender, Stream) {
    let (sender, receiver) = unbounded_channel();
    let unread_bytes = Arc::<AtomicUsize>::default();
    (StreamSender { frames: sender, unread_bytes: unread_bytes.clone() }, Stream { frames: receiver, unread_bytes, used })
}

/// When a session was used last, on the clock by which it expires.
#[derive(Default)]
pub(super) struct Used {
    clock: Option<Arc<dyn Clock>>,
    at: AtomicU64,
}

impl Used {
    /// Used now.
    pub(super) fn now(clock: Option<Arc<dyn Clock>>) -> Arc<Self> {
        let used = Self { clock, at: AtomicU64::default() };
        used.again();
        Arc::new(used)
    }

    /// Used again.
    pub(super) fn again(&self) {
        if let Some(clock) = &self.clock {
            self.at.fetch_max(clock.now().0, Ordering::Relaxed);
        }
    }

    pub(super) fn at(&self) -> MonoNanos {
        MonoNanos(self.at.load(Ordering::Relaxed))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.used.again();
    }
}

impl StreamSender {
    pub(super) fn is_closed(&self) -> bool {
        self.frames.is_closed()
    }

    pub(super) fn send(&self, out: Out) -> Result<(), Refused> {
        let (bytes, unread) = (out.frame.0.len(), self.unread_bytes.load(Ordering::Acquire));
        if self.is_closed() {
            return Err(Refused::Closed(out));
        }
        if !out.answer && unread > 0 && unread + bytes > MOST_UNREAD_BYTES {
            return Err(Refused::Unread(out));
        }
        self.unread_bytes.fetch_add(bytes, Ordering::AcqRel);
        self.frames.send(out).map_err(|refused| Refused::Closed(refused.0))
    }
}

impl Stream {
    pub(super) async fn recv(&mut self) -> Option<Out> {
        let out = self.frames.recv().await?;
        self.unread_bytes.fetch_sub(out.frame.0.len(), Ordering::AcqRel);
        Some(out)
    }
}
