//! One connection of a scripted server.
//!
//! Invariant: requests are taken in the order of arrival; an answer that waits holds up no other. When the host lets go
//! of the connection, everything that still waits is dropped. Deliberately no thread of its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_boundary::clock::MonoNanos;
use greenroom_boundary::mcp::{Frame, McpError};
use greenroom_boundary::{CancellationToken, RawJson};
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;

use super::answer::{Incoming, Reply, error, initialize, list, notification_frame, reply_frame};
use super::asks::Asks;
use super::pipe::{FromServer, ServerEnd};
use super::script::{McpAnswer, McpAsk, McpNotification, McpProgress, OnCancel};
use super::server::Shared;

/// Why a call that is under way is no longer needed; by the id's text.
type Running = BTreeMap<String, CancellationToken>;

struct Session {
    shared: Arc<Shared>,
    server: String,
    answers: UnboundedSender<FromServer>,
    running: Running,
    tasks: JoinSet<()>,
    crashed: CancellationToken,
    asks: Asks,
}

/// Serves a connection until either side ends it.
pub(super) async fn serve(shared: Arc<Shared>, server: String, end: ServerEnd) {
    let ServerEnd { mut requests, answers } = end;
    let host_gone = answers.clone();
    let crashed = CancellationToken::new();
    let asks = Asks::new(shared.clock.clone(), answers.clone());
    let (running, tasks) = (Running::new(), JoinSet::new());
    let mut session = Session { shared, server, answers, running, tasks, crashed: crashed.clone(), asks };
    loop {
        let frame = tokio::select! {
            biased;
            () = crashed.cancelled() => break,
            () = host_gone.closed() => break,
            frame = requests.recv() => frame,
        };
        let Some(frame) = frame else { break };
        session.take(&frame);
        while session.tasks.try_join_next().is_some() {}
    }
}

impl Session {
    fn take(&mut self, frame: &Frame) {
        // Real servers stay silent on garbage as well; the host's timeout has to notice.
        let Ok(message) = serde_json::from_slice::<Incoming>(&frame.0) else { return };
        match (message.method, message.id) {
            (Some(method), Some(id)) => self.request(&method, id, message.params),
            (Some(method), None) => self.notification(&method, &message.params),
            (None, Some(id)) => self.asks.answered(id.get()),
            (None, None) => {}
        }
    }

    fn notification(&mut self, method: &str, params: &Value) {
        match method {
            "notifications/initialized" => self.announce(),
            "notifications/cancelled" if self.shared.script.on_cancel == OnCancel::Stop => {
                let id = params.get("requestId").map(Value::to_string).unwrap_or_default();
                if let Some(running) = self.running.remove(&id) {
                    running.cancel();
                }
            }
            _ => {}
        }
    }

    /// Schedules what the server says by itself.
    fn announce(&mut self) {
        let start = self.shared.clock.now();
        let (asks, questions) = (self.asks.clone(), self.shared.script.asks.clone());
        if !questions.is_empty() {
            self.tasks.spawn(async move { asks.ask(&questions).await });
        }
        for notification in self.shared.script.notifications.clone() {
            let (clock, answers) = (self.shared.clock.clone(), self.answers.clone());
            self.tasks.spawn(async move {
                clock.sleep_until(start.after(notification.after.to_std())).await;
                let params = notification.params.map(Value::Object);
                let _ = answers.send(Ok(notification_frame(&notification.method, params)));
            });
        }
    }

    fn request(&mut self, method: &str, id: RawJson, params: Value) {
        let script = &self.shared.script;
        match method {
            "initialize" => {
                let reply = initialize(script, &self.server, &params);
                let after = script.initialize.as_ref().and_then(|h| h.after).unwrap_or_default();
                let due = self.shared.clock.now().after(after.to_std());
                self.answer_at(due, id, Before::default(), Outcome::Reply(reply));
            }
            "ping" => self.answer(&id, &Ok(json!({}))),
            _ => match list(script, method, &params) {
                Some(reply) => self.answer(&id, &reply),
                None => self.call(method, id, params),
            },
        }
    }

    fn answer(&self, id: &RawJson, reply: &Reply) {
        let _ = self.answers.send(Ok(reply_frame(id, reply)));
    }

