//! Whether a client has introduced itself.
//!
//! Invariant: after a refused `initialize`, and where hooks look at sessions, nothing but `initialize` and `ping` is served
//! before one has succeeded; what comes while one is under way waits for its outcome, so that a client may send without waiting.
//! Deliberately no look at what it said, and no more severity: a client that leaves the handshake out harms nobody else.

use greenroom_boundary::CancellationToken;
use greenroom_wire::RpcError;
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Handshakes under way.
    under_way: usize,
    done: bool,
    refused: bool,
}

/// Of one connection.
#[derive(Debug, Default)]
pub(super) struct Introduction(watch::Sender<State>);

impl Introduction {
    /// An `initialize` has come in; [`Introduction::guard`] follows.
    pub(super) fn begin(&self) {
        self.0.send_modify(|state| state.under_way += 1);
    }

    /// The end of an `initialize`, when dropped.
    pub(super) fn guard(&self) -> Introducing<'_> {
        Introducing(self)
    }

    /// Waits for the handshakes under way; an error if none has succeeded though one was refused, or one is `needed`.
    pub(super) async fn wait(&self, needed: bool, cancel: &CancellationToken) -> Result<(), RpcError> {
        let mut state = self.0.subscribe();
        let settled = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(RpcError::new(RpcError::CANCELLED, "the request was cancelled")),
            settled = state.wait_for(|state| state.done || state.under_way == 0) => settled.is_ok_and(|state| state.done || !(state.refused || needed)),
        };
        if settled {
            Ok(())
        } else {
            Err(RpcError::new(RpcError::INVALID_REQUEST, "initialize first: no handshake has succeeded on this connection"))
        }
    }
}

/// An `initialize` that is under way until this is dropped.
pub(super) struct Introducing<'a>(&'a Introduction);

impl Introducing<'_> {
    /// It has succeeded.
    pub(super) fn succeed(self) {
        self.0.0.send_modify(|state| state.done = true);
    }
}

impl Drop for Introducing<'_> {
    fn drop(&mut self) {
        self.0.0.send_modify(|state| {
            state.under_way = state.under_way.saturating_sub(1);
            state.refused |= !state.done;
        });
    }
}
