//! The host's side towards an external server: what it asks and tells us.
//!
//! Invariant: nothing that a server sends is lost without a trace. Deliberately no requests of ours here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use async_trait::async_trait;
use greenroom_boundary::mcp::{Frame, McpError};
use greenroom_boundary::trace::{Direction, EventKind};
use greenroom_boundary::{Drivers, RawJson, Scope, ServerName};
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
}

impl Upstream {
    fn emit(&self, kind: EventKind) {
        self.drivers.tracer.emit(&Scope::default(), None, kind);
    }
}

#[async_trait]
impl PeerHandler for Upstream {
    async fn request(&self, request: IncomingRequest) -> Result<RawJson, RpcError> {
        let (cause, ends) = self.under_way.cause();
        let scope = cause.as_ref().map(|cx| cx.scope.clone()).unwrap_or_default();
        let method = request.method.clone();
        let note = |direction: Direction, body: Value| {
            let (boundary, method) = (self.boundary.clone(), method.clone());
            let event = EventKind::Notification { boundary, method, direction, body };
            self.drivers.tracer.emit(&scope, None, event);
        };
        note(Direction::In, json!({"params": request.params.as_deref().map(value_of)}));
        let answered = match self.host.current() {
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
        };
        if self.drivers.tracer.enabled() {
            let body = match &answered {
                Ok(raw) => json!({"result": value_of(raw)}),
                Err(error) => json!({"error": error}),
            };
            note(Direction::Out, body);
        }
        answered
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

    fn sending(&self, frame: &Frame) {
        if let Ok(Message::Notification { method, params }) = Message::parse(frame) {
            self.emit(EventKind::Notification {
                boundary: self.boundary.clone(),
                method: method.clone(),
                direction: Direction::Out,
                body: json!({"params": params.as_deref().map(value_of)}),
            });
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
