//! What lives as long as a conversation: histories and memory.
//!
//! Invariant: ids are unique over a whole turn tree, parallel delegates included. The `context` namespace lives for one turn tree, `chat` for the conversation. Deliberately in memory only.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom_boundary::llm::ChatMessage;
use greenroom_boundary::{AgentId, Scope};
use serde_json::Value;

use crate::context::{Memory, OutputStream, Person, TraceBoard};

/// How long values stay in `ctx.memory.chat` if nobody says (Yao).
const CHAT_TTL: Duration = Duration::from_hours(24);

/// How long values stay in `ctx.memory.context` if nobody says (Yao).
const CONTEXT_TTL: Duration = Duration::from_mins(30);

/// A conversation.
#[derive(Debug, Default)]
pub struct Session {
    /// Its id, `ctx.chat_id`.
    pub id: String,
    /// `ctx.memory.chat`.
    pub chat_memory: Memory,
    meta: Mutex<Option<Value>>,
    histories: Mutex<BTreeMap<AgentId, Vec<ChatMessage>>>,
}

impl Session {
    /// A fresh conversation.
    pub fn new(id: impl Into<String>) -> Arc<Self> {
        Arc::new(Self { id: id.into(), chat_memory: Memory::lasting(CHAT_TTL), ..Self::default() })
    }

    /// What the `session` hooks said about it: the session's `_meta`.
    pub fn meta(&self) -> Option<Value> {
        self.meta.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps what the `session` hooks said.
    pub fn set_meta(&self, meta: Value) {
        *self.meta.lock().unwrap_or_else(PoisonError::into_inner) = Some(meta);
    }

    /// What was said with an agent so far.
    pub fn history(&self, agent: &AgentId) -> Vec<ChatMessage> {
        self.histories.lock().unwrap_or_else(PoisonError::into_inner).get(agent).cloned().unwrap_or_default()
    }

    /// Adds what was said in a turn.
    pub fn remember(&self, agent: &AgentId, messages: impl IntoIterator<Item = ChatMessage>) {
        self.histories.lock().unwrap_or_else(PoisonError::into_inner).entry(agent.clone()).or_default().extend(messages);
    }
}

/// What one turn of a person and everything below it share.
#[derive(Debug)]
pub struct TurnTree {
    /// Messages for the client's stream.
    pub output: OutputStream,
    /// `ctx.memory.context`.
    pub context_memory: Memory,
    /// Whom the turn is for.
    pub person: Person,
    /// `ctx.trace`.
    pub trace: TraceBoard,
    scopes: Mutex<BTreeMap<Scope, u32>>,
    citations: AtomicU64,
}

impl TurnTree {
    /// A fresh tree that writes to `output`, for nobody in particular.
    pub fn new(output: OutputStream) -> Arc<Self> {
        Self::of(output, Person::default())
    }

    /// A fresh tree that writes to `output`, for a person.
    pub fn of(output: OutputStream, person: Person) -> Arc<Self> {
        let (context_memory, trace, scopes) = (Memory::lasting(CONTEXT_TTL), TraceBoard::default(), Mutex::default());
        Arc::new(Self { output, context_memory, person, trace, scopes, citations: AtomicU64::new(0) })
    }

    /// A fresh id of something cited, `ref_001`.
    pub fn citation_id(&self) -> String {
        format!("ref_{:03}", self.citations.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// The scope of `segment` below `parent`; a repeated one is numbered, `desk/billing#2`.
    pub fn scope(&self, parent: &Scope, segment: &str) -> Scope {
        let plain = parent.child(segment);
        let mut scopes = self.scopes.lock().unwrap_or_else(PoisonError::into_inner);
        let count = scopes.entry(plain.clone()).or_insert(0);
        *count += 1;
        if *count == 1 { plain } else { parent.child(&format!("{segment}#{count}")) }
    }
}
