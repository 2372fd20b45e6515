//! Which requests a live server still owes an answer to: while there are any, the host's clock is held.
//!
//! Invariant: the hold is there exactly while a request of the host is unanswered and uncancelled. Deliberately no
//! answers made up and no frame changed.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_boundary::Clock;
use greenroom_boundary::clock::Hold;
use greenroom_boundary::mcp::Frame;
use serde::Deserialize;
use serde_json::value::RawValue;

/// The host's requests that are under way on one connection.
#[derive(Clone, Debug)]
pub(super) struct Exchanges {
    clock: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    open: BTreeSet<String>,
    hold: Option<Hold>,
    ended: bool,
}

#[derive(Deserialize)]
struct Head<'f> {
    #[serde(borrow)]
    id: Option<&'f RawValue>,
    #[serde(borrow)]
    method: Option<&'f RawValue>,
    #[serde(borrow)]
    params: Option<&'f RawValue>,
}

#[derive(Deserialize)]
struct CancelParams<'f> {
    #[serde(borrow, rename = "requestId")]
    request_id: &'f RawValue,
}

impl Exchanges {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, state: Arc::default() }
    }

    /// Holds the clock for something else than a request.
    pub(super) fn hold(&self) -> Hold {
        self.clock.hold()
    }

    /// Looks at a frame on its way to the server.
    pub(super) fn sent(&self, frame: &Frame) {
        let Ok(head) = serde_json::from_slice::<Head<'_>>(&frame.0) else { return };
        match (head.id, head.method) {
            (Some(id), Some(_)) => self.change(|state| {
                state.open.insert(id.get().to_owned());
            }),
            (None, Some(method)) if method.get() == r#""notifications/cancelled""# => {
                let params = head.params.and_then(|params| serde_json::from_str::<CancelParams<'_>>(params.get()).ok());
                if let Some(params) = params {
                    self.answered(params.request_id.get());
                }
            }
            _ => {}
        }
    }

    /// Looks at a frame from the server.
    pub(super) fn received(&self, frame: &Frame) {
        if let Ok(Head { id: Some(id), method: None, .. }) = serde_json::from_slice::<Head<'_>>(&frame.0) {
            self.answered(id.get());
        }
    }

    /// That request needs no answer any more.
    pub(super) fn answered(&self, id: &str) {
        self.change(|state| {
            state.open.remove(id);
        });
    }

    /// No answer will come any more.
    pub(super) fn end(&self) {
        self.change(|state| {
            state.open.clear();
            state.ended = true;
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        if state.open.is_empty() || state.ended {
            state.hold = None;
        } else if state.hold.is_none() {
            state.hold = Some(self.clock.hold());
        }
    }
}
