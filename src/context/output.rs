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
}

impl SendError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAMessage { .. } => "ERR_ARGUMENT",
            Self::Unknown { .. } => "ERR_UNKNOWN_MESSAGE",
            Self::Ended { .. } => "ERR_MESSAGE_ENDED",
            Self::EmptyPath => "ERR_EMPTY_PATH",
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

/// How a delta is applied (Yao §11.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeltaAction {
    Append,
    Replace,
    Merge,
    Set,
}

impl DeltaAction {
    fn name(self) -> &'static str {
        match self {
            Self::Append => "append",
            Self::Replace => "replace",
            Self::Merge => "merge",
            Self::Set => "set",
        }
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
        let mut envelope = parse("content", content)?;
        let path = path.unwrap_or_default();
        if action == DeltaAction::Set && path.is_empty() {
            return Err(SendError::EmptyPath);
        }
        let props = envelope.get("props").cloned().unwrap_or_else(|| json!({}));
        let block = self.with(|state| {
            let document = state.open.get_mut(id).ok_or_else(|| SendError::Unknown { id: id.to_owned() })?;
            if document.ended && action != DeltaAction::Replace {
                return Err(SendError::Ended { id: id.to_owned() });
            }
            document.chunks += 1;
            apply(&mut document.props, &props, action, path);
            Ok(document.block.clone())
        })?;
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

/// Applies a delta as Yao's client does; paths are relative to `props`.
fn apply(props: &mut Value, delta: &Value, action: DeltaAction, path: &str) {
    if path.is_empty() {
        match action {
            DeltaAction::Replace => *props = delta.clone(),
            DeltaAction::Merge => merge(props, delta),
            DeltaAction::Append | DeltaAction::Set => {
                for (key, value) in delta.as_object().into_iter().flatten() {
                    let Some(slot) = slot_at(props, key) else { continue };
                    if action == DeltaAction::Append { append(slot, value) } else { *slot = value.clone() }
                }
            }
        }
        return;
    }
    let pointer = format!("/{}", path.replace('.', "/"));
    let Some(value) = delta.pointer(&pointer) else { return };
    let Some(slot) = slot_at(props, path) else { return };
    match action {
        DeltaAction::Append => append(slot, value),
        DeltaAction::Replace | DeltaAction::Set => *slot = value.clone(),
        DeltaAction::Merge => merge(slot, value),
    }
}

/// Furthest that a path may reach beyond the end of an array.
const MAX_ARRAY_GAP: usize = 1024;

/// The value at a dotted path, with missing parents made; `None` if an index is far beyond the end.
fn slot_at<'a>(props: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    let mut slot = props;
    for segment in path.split('.') {
        if let (true, Ok(index)) = (slot.is_array(), segment.parse::<usize>()) {
            let items = slot.as_array_mut()?;
            if index > items.len() + MAX_ARRAY_GAP {
                return None;
            }
            if items.len() <= index {
                items.resize(index + 1, Value::Null);
            }
            slot = items.get_mut(index)?;
        } else {
            if !slot.is_object() {
                *slot = json!({});
            }
            slot = slot.as_object_mut()?.entry(segment).or_insert(Value::Null);
        }
    }
    Some(slot)
}

fn append(slot: &mut Value, value: &Value) {
    match (slot, value) {
        (Value::String(text), Value::String(more)) => text.push_str(more),
        (Value::Array(items), Value::Array(more)) => items.extend(more.iter().cloned()),
        (Value::Array(items), more) => items.push(more.clone()),
        (slot, value) => *slot = value.clone(),
    }
}

fn merge(slot: &mut Value, value: &Value) {
    match (slot, value) {
        (Value::Object(target), Value::Object(source)) => {
            for (key, value) in source {
                merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        (slot, value) => *slot = value.clone(),
    }
}
