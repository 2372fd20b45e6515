//! A host that does what its `inline` section says: it tests the runner without a real host.
//!
//! `inline: { turn: [op…] }` with the ops `{ emit: event }`, `{ sleep_ms: n }`, `{ secret: text }`, `{ hang: true }`,
//! `{ spin: true }`, `{ flood: n }`, `{ ask: text }` (of `llm.main`), `{ leak_timer_ms: n }`, `{ reply: {…} }`. Further keys: `start_error`, `leftovers`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt as _;
use greenroom_boundary::clock::sleep;
use greenroom_boundary::llm::LlmEvent;
use greenroom_boundary::trace::{EventKind, Outcome};
use greenroom_boundary::{AgentId, CancellationToken, Drivers, Scope};
use greenroom_harness::host::{HostError, HostFactory, HostUnderTest, Leftovers, TurnError, TurnReply, TurnRequest};
use greenroom_harness::model::HostSpec;
use serde_json::{Value, json};

/// Makes fake hosts. `drift` makes each run of one process differ: a host that breaks determinism.
#[derive(Debug, Default)]
pub(crate) struct FakeFactory {
    pub(crate) drift: bool,
    pub(crate) started: AtomicU64,
}

#[async_trait]
impl HostFactory for FakeFactory {
    async fn start(&self, spec: &HostSpec, _base: &Path, drivers: Drivers) -> Result<Box<dyn HostUnderTest>, HostError> {
        let run = self.started.fetch_add(1, Ordering::SeqCst);
        if let Some(message) = spec.inline.get("start_error").and_then(Value::as_str) {
            return Err(HostError { code: "FAKE_START".to_owned(), message: message.to_owned() });
        }
        let leftovers = spec.inline.get("leftovers").cloned().unwrap_or(json!({"tasks": 0, "connections": 0, "handles": 0}));
        let ops = spec.inline.get("turn").and_then(Value::as_array).cloned().unwrap_or_default();
        let drift = if self.drift { run } else { 0 };
        Ok(Box::new(FakeHost { ops, leftovers: serde_json::from_value(leftovers).unwrap(), drivers: Arc::new(drivers), drift }))
    }
}

struct FakeHost {
    ops: Vec<Value>,
    leftovers: Leftovers,
    drivers: Arc<Drivers>,
    drift: u64,
}

impl FakeHost {
    /// Asks the model and shows the exchange.
    async fn ask(&self, scope: &Scope, agent: &AgentId, text: &str) -> String {
        let Drivers { tracer, llm, .. } = &*self.drivers;
        let body = json!({ "connector": "main", "messages": [{ "role": "user", "content": text }] });
        let (span, boundary, method) = (tracer.span(), "llm.main".to_owned(), "chat".to_owned());
        let request = serde_json::from_value(body.clone()).unwrap();
        let open = EventKind::Request {
            span,
            parent: None,
            boundary: boundary.clone(),
            method: method.clone(),
            tool_call: None,
            body,
        };
        tracer.emit(scope, Some(agent), open);
        let mut answer = Ok(String::new());
        match llm.stream(request, &CancellationToken::new()).await {
            Ok(mut stream) => {
                while let Some(event) = stream.next().await {
                    match (event, &mut answer) {
                        (Ok(LlmEvent::Text { delta }), Ok(text)) => text.push_str(&delta),
                        (Ok(_), _) => {}
                        (Err(error), _) => answer = Err(error.code()),
                    }
                }
            }
            Err(error) => answer = Err(error.code()),
        }
        let (outcome, text) = match answer {
            Ok(text) => (Outcome::Ok, text),
            Err(code) => (Outcome::Error, code.to_owned()),
        };
        let close = EventKind::Response { span, boundary, method, outcome, body: json!({ "text": text }), usage: None };
        tracer.emit(scope, Some(agent), close);
        text
    }

    async fn run(&self, scope: &Scope, agent: &AgentId) -> TurnReply {
        let mut reply = TurnReply { outcome: Outcome::Ok, text: String::new(), data: Value::Null, error: None };
        for op in &self.ops {
            if let Some(event) = op.get("emit") {
                let kind: EventKind = serde_json::from_value(event.clone()).unwrap();
                self.drivers.tracer.emit(scope, Some(agent), kind);
            } else if let Some(ms) = op.get("sleep_ms").and_then(Value::as_u64) {
                sleep(&*self.drivers.clock, Duration::from_millis(ms)).await;
            } else if let Some(secret) = op.get("secret").and_then(Value::as_str) {
                self.drivers.credentials.register("llm.main/apiKey", secret);
            } else if let Some(text) = op.get("ask").and_then(Value::as_str) {
                reply.text = self.ask(scope, agent, text).await;
            } else if op.get("hang").is_some() {
                std::future::pending::<()>().await;
            } else if op.get("spin").is_some() {
                loop {
                    std::hint::spin_loop();
                }
            } else if let Some(count) = op.get("flood").and_then(Value::as_u64) {
                for _ in 0..count {
                    self.drivers.tracer.emit(scope, None, EventKind::Output { body: json!("x") });
                    tokio::task::yield_now().await;
                }
            } else if let Some(ms) = op.get("leak_timer_ms").and_then(Value::as_u64) {
                let clock = self.drivers.clock.clone();
                tokio::spawn(async move { sleep(&*clock, Duration::from_millis(ms)).await });
            } else if op.get("random").is_some() {
                let body = json!(self.drivers.entropy.next_u64().wrapping_add(self.drift));
                self.drivers.tracer.emit(scope, Some(agent), EventKind::Output { body });
            } else if let Some(value) = op.get("reply") {
                reply = serde_json::from_value(value.clone()).unwrap();
            }
        }
        reply
    }
}

#[async_trait]
impl HostUnderTest for FakeHost {
    async fn turn(&self, turn: TurnRequest, cancel: &CancellationToken) -> TurnReply {
        let (scope, agent) = (Scope::new(turn.id.clone()), AgentId::new(turn.agent.clone()));
        let tracer = &self.drivers.tracer;
        let body = json!({ "user": turn.user });
        tracer.emit(&scope, None, EventKind::Stimulus { id: turn.id.clone(), method: "turn".to_owned(), body });
        let reply = tokio::select! {
            biased;
            () = cancel.cancelled() => TurnReply {
                outcome: Outcome::Cancelled,
                text: String::new(),
                data: Value::Null,
                error: Some(TurnError { code: "CANCELLED".to_owned(), message: "the turn was cancelled".to_owned() }),
            },
            reply = self.run(&scope, &agent) => reply,
        };
        let end = EventKind::StimulusEnd { id: turn.id, outcome: reply.outcome, body: serde_json::to_value(&reply).unwrap() };
        tracer.emit(&scope, None, end);
        reply
    }

    async fn shutdown(&self) -> Leftovers {
        self.leftovers
    }
}
