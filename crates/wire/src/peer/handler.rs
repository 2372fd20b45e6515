//! What a connection asks of its owner.
//!
//! Invariant: the plain functions run on the reader, in order, and must not block. Deliberately everything but requests has
//! a default that does nothing.

use async_trait::async_trait;
use greenroom_boundary::CancellationToken;
use greenroom_boundary::mcp::{Frame, McpError};
use serde_json::value::RawValue;

use crate::{Peer, RawJson, RequestId, RpcError, WireError};

/// A request from the other side.
#[derive(Clone, Debug)]
pub struct IncomingRequest {
    /// Its id.
    pub id: RequestId,
    /// The method.
    pub method: String,
    /// The parameters, as written.
    pub params: Option<RawJson>,
    /// The connection it came on, for progress and questions back.
    pub peer: Peer,
    /// Cancelled by the other side, or by the end of the connection.
    pub cancel: CancellationToken,
}

/// Why a notification had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// Progress without a valid token or value, or a cancellation without a valid id.
    Malformed,
    /// Progress whose token belongs to no request under way.
    UnknownToken,
    /// Progress that did not grow.
    NotIncreasing,
    /// A cancellation of a request that is not under way.
    UnknownRequest,
}

impl DropReason {
    /// Stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::UnknownToken => "unknown_token",
            Self::NotIncreasing => "not_increasing",
            Self::UnknownRequest => "unknown_request",
        }
    }
}

/// The owner of a connection.
#[async_trait]
pub trait PeerHandler: Send + Sync {
    /// Answers a request. `ping` never comes here. When the other side has cancelled, whatever is returned is dropped. A
    /// panic is answered as an internal error.
    async fn request(&self, request: IncomingRequest) -> Result<RawJson, RpcError>;

    /// A request has come in. Called on the reader, in order; [`PeerHandler::request`] follows on a task of its own.
    fn arrived(&self, request: &IncomingRequest) {
        let _ = request;
    }

    /// A notification, other than progress of and cancellation of requests under way, which the connection handles.
    fn notification(&self, peer: &Peer, method: &str, params: Option<&RawValue>, frame: &Frame) {
        let _ = (peer, method, params, frame);
    }

    /// An answer that nobody waits for: late, twice, or to no request of ours.
    fn stale_response(&self, id: Option<&RequestId>, frame: &Frame) {
        let _ = (id, frame);
    }

    /// A frame of ours that is no request (a notification or an answer) leaves now.
    fn sending(&self, frame: &Frame) {
        let _ = frame;
    }

    /// A frame that is no message.
    fn malformed(&self, frame: &Frame, error: &WireError) {
        let _ = (frame, error);
    }

    /// A message beyond the size limit; it is lost. The request that it answered fails, if that can be told.
    fn too_large(&self, error: &McpError) {
        let _ = error;
    }

    /// Progress or a cancellation without effect.
    fn dropped_notification(&self, method: &str, reason: DropReason, frame: &Frame) {
        let _ = (method, reason, frame);
    }

    /// So many notifications of ours were dropped, because the other side did not read. Called when it has caught up.
    fn flooded(&self, dropped: usize) {
        let _ = dropped;
    }

    /// The connection has ended; `None` if it did so cleanly. Called once.
    fn closed(&self, why: Option<McpError>) {
        let _ = why;
    }
}
