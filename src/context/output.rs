//! The client's stream: Yao's message envelopes, with their state kept on the server.
//!
//! Invariant: what is stored of a message is what a client that applied every delta shows (Yao's store and client
//! differed). Ids are unique over the whole turn tree. Deliberately no transport: messages leave as trace events and to a
//! listener.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_boundary::trace::EventKind;
use greenroom_boundary::{AgentId, Scope, Tracer};
use serde_json::{Map, Value, json};

use super::delta::{DeltaAction, apply, below_props, nested};

/// A message that cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Neither text nor an object with a string `type`.
    #[error("{what} must be a string, or an object with a string `type`")]
    NotAMessage {
        /// Which argument.
        what: &'static str,
    },
    /// No message of that id was opened.
    #[error("no message has the id {id:?}")]
    Unknown {
        /// The id.
        id: String,
    },
    /// The message was closed.
    #[error("message {id:?} has ended; open a new one")]
    Ended {
        /// The id.
        id: String,
    },
    /// `Set` without a path.
    #[error("path cannot be empty for Set operation")]
    EmptyPath,
    /// A path that leads nowhere.
    #[error("there is no place {path:?} below `props`: it is too deep, far beyond the end of a list, or not in what is sent")]
    Path {
        /// The path.
        path: String,
    },
}

impl SendError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAMessage { .. } => "ERR_ARGUMENT",
            Self::Unknown { .. } => "ERR_UNKNOWN_MESSAGE",
            Self::Ended { .. } => "ERR_MESSAGE_ENDED",
            Self::EmptyPath => "ERR_EMPTY_PATH",
            Self::Path { .. } => "ERR_PATH",
        }
    }
}

/// Receives every message of a stream.
pub type OutputListener = Arc<dyn Fn(&Value) + Send + Sync>;

#[derive(Default)]
struct State {
    messages: u64,
    blocks: u64,
    threads: u64,
    chunks: u64,
    open: BTreeMap<String, Document>,
    block_messages: BTreeMap<String, u64>,
}

struct Document {
    kind: String,
    props: Value,
    block: Option<String>,
    chunks: u64,
    ended: bool,
}

/// A stream of messages to the client of one turn tree.
pub struct OutputStream {
    tracer: Tracer,
    listener: Option<OutputListener>,
    state: Mutex<State>,
}

impl fmt::Debug for OutputStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OutputStream")
    }
}

/// Who writes.
#[derive(Clone, Copy)]
pub struct Author<'a> {
    /// Its scope.
    pub scope: &'a Scope,
    /// Its agent.
    pub agent: Option<&'a AgentId>,
}

impl OutputStream {
    /// A stream that is traced and, if there is a listener, heard.
    pub fn new(tracer: Tracer, listener: Option<OutputListener>) -> Self {
        Self { tracer, listener, state: Mutex::default() }
    }

