//! The writing task of a connection.
//!
//! Invariant: frames leave whole and in the order of the queue; a frame that the sink refuses fails its own call alone.
//! Deliberately no buffering beyond the queue.

use std::sync::atomic::Ordering;

use greenroom_boundary::mcp::{Frame, FrameSink, McpError};
use tokio::sync::{mpsc, oneshot};

use super::Peer;
use super::request::{OnSend, RequestError};
use crate::RequestId;

/// Something to send.
pub(super) enum Outgoing {
    /// A request of ours.
    Request { id: i64, frame: Frame, on_send: Option<OnSend> },
    /// Anything else.
    Frame { frame: Frame, done: Option<oneshot::Sender<Result<(), McpError>>> },
    /// Says when everything queued before it has left.
    Mark(oneshot::Sender<()>),
}

impl Outgoing {
    /// What it costs while it waits, its place in the queue included.
    pub(super) fn size_bytes(&self) -> usize {
        let frame_bytes = match self {
            Self::Request { frame, .. } | Self::Frame { frame, .. } => frame.0.len(),
            Self::Mark(_) => 0,
        };
        frame_bytes + size_of::<Self>()
    }
}

/// Sends what is queued until the connection ends, then closes the sink.
pub(super) async fn write(peer: Peer, mut sink: Box<dyn FrameSink>, mut queue: mpsc::UnboundedReceiver<Outgoing>) {
    let closing = peer.shared.closing.clone();
    loop {
        // The queue comes first, so that what was queued before the end still leaves if the sink takes it at once.
        let item = tokio::select! {
            biased;
            item = queue.recv() => item,
            () = closing.cancelled() => None,
        };
        let Some(item) = item else { break };
        let size_bytes = item.size_bytes();
        if peer.shared.waiting_bytes.fetch_sub(size_bytes, Ordering::SeqCst) == size_bytes {
            tell_dropped(&peer);
        }
        tokio::select! {
            biased;
            () = send(&peer, sink.as_mut(), item) => {}
            () = closing.cancelled() => break,
        }
        // What the sink itself drops is told with the next frame that leaves, so that a flood is told once.
        peer.shared.dropped.fetch_add(sink.take_dropped(), Ordering::SeqCst);
    }
    tell_dropped(&peer);
    queue.close();
    sink.close().await;
    peer.shared.closed.cancel();
}

/// Says how much was dropped, now that the other side has read what waited, or is gone.
fn tell_dropped(peer: &Peer) {
    match peer.shared.dropped.swap(0, Ordering::SeqCst) {
        0 => {}
        dropped => peer.shared.handler.flooded(dropped),
    }
}

async fn send(peer: &Peer, sink: &mut dyn FrameSink, item: Outgoing) {
    match item {
        Outgoing::Request { id, frame, on_send } => {
            if let Err(error) = send_request(peer, sink, id, frame, on_send).await
                && let Some(pending) = peer.shared.under_way.take(id)
            {
                pending.finish(Err(RequestError::Closed(error)));
            }
        }
        Outgoing::Frame { frame, done } => {
            let sent = match sink.ready().await {
                Ok(()) => {
                    peer.shared.handler.sending(&frame);
                    sink.send(frame).await
                }
                Err(error) => Err(error),
            };
            if let Some(done) = done {
                let _ = done.send(sent);
            }
        }
        Outgoing::Mark(reached) => {
            let _ = reached.send(());
        }
    }
}

async fn send_request(
    peer: &Peer,
    sink: &mut dyn FrameSink,
    id: i64,
    frame: Frame,
    on_send: Option<OnSend>,
) -> Result<(), McpError> {
    sink.ready().await?;
    if !peer.shared.under_way.mark_sent(id) {
        return Ok(());
    }
    if let Some(on_send) = on_send {
        on_send(&RequestId::Number(id), &frame);
    }
    sink.send(frame).await
}
