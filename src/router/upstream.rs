//! The host's side towards an external server: what it asks and tells us.
//!
//! Invariant: nothing that a server sends is lost without a trace. Deliberately no requests of ours here.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use greenroom_boundary::mcp::{Frame, McpError};
use greenroom_boundary::trace::{Direction, EventKind};
use greenroom_boundary::{CancellationToken, Drivers, RawJson, Scope, ServerName};
use greenroom_wire::{DropReason, IncomingRequest, Message, Peer, PeerHandler, RequestId, RpcError, WireError};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::external::value_of;
use super::health::Health;
use super::under_way::UnderWay;
use crate::host::HostState;
use crate::sessions::{self, News, Question, RootSession};

/// The host's side towards an external server.
pub(super) struct Upstream {
    pub(super) boundary: String,
    pub(super) drivers: Drivers,
    pub(super) generation: Arc<AtomicU64>,
    pub(super) open: Arc<AtomicUsize>,
    pub(super) health: Arc<Health>,
    /// Tells connections of one server apart.
    pub(super) number: u64,
    pub(super) server: ServerName,
    pub(super) root: Arc<RootSession>,
    pub(super) host: Arc<HostState>,
    pub(super) under_way: UnderWay,
    pub(super) news: News,
    /// On whose behalf, and with which method, each question without an answer was asked.
    pub(super) asked: Mutex<BTreeMap<RequestId, (Scope, String)>>,
}

impl Upstream {
    fn emit(&self, kind: EventKind) {
        self.drivers.tracer.emit(&Scope::default(), None, kind);
    }

    fn note(&self, scope: &Scope, method: &str, direction: Direction, body: Value) {
        let (boundary, method) = (self.boundary.clone(), method.to_owned());
        self.drivers.tracer.emit(scope, None, EventKind::Notification { boundary, method, direction, body });
    }

    fn asked<R>(&self, change: impl FnOnce(&mut BTreeMap<RequestId, (Scope, String)>) -> R) -> R {
        change(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// An answer of ours leaves.
    fn answering(&self, id: Option<&RequestId>, result: Result<RawJson, RpcError>) {
        let Some((scope, method)) = id.and_then(|id| self.asked(|asked| asked.remove(id))) else { return };
        let body = match result {
            Ok(raw) => json!({"result": value_of(&raw)}),
            Err(error) => json!({"error": error}),
        };
        self.note(&scope, &method, Direction::Out, body);
    }
}

/// How many questions of a server may be under way on one connection.
const MOST_QUESTIONS: usize = 64;

#[async_trait]
impl PeerHandler for Upstream {
    async fn request(&self, request: IncomingRequest) -> Result<RawJson, RpcError> {
        if request.peer.answering() > MOST_QUESTIONS {
            let message = format!("more than {MOST_QUESTIONS} questions wait for an answer; ask again when some have theirs");
            return Err(RpcError::new(RpcError::INTERNAL, message).with_data(&json!({"code": "QUESTIONS_FULL"})));
        }
        let (cause, ends) = self.under_way.cause();
        let _unasked = Unasked { of: self, id: request.id.clone(), cancel: request.cancel.clone() };
        match self.host.current() {
            Some(core) => {
                let question = Question {
                    server: self.server.clone(),
                    root: self.root.clone(),
                    method: request.method,
                    params: request.params,
                    cancel: request.cancel,
                    cause,
                    ends,
                };
                sessions::answer(&core, question).await
            }
            None => Err(RpcError::method_not_found(&request.method)),
        }
    }

    fn arrived(&self, request: &IncomingRequest) {
        if !self.drivers.tracer.enabled() {
            return;
        }
        let scope = self.under_way.cause().0.map(|cx| cx.scope.clone()).unwrap_or_default();
        let body = json!({"params": request.params.as_deref().map(value_of)});
        self.note(&scope, &request.method, Direction::In, body);
        self.asked(|asked| asked.insert(request.id.clone(), (scope, request.method.clone())));
    }

    fn notification(&self, _: &Peer, method: &str, params: Option<&RawValue>, _frame: &Frame) {
        if method.ends_with("/list_changed") {
            self.generation.fetch_add(1, Ordering::SeqCst);
        }
        self.emit(EventKind::Notification {
            boundary: self.boundary.clone(),
            method: method.to_owned(),
            direction: Direction::In,
            body: json!({"params": params.map(value_of)}),
        });
        if let Some(core) = self.host.current() {
            self.news.told(&core, method, params);
        }
    }

    fn stale_response(&self, id: Option<&RequestId>, _frame: &Frame) {
        self.emit(EventKind::Warning {
            boundary: self.boundary.clone(),
            method: "stale_response".to_owned(),
            body: json!({"id": id}),
        });
    }

    fn malformed(&self, frame: &Frame, error: &WireError) {
        let text: String = frame.to_text().chars().take(200).collect();
        let body = json!({"code": error.code(), "message": error.to_string(), "frame": text});
        self.emit(EventKind::Warning { boundary: self.boundary.clone(), method: "malformed_frame".to_owned(), body });
    }

    fn dropped_notification(&self, method: &str, reason: DropReason, _frame: &Frame) {
        let body = json!({"notification": method, "reason": reason.code()});
        self.emit(EventKind::Warning { boundary: self.boundary.clone(), method: "notification_dropped".to_owned(), body });
    }

    fn too_large(&self, error: &McpError) {
        let body = json!({"message": error.to_string()});
        self.emit(EventKind::Warning { boundary: self.boundary.clone(), method: "frame_too_large".to_owned(), body });
    }

    fn flooded(&self, dropped: usize) {
        let body = json!({"dropped": dropped});
        self.emit(EventKind::Warning { boundary: self.boundary.clone(), method: "notifications_flooded".to_owned(), body });
    }

    fn sending(&self, frame: &Frame) {
        if !self.drivers.tracer.enabled() {
            return;
        }
        match Message::parse(frame) {
            Ok(Message::Notification { method, params }) => {
                let body = json!({"params": params.as_deref().map(value_of)});
                self.note(&Scope::default(), &method, Direction::Out, body);
            }
            Ok(Message::Response { id, result }) => self.answering(id.as_ref(), result),
            Ok(Message::Request { .. }) | Err(_) => {}
        }
    }

    fn closed(&self, why: Option<McpError>) {
        self.open.fetch_sub(1, Ordering::SeqCst);
        self.health.lost(self.number, why.as_ref());
        if let Some(why) = why {
            let body = json!({"code": why.code(), "message": self.drivers.credentials.mask(&why.to_string())});
            self.emit(EventKind::Warning { boundary: self.boundary.clone(), method: "connection_closed".to_owned(), body });
        }
    }
}

/// Forgets a question that its server has taken back: no answer will leave.
struct Unasked<'a> {
    of: &'a Upstream,
    id: RequestId,
    cancel: CancellationToken,
}

impl Drop for Unasked<'_> {
    fn drop(&mut self) {
        if self.cancel.is_cancelled() {
            self.of.asked(|asked| asked.remove(&self.id));
        }
    }
}
