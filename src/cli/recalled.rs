//! The outside clients of a recorded session, as `greenroom replay` gives them to the host again.
//!
//! Invariant: what a client is told is traced in the recorded order, whenever the host comes to say it. Deliberately no
//! transport and no ids: the cassette has neither.

use std::sync::Arc;

use async_trait::async_trait;
use greenroom_boundary::trace::Direction;
use greenroom_boundary::{CancellationToken, RawJson, Scope, Tracer};
use greenroom_harness::replay::{ClientAnswer, Replay, ReplayClient};
use greenroom_wire::RpcError;
use serde_json::Value;
use serde_json::value::to_raw_value;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::front;
use crate::router::ProgressSink;
use crate::sessions::Client;

/// How a question is taken back.
const CANCELLED: &str = "notifications/cancelled";

/// A client of the recorded session.
#[derive(Clone)]
pub(super) struct Recalled {
    session: String,
    client: ReplayClient,
    queue: UnboundedSender<(String, Value)>,
    capabilities: Value,
}

impl Recalled {
    /// The client of `session`, which has not introduced itself yet.
    pub(super) fn new(replay: &Arc<Replay>, tracer: Tracer, session: &str) -> Self {
        let client = replay.client(&front::boundary(session));
        let (queue, mut told) = unbounded_channel::<(String, Value)>();
        let (turns, name) = (client.clone(), session.to_owned());
        tokio::spawn(async move {
            while let Some((method, params)) = told.recv().await {
                turns.told(&method, &params).await;
                front::note(&tracer, &name, &method, Direction::Out, (!params.is_null()).then_some(params));
            }
        });
        Self { session: session.to_owned(), client, queue, capabilities: Value::Null }
    }

    /// It has introduced itself with these parameters.
    pub(super) fn introduced(&self, params: &Value) -> Self {
        Self { capabilities: params.get("capabilities").cloned().unwrap_or_default(), ..self.clone() }
    }

    /// Where the progress of one of its calls goes.
    pub(super) fn progress(&self, token: Value) -> ProgressSink {
        let queue = self.queue.clone();
        front::progress(token, move |params| drop(queue.send((front::PROGRESS.to_owned(), params))))
    }
}

/// A question without an answer. Dropped as such, the client is told what it was told when the session was recorded.
struct OpenQuestion<'a>(Option<&'a Recalled>);

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        let Some(of) = self.0 else { return };
        if let Some(params) = of.client.next_cancellation() {
            of.notify(CANCELLED, to_raw_value(&params).ok());
        }
    }
}

#[async_trait]
impl Client for Recalled {
    fn boundary(&self) -> String {
        front::boundary(&self.session)
    }

    fn capabilities(&self) -> Value {
        self.capabilities.clone()
    }

    async fn ready(&self, method: &str, params: &Value) {
        self.client.ready(method, params).await;
    }

    async fn request(
        &self,
        method: &str,
        params: Option<RawJson>,
        _: &Scope,
        cancel: &CancellationToken,
    ) -> Result<RawJson, RpcError> {
        let params: Value = params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let mut open = OpenQuestion(Some(self));
        let answered = self.client.ask(method, &params, cancel).await;
        if !matches!(answered, Ok(ClientAnswer::Cancelled)) {
            open.0 = None;
        }
        match answered {
            Ok(ClientAnswer::Result(value)) => to_raw_value(&value).map_err(|error| RpcError::internal(error.to_string())),
            Ok(ClientAnswer::Error(error)) => {
                Err(serde_json::from_value(error).unwrap_or_else(|_| RpcError::internal("the recorded error is unusable")))
            }
            Ok(ClientAnswer::Cancelled) => Err(RpcError::new(RpcError::CANCELLED, "the question was taken back")),
            Err(miss) => Err(RpcError::internal(miss.to_string())),
        }
    }

    fn notify(&self, method: &str, params: Option<RawJson>) {
        let params = params.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        // The task that takes it lives as long as this.
        let _ = self.queue.send((method.to_owned(), params));
    }
}
