//! One connection, in either role: requests out, requests in, in order.
//!
//! Invariant: one task reads, one task writes, and neither waits for the other. Incoming responses and notifications are
//! handled in the order in which they came, before the next frame is read; incoming requests run on their own. Outgoing
//! frames leave in the order of the calls, whole. A request that ends early (timeout, cancellation, a dropped future)
//! leaves nothing behind. Deliberately no reconnecting and no knowledge of the transport.

mod connection;
mod handler;
mod pending;
mod reader;
mod request;
mod writer;

pub use connection::{Peer, PeerOptions};
pub use handler::{DropReason, IncomingRequest, PeerHandler};
pub use request::{OnAnswer, OnProgress, OnSend, Progress, RequestError, RequestOptions};