    fn call(&mut self, method: &str, id: RawJson, params: Value) {
        let shared = self.shared.clone();
        let now = shared.clock.now();
        match shared.take(method, &params) {
            Ok(call) => {
                let token = params.pointer("/_meta/progressToken").cloned().unwrap_or_default();
                let progress = if token.is_null() { Vec::new() } else { call.progress.clone() };
                let (notifications, asks) = (call.notifications.clone(), call.asks.clone());
                let before = Before { progress, token, notifications, asks };
                self.answer_at(now.after(call.after.to_std()), id, before, outcome(&call.answer, method));
            }
            Err(reason) => {
                let outcome = match (&shared.script.otherwise, method) {
                    (Some(answer), _) => outcome(answer, method),
                    (None, "logging/setLevel") => Outcome::Reply(Ok(json!({}))),
                    (None, "tools/call" | "prompts/get" | "resources/read") => Outcome::Reply(Err(error(-32602, reason))),
                    (None, _) => Outcome::Reply(Err(error(-32601, reason))),
                };
                self.answer_at(now, id, Before::default(), outcome);
            }
        }
    }

    fn answer_at(&mut self, due: MonoNanos, id: RawJson, before: Before, outcome: Outcome) {
        let clock = self.shared.clock.clone();
        let start = clock.now();
        let immediate = before.is_nothing() && due <= start;
        if let (true, Outcome::Reply(reply)) = (immediate, &outcome) {
            return self.answer(&id, reply);
        }
        let stopped = CancellationToken::new();
        self.running.insert(id.get().to_owned(), stopped.clone());
        let (answers, crashed, server) = (self.answers.clone(), self.crashed.clone(), self.server.clone());
        let asks = self.asks.clone();
        let work = async move {
            let Before { progress, token, notifications, asks: questions } = before;
            asks.tell(&notifications).await;
            asks.ask(&questions).await;
            for step in progress {
                clock.sleep_until(start.after(step.after.to_std())).await;
                let _ = answers.send(Ok(progress_frame(&token, &step)));
            }
            clock.sleep_until(due).await;
            match outcome {
                Outcome::Reply(reply) => {
                    let _ = answers.send(Ok(reply_frame(&id, &reply)));
                }
                Outcome::Hang => std::future::pending().await,
                Outcome::Crash => {
                    let message = "the script crashes it here".to_owned();
                    let _ = answers.send(Err(McpError::Closed { server, message }));
                    crashed.cancel();
                }
            }
        };
        self.tasks.spawn(async move {
            tokio::select! {
                biased;
                () = stopped.cancelled() => {}
                () = work => {}
            }
        });
    }
}

/// What comes before the answer to a request.
#[derive(Default)]
struct Before {
    progress: Vec<McpProgress>,
    token: Value,
    notifications: Vec<McpNotification>,
    asks: Vec<McpAsk>,
}

impl Before {
    fn is_nothing(&self) -> bool {
        self.progress.is_empty() && self.notifications.is_empty() && self.asks.is_empty()
    }
}

/// What becomes of a request.
enum Outcome {
    Reply(Reply),
    Hang,
    Crash,
}

fn outcome(answer: &McpAnswer, method: &str) -> Outcome {
    match answer {
        McpAnswer::Result(result) => {
            let mut result = result.clone();
            if method == "tools/call" && !result.contains_key("content") {
                // The schema requires it of every tool result.
                result.insert("content".to_owned(), json!([]));
            }
            Outcome::Reply(Ok(Value::Object(result)))
        }
        McpAnswer::Error(error) => Outcome::Reply(Err(error.clone())),
        McpAnswer::Hang(_) => Outcome::Hang,
        McpAnswer::Crash(_) => Outcome::Crash,
    }
}

fn progress_frame(token: &Value, step: &McpProgress) -> Frame {
    let mut params = json!({ "progressToken": token, "progress": number(step.progress) });
    if let Some(total) = step.total {
        params["total"] = number(total);
    }
    if let Some(message) = &step.message {
        params["message"] = json!(message);
    }
    notification_frame("notifications/progress", Some(params))
}

/// Whole numbers are sent without a fraction, as servers do.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}
