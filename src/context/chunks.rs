//! A script's `onChunk`.
//!
//! Invariant: callbacks of one batch run one at a time, in the order in which pieces came. What a callback answers counts:
//! it can stop its own stream, and what it throws ends the operation. Deliberately no queue: a slow callback slows the
//! stream down.

use std::sync::Arc;

use async_trait::async_trait;
use greenroom_boundary::RawJson;
use greenroom_boundary::isolate::{Callback, CallbackVerdict, JsException, OpError};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::agents::TextListener;

/// A callback that several streams share.
#[derive(Clone)]
pub(super) struct SharedCallback {
    callback: Arc<dyn Callback>,
    turn: Arc<Mutex<()>>,
}

impl SharedCallback {
    pub(super) fn new(callback: Arc<dyn Callback>) -> Self {
        Self { callback, turn: Arc::default() }
    }

    async fn call(&self, args: Vec<RawJson>) -> CallbackVerdict {
        let _turn = self.turn.lock().await;
        self.callback.call(args).await
    }
}

/// What one stream tells its callback.
pub(super) struct OnChunk {
    callback: Option<SharedCallback>,
    /// Arguments before the message: whom the stream is from, and its place in the batch.
    before: Vec<Value>,
    /// The callback stopped the stream.
    pub(super) stopped: bool,
    thrown: Option<JsException>,
}

impl OnChunk {
    pub(super) fn new(callback: Option<SharedCallback>, before: Vec<Value>) -> Self {
        Self { callback, before, stopped: false, thrown: None }
    }

    /// What the callback threw, as the operation's error.
    pub(super) fn thrown(&self) -> Option<OpError> {
        let exception = self.thrown.as_ref()?;
        Some(OpError::new("ERR_CALLBACK", format!("onChunk threw {exception}")))
    }
}

#[async_trait]
impl TextListener for OnChunk {
    async fn text(&mut self, delta: &str) -> bool {
        let Some(callback) = &self.callback else { return true };
        let message = json!({"type": "text", "props": {"content": delta}, "delta": true});
        let args = self.before.iter().chain([&message]).map(serde_json::value::to_raw_value).collect::<Result<_, _>>();
        let Ok(args) = args else { return true };
        match callback.call(args).await {
            CallbackVerdict::Continue => true,
            CallbackVerdict::Stop => {
                self.stopped = true;
                false
            }
            CallbackVerdict::Threw(exception) => {
                self.thrown = Some(exception);
                false
            }
        }
    }
}
