//! Serves what an outside client was told and asked when the session was recorded, and what it answered.
//!
//! Invariant: nothing is traced before its turn: whoever asks or tells waits for [`ReplayClient::ready`] or
//! [`ReplayClient::told`] first. Deliberately no requests of the client: those are stimuli.

use std::sync::Arc;

use greenroom_boundary::CancellationToken;
use greenroom_boundary::trace::Outcome;
use serde_json::{Value, json};

use super::Replay;
use super::answers::{Answers, Cancelled};
use super::miss::ReplayMiss;
use super::schedule::What;
use super::session::Asked;

/// How a question is taken back.
const CANCELLED: &str = "notifications/cancelled";

/// One outside client of a replay.
#[derive(Clone, Debug)]
pub struct ReplayClient {
    pub(super) replay: Arc<Replay>,
    pub(super) lane: String,
}

/// How a recorded question ended.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientAnswer {
    /// The client answered.
    Result(Value),
    /// It answered with an error object.
    Error(Value),
    /// The host took the question back, now or when it was recorded.
    Cancelled,
}

impl ReplayClient {
    fn asked<'a>(&'a self, op: &'a str, body: &'a str) -> Asked<'a> {
        Asked { lane: &self.lane, op, scope: &self.lane, conn: 0, body }
    }

    /// Waits until a question may be asked; one that was not recorded need not wait.
    pub async fn ready(&self, method: &str, params: &Value) {
        let body = json!({"params": params}).to_string();
        if let Some(open) = self.replay.known(&self.asked(method, &body)) {
            self.replay.schedule.turn(open).await;
        }
    }

    /// The recorded answer to a question, when it is due.
    pub async fn ask(&self, method: &str, params: &Value, cancel: &CancellationToken) -> Result<ClientAnswer, ReplayMiss> {
        let body = json!({"params": params}).to_string();
        let open = self.replay.find(&self.asked(method, &body))?;
        let Ok(mut answers) = Answers::begin(self.replay.clone(), cancel.clone(), open).await else {
            return Ok(ClientAnswer::Cancelled);
        };
        Ok(match answers.next().await {
            Some(Ok(What::Close { outcome, body })) => closed(outcome, body.as_deref()),
            Some(Err(Cancelled) | Ok(_)) | None => ClientAnswer::Cancelled,
        })
    }

    /// The parameters of the next cancellation that the client was told of and has not been told of yet: they name the
    /// question by an id that only the recorded session had.
    pub fn next_cancellation(&self) -> Option<Value> {
        let schedule = &self.replay.schedule;
        let index = schedule.first_pending(|event| {
            event.lane == self.lane && matches!(&event.what, What::NoteOut { op, .. } if op == CANCELLED)
        })?;
        match &schedule.events[index].what {
            What::NoteOut { body, .. } => Some(serde_json::from_str::<Value>(body).ok()?["params"].take()),
            _ => None,
        }
    }

    /// Waits until the client may be told something. False if it was not told so when the session was recorded; the replay
    /// then has a problem more.
    pub async fn told(&self, method: &str, params: &Value) -> bool {
        let body = notice(method, params);
        let Ok(index) = self.replay.find_note(&self.asked(method, &body)) else { return false };
        self.replay.schedule.turn(index).await;
        self.replay.schedule.reproduced(index);
        true
    }
}

fn closed(outcome: Outcome, body: Option<&str>) -> ClientAnswer {
    let mut body: Value = body.and_then(|body| serde_json::from_str(body).ok()).unwrap_or_default();
    match outcome {
        Outcome::Ok => ClientAnswer::Result(body["result"].take()),
        _ => ClientAnswer::Error(body["error"].take()),
    }
}

/// How something that a client was told is recorded: as the frame that it is.
pub(crate) fn notice(method: &str, params: &Value) -> String {
    let mut frame = json!({"jsonrpc": "2.0", "method": method});
    if !params.is_null() {
        frame["params"] = params.clone();
    }
    frame.to_string()
}
