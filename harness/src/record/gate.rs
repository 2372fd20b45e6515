//! Lets one thing in at a time: while a session is recorded, the host comes to rest between two events from outside.
//!
//! Invariant: an event is numbered and given to the host in one step, after the host has done what the events before asked
//! for; a replay lets events in by the same rule, so both come to one order. Deliberately no waiting for anything but the
//! host's own tasks.

use std::sync::Arc;

use async_trait::async_trait;
use futures::{Stream, StreamExt};
use greenroom_boundary::BoxStream;
use greenroom_boundary::mcp::{Frame, FrameDuplex, FrameSource, McpError};

use super::Recording;

/// Nobody knows when a host on a real clock is at rest: its tasks get this many rounds.
const ROUNDS: usize = 64;

/// One thing at a time.
#[derive(Debug, Default)]
pub(super) struct Gate(tokio::sync::Mutex<()>);

impl Gate {
    /// Completes when what came in before has been dealt with. Whoever waited must let its own thing in at once.
    pub(super) async fn pass(&self) {
        let _mine = self.0.lock().await;
        for _ in 0..ROUNDS {
            tokio::task::yield_now().await;
        }
    }
}

/// The items of a stream, let in one by one.
pub(super) fn gated<T: Send + 'static>(
    recording: Arc<Recording>,
    items: impl Stream<Item = T> + Send + 'static,
) -> BoxStream<'static, T> {
    Box::pin(items.then(move |item| {
        let recording = recording.clone();
        async move {
            recording.gate.pass().await;
            item
        }
    }))
}

/// The connection of an outside client whose frames are let in one by one. What they ask is recorded by the tap.
pub fn let_in(recording: &Arc<Recording>, duplex: FrameDuplex) -> FrameDuplex {
    let source = Box::new(GatedSource { inner: duplex.source, recording: recording.clone() });
    FrameDuplex { sink: duplex.sink, source }
}

struct GatedSource {
    inner: Box<dyn FrameSource>,
    recording: Arc<Recording>,
}

#[async_trait]
impl FrameSource for GatedSource {
    async fn next(&mut self) -> Option<Result<Frame, McpError>> {
        let next = self.inner.next().await;
        self.recording.gate.pass().await;
        next
    }

    fn lost_id(&self) -> Option<String> {
        self.inner.lost_id()
    }
}
