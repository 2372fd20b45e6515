//! A look at a JSON-RPC message: what it is, its id, its method.
//!
//! Invariant: ids are compared as JSON text, so `1` and `"1"` are two ids. Deliberately nothing about MCP's methods but
//! progress and cancellation, which name other exchanges.

use super::json::{Node, splice};

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Has an id and a method.
    Request,
    /// Has a method only.
    Notification,
    /// Has an id and a result.
    Result,
    /// Has an id and an error.
    Error,
    /// Anything else: not JSON, a batch, a bare value.
    Other,
}

/// A message, looked at.
#[derive(Clone, Debug)]
pub struct Envelope {
    /// The text, trimmed.
    pub text: String,
    /// What it is.
    pub kind: Kind,
    /// Its id as JSON text.
    pub id: Option<String>,
    /// Its method.
    pub method: String,
    /// The whole message.
    pub node: Option<Node>,
}

impl Envelope {
    /// Looks at a message.
    pub fn of(text: &str) -> Self {
        let text = text.trim().to_owned();
        let node = Node::parse(&text).ok();
        let id = node.as_ref().and_then(|node| node.get("id")).map(|id| text[id.span.clone()].to_owned());
        let method = node.as_ref().and_then(|node| node.get("method")?.text()).map(str::to_owned);
        let has = |name: &str| node.as_ref().is_some_and(|node| node.get(name).is_some());
        let kind = match (&id, &method) {
            (Some(_), Some(_)) => Kind::Request,
            (None, Some(_)) => Kind::Notification,
            (Some(_), None) if has("result") => Kind::Result,
            (Some(_), None) if has("error") => Kind::Error,
            _ => Kind::Other,
        };
        Self { text, kind, id, method: method.unwrap_or_default(), node }
    }

    /// The operation under which a message is recorded and found again.
    pub fn op(&self) -> &str {
        match self.kind {
            Kind::Request | Kind::Notification => &self.method,
            Kind::Result | Kind::Error => "response",
            Kind::Other => "raw",
        }
    }

    /// The value at a path, as JSON text.
    pub fn raw(&self, path: &[&str]) -> Option<&str> {
        self.node.as_ref()?.at(path).map(|node| &self.text[node.span.clone()])
    }

    /// The token under which progress of this request is reported.
    pub fn progress_token(&self) -> Option<&str> {
        self.raw(&["params", "_meta", "progressToken"])
    }

    /// The request that this notification cancels.
    pub fn cancels(&self) -> Option<&str> {
        if self.method == "notifications/cancelled" { self.raw(&["params", "requestId"]) } else { None }
    }

    /// The request whose progress this notification reports.
    pub fn reports_on(&self) -> Option<&str> {
        if self.method == "notifications/progress" { self.raw(&["params", "progressToken"]) } else { None }
    }

    /// The text with the value at a path replaced; every other byte stays.
    pub fn with(&self, path: &[&str], raw: &str) -> String {
        match self.node.as_ref().and_then(|node| node.at(path)) {
            Some(node) => splice(&self.text, vec![(node.span.clone(), raw.to_owned())]),
            None => self.text.clone(),
        }
    }
}