    /// A message as a client shows it now: type, props, block, whether it has ended.
    pub fn shown(&self, id: &str) -> Option<(String, Value, Option<String>, bool)> {
        self.with(|state| {
            let document = state.open.get(id)?;
            Some((document.kind.clone(), document.props.clone(), document.block.clone(), document.ended))
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn emit(&self, author: Author<'_>, body: Value) {
        if let Some(listener) = &self.listener {
            listener(&body);
        }
        self.tracer.emit(author.scope, author.agent, EventKind::Output { body });
    }

    fn event(&self, author: Author<'_>, name: &str, data: Value) {
        self.emit(author, json!({"type": "event", "props": {"event": name, "data": data}}));
    }

    /// A step of the trace that clients see.
    pub(super) fn trace(&self, author: Author<'_>, props: Value) {
        self.emit(author, json!({"type": "trace", "props": props}));
    }

    /// A fresh message id, `M1`.
    pub fn message_id(&self) -> String {
        self.with(|state| {
            state.messages += 1;
            format!("M{}", state.messages)
        })
    }

    /// A fresh block id, `B1`.
    pub fn block_id(&self) -> String {
        self.with(|state| {
            state.blocks += 1;
            format!("B{}", state.blocks)
        })
    }

    /// A fresh thread id, `T1`.
    pub fn thread_id(&self) -> String {
        self.with(|state| {
            state.threads += 1;
            format!("T{}", state.threads)
        })
    }

    fn chunk_id(&self) -> String {
        self.with(|state| {
            state.chunks += 1;
            format!("C{}", state.chunks)
        })
    }

    /// Opens a message and returns its id.
    pub fn open(&self, author: Author<'_>, message: &Value, block: Option<&str>) -> Result<String, SendError> {
        let mut envelope = parse("message", message)?;
        if envelope["type"] == "event" {
            self.emit(author, Value::Object(envelope));
            return Ok(String::new());
        }
        let id = match envelope.get("message_id").and_then(Value::as_str) {
            Some(id) => id.to_owned(),
            None => self.message_id(),
        };
        let block = envelope.get("block_id").and_then(Value::as_str).or(block).map(str::to_owned);
        if let Some(block) = &block {
            let fresh = self.with(|state| {
                let count = state.block_messages.entry(block.clone()).or_insert(0);
                *count += 1;
                *count == 1
            });
            if fresh {
                self.event(author, "block_start", json!({"block_id": block, "type": "mixed"}));
            }
            envelope.insert("block_id".to_owned(), json!(block));
        }
        let kind = envelope["type"].as_str().unwrap_or_default().to_owned();
        self.event(author, "message_start", json!({"message_id": id, "type": kind}));
        envelope.insert("chunk_id".to_owned(), json!(self.chunk_id()));
        envelope.insert("message_id".to_owned(), json!(id));
        let props = envelope.get("props").cloned().unwrap_or_else(|| json!({}));
        self.with(|state| state.open.insert(id.clone(), Document { kind, props, block, chunks: 1, ended: false }));
        self.emit(author, Value::Object(envelope));
        Ok(id)
    }

    /// A whole message: opens and closes it.
    pub fn send(&self, author: Author<'_>, message: &Value, block: Option<&str>) -> Result<String, SendError> {
        let id = self.open(author, message, block)?;
        if !id.is_empty() {
            self.end(author, &id, None)?;
        }
        Ok(id)
    }

    pub(super) fn delta(
        &self,
        author: Author<'_>,
        id: &str,
        content: &Value,
        action: DeltaAction,
        path: Option<&str>,
    ) -> Result<String, SendError> {
        let path = below_props(path.unwrap_or_default());
        if action == DeltaAction::Set && path.is_empty() {
            return Err(SendError::EmptyPath);
        }
        let (mut envelope, kind) = change(content, action, path)?;
        let props = envelope.get("props").cloned().unwrap_or_else(|| json!({}));
        let (kind, block) = self.with(|state| {
            let document = state.open.get_mut(id).ok_or_else(|| SendError::Unknown { id: id.to_owned() })?;
            if document.ended && action != DeltaAction::Replace {
                return Err(SendError::Ended { id: id.to_owned() });
            }
            apply(&mut document.props, &props, action, path)
                .ok_or_else(|| SendError::Path { path: path.chars().take(MAX_SHOWN_PATH).collect() })?;
            document.chunks += 1;
            if action == DeltaAction::Replace
                && let Some(kind) = &kind
            {
                document.kind.clone_from(kind);
            }
            Ok((kind.unwrap_or_else(|| document.kind.clone()), document.block.clone()))
        })?;
        envelope.insert("type".to_owned(), json!(kind));
        envelope.insert("chunk_id".to_owned(), json!(self.chunk_id()));
        envelope.insert("message_id".to_owned(), json!(id));
        if let Some(block) = block {
            envelope.insert("block_id".to_owned(), json!(block));
        }
        envelope.insert("delta".to_owned(), json!(true));
        envelope.insert("delta_action".to_owned(), json!(action.name()));
        if !path.is_empty() {
            envelope.insert("delta_path".to_owned(), json!(path));
        }
        self.emit(author, Value::Object(envelope));
        Ok(id.to_owned())
    }

    /// Appends text to an open message.
    pub fn append_text(&self, author: Author<'_>, id: &str, text: &str) -> Result<String, SendError> {
        self.delta(author, id, &json!(text), DeltaAction::Append, None)
    }

    /// Closes a message, after a last piece of text if there is one. Closing it again does nothing.
    pub fn end(&self, author: Author<'_>, id: &str, last: Option<&str>) -> Result<String, SendError> {
        if let Some(text) = last.filter(|text| !text.is_empty()) {
            self.append_text(author, id, text)?;
        }
        let closed = self.with(|state| {
            let document = state.open.get_mut(id).ok_or_else(|| SendError::Unknown { id: id.to_owned() })?;
            let first = !std::mem::replace(&mut document.ended, true);
            Ok(first.then(|| (document.kind.clone(), document.chunks, document.props.get("content").cloned())))
        })?;
        if let Some((kind, chunks, content)) = closed {
            let mut data = json!({"message_id": id, "type": kind, "chunk_count": chunks, "status": "completed"});
            if let Some(content) = content {
                data["extra"] = json!({"content": content});
            }
            self.event(author, "message_end", data);
        }
        Ok(id.to_owned())
    }

    /// Closes a block; an unknown one is ignored (Yao).
    pub fn end_block(&self, author: Author<'_>, block: &str) {
        if let Some(count) = self.with(|state| state.block_messages.remove(block)) {
            let data = json!({"block_id": block, "type": "mixed", "message_count": count, "status": "completed"});
            self.event(author, "block_end", data);
        }
    }
}

/// Longest part of a path that an error shows.
const MAX_SHOWN_PATH: usize = 100;

/// What a delta sends, and its type if it has one. A whole message has; text appended, and a bare value for a place or for
/// the props as a whole, keep the type of the message that they change.
fn change(content: &Value, action: DeltaAction, path: &str) -> Result<(Map<String, Value>, Option<String>), SendError> {
    let kind = content.get("type").and_then(Value::as_str);
    let props = match (content, action) {
        (Value::Object(envelope), _) if kind.is_some() => return Ok((envelope.clone(), kind.map(str::to_owned))),
        (_, DeltaAction::Append | DeltaAction::Merge | DeltaAction::Set) if !path.is_empty() => nested(path, content.clone()),
        (Value::Object(_), DeltaAction::Merge) => content.clone(),
        (Value::String(text), _) => json!({"content": text}),
        _ => return Err(SendError::NotAMessage { what: "content" }),
    };
    let mut envelope = Map::new();
    envelope.insert("type".to_owned(), Value::Null);
    envelope.insert("props".to_owned(), props);
    Ok((envelope, (action == DeltaAction::Replace).then(|| "text".to_owned())))
}

/// A string is a text message; anything else must be an object with a string `type`.
fn parse(what: &'static str, message: &Value) -> Result<Map<String, Value>, SendError> {
    match message {
        Value::String(text) => {
            let mut envelope = Map::new();
            envelope.insert("type".to_owned(), json!("text"));
            envelope.insert("props".to_owned(), json!({"content": text}));
            Ok(envelope)
        }
        Value::Object(envelope) if envelope.get("type").is_some_and(Value::is_string) => Ok(envelope.clone()),
        _ => Err(SendError::NotAMessage { what }),
    }
}
