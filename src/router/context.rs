//! Who calls: the path, limits and session that travel with a call.
//!
//! Invariant: a child context never outlives its parent's cancellation, and its scope is below its parent's. A copy shares
//! what most steps leave alone until one changes it. Deliberately no global state.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::{AgentId, CancellationToken, Scope, ServerName, SpanId};
use greenroom_wire::Progress;
use serde_json::{Map, Value, json};

use super::CallError;
use crate::agents::{Permissions, Session, TurnTree};
use crate::sessions::RootSession;

/// A step of progress.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProgressUpdate {
    /// How far; it grows with every step.
    pub progress: f64,
    /// Where it ends, if known.
    pub total: Option<f64>,
    /// What is going on.
    pub message: Option<String>,
    /// What else was said, `_meta` included.
    pub further: Map<String, Value>,
    /// Whether it is a piece of the answer of a model of this host.
    pub of_model: bool,
}

/// Key in `_meta` of a step: a piece of a model's answer.
const COMPLETION_KEY: &str = "ai.nanobot.progress/completion";

impl ProgressUpdate {
    /// A piece of a model's answer.
    pub fn completion(text: &str, told: &Value) -> Self {
        let further = Map::from_iter([("_meta".to_owned(), json!({COMPLETION_KEY: told}))]);
        Self { message: Some(text.to_owned()), further, of_model: true, ..Self::default() }
    }
}

impl From<Progress> for ProgressUpdate {
    fn from(step: Progress) -> Self {
        let mut further: Map<String, Value> = serde_json::from_str(step.params.get()).unwrap_or_default();
        for known in ["progressToken", "progress", "total", "message"] {
            further.shift_remove(known);
        }
        Self { progress: step.progress, total: step.total, message: step.message, further, of_model: false }
    }
}

/// Receives the progress of a call.
pub type ProgressSink = Arc<dyn Fn(&ProgressUpdate) + Send + Sync>;

/// Most pieces of configured code that may be running inside each other.
const MAX_CODE_DEPTH: usize = 8;

/// What most steps of a call leave as it is.
#[derive(Clone)]
pub struct Caller {
    /// The causal path of the caller.
    pub scope: Scope,
    /// The agent that calls.
    pub agent: Option<AgentId>,
    /// Ends the call.
    pub cancel: CancellationToken,
    /// The agents that delegated to each other to get here, outermost first, the current one last.
    pub delegation: Vec<AgentId>,
    /// The configured code that is running: script servers and expressions, outermost first.
    pub code: Vec<String>,
    /// The session tree that the call belongs to.
    pub root: Arc<RootSession>,
    /// The conversation's state.
    pub session: Arc<Session>,
    /// What one turn of a person and everything below it share.
    pub tree: Arc<TurnTree>,
    /// Request metadata, seen by hooks as `ctx.metadata`.
    pub metadata: Map<String, Value>,
    /// The servers whose handshake this call is part of.
    pub connecting: Vec<ServerName>,
}

/// The context of a call. Cheap to clone: the [`Caller`], whose fields it has as its own, is copied when one is written.
#[derive(Clone)]
pub struct CallContext {
    /// Who calls.
    pub caller: Arc<Caller>,
    /// The span that the call is part of.
    pub parent: Option<SpanId>,
    /// The model's id of the tool call that this call answers.
    pub tool_call: Option<String>,
    /// The hooks that are running, outermost first.
    pub hooks: Arc<[String]>,
    /// What the agent that calls may do; none for what is not an agent's doing.
    pub permissions: Option<Arc<Permissions>>,
    /// Where progress goes.
    pub progress: Option<ProgressSink>,
    /// Deadline of the call, if not the policy's; progress does not extend it.
    pub timeout: Option<Duration>,
    /// Whether the caller wants a value: a result that is one JSON text then counts as structured.
    pub wants_structure: bool,
    /// Whether the call asks a hook: what it hands over is the host's message, not a caller's arguments.
    pub asks_hook: bool,
}

impl Deref for CallContext {
    type Target = Caller;

    fn deref(&self) -> &Caller {
        &self.caller
    }
}

impl DerefMut for CallContext {
    fn deref_mut(&mut self) -> &mut Caller {
        Arc::make_mut(&mut self.caller)
    }
}

impl CallContext {
    /// The context of a caller that nobody called.
    pub fn new(
        scope: Scope,
        root: Arc<RootSession>,
        session: Arc<Session>,
        tree: Arc<TurnTree>,
        cancel: CancellationToken,
    ) -> Self {
        let caller = Caller {
            scope,
            agent: None,
            cancel,
            delegation: Vec::new(),
            code: Vec::new(),
            root,
            session,
            tree,
            metadata: Map::new(),
            connecting: Vec::new(),
        };
        Self {
            caller: Arc::new(caller),
            parent: None,
            tool_call: None,
            hooks: Arc::default(),
            permissions: None,
            progress: None,
            timeout: None,
            wants_structure: false,
            asks_hook: false,
        }
    }

    /// The context in which a server is asked: as the caller's, inside `span`. A server that wants to end what it begins makes
    /// a token of its own below this one.
    pub(super) fn inside(&self, span: SpanId) -> Self {
        Self { parent: Some(span), wants_structure: false, ..self.clone() }
    }

    /// The context of a call inside `span`.
    #[must_use]
    pub fn within(&self, span: SpanId) -> Self {
        let mut child = self.inside(span);
        child.cancel = self.cancel.child_token();
        child
    }

    /// The context of configured code called `name`; refused if it calls itself without end.
    pub fn for_code(&self, name: &str) -> Result<Self, CallError> {
        if self.code.len() >= MAX_CODE_DEPTH {
            return Err(CallError::CodeDepth { depth: self.code.len(), path: self.code.join(" > ") });
        }
        let mut child = self.clone();
        child.code.push(name.to_owned());
        child.cancel = self.cancel.child_token();
        child.tool_call = None;
        child.asks_hook = false;
        Ok(child)
    }

    /// The context in which hook `id` is asked: hooks are the operator's, so no agent's permissions bind them.
    #[must_use]
    pub fn for_hook(&self, id: &str, timeout: Duration) -> Self {
        Self {
            caller: self.caller.clone(),
            parent: self.parent,
            tool_call: None,
            hooks: self.hooks.iter().cloned().chain([id.to_owned()]).collect(),
            permissions: None,
            progress: None,
            timeout: Some(timeout),
            wants_structure: false,
            asks_hook: true,
        }
    }

    /// How many hooks deep the call is.
    pub fn hook_depth(&self) -> u32 {
        u32::try_from(self.hooks.len()).unwrap_or(u32::MAX)
    }
}
