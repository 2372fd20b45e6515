//! Who calls: the path, limits and session that travel with a call.
//!
//! Invariant: a child context never outlives its parent's cancellation, and its scope is below its parent's.
//! Deliberately no global state.

use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::{AgentId, CancellationToken, Scope, SpanId};
use serde_json::{Map, Value};

use super::CallError;
use crate::agents::{Permissions, Session, TurnTree};
use crate::sessions::RootSession;

/// Most pieces of configured code that may be running inside each other.
const MAX_CODE_DEPTH: usize = 8;

/// Receives the progress of a call: (progress, total, message, further `_meta`).
pub type ProgressSink = Arc<dyn Fn(f64, Option<f64>, Option<&str>, Option<&Value>) + Send + Sync>;

/// The context of a call. Cheap to clone.
#[derive(Clone)]
pub struct CallContext {
    /// The causal path of the caller.
    pub scope: Scope,
    /// The agent that calls.
    pub agent: Option<AgentId>,
    /// The span that the call is part of.
    pub parent: Option<SpanId>,
    /// Ends the call.
    pub cancel: CancellationToken,
    /// The model's id of the tool call that this call answers.
    pub tool_call: Option<String>,
    /// The agents that delegated to each other to get here, outermost first, the current one last.
    pub delegation: Vec<AgentId>,
    /// The hooks that are running, outermost first.
    pub hooks: Vec<String>,
    /// The configured code that is running: script servers and expressions, outermost first.
    pub code: Vec<String>,
    /// What the agent that calls may do; none for what is not an agent's doing.
    pub permissions: Option<Arc<Permissions>>,
    /// The session tree that the call belongs to.
    pub root: Arc<RootSession>,
    /// The conversation's state.
    pub session: Arc<Session>,
    /// What one turn of a person and everything below it share.
    pub tree: Arc<TurnTree>,
    /// Request metadata, seen by hooks as `ctx.metadata`.
    pub metadata: Map<String, Value>,
    /// Where progress goes.
    pub progress: Option<ProgressSink>,
    /// Deadline of the call, if not the policy's.
    pub timeout: Option<Duration>,
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
        Self {
            scope,
            agent: None,
            parent: None,
            cancel,
            tool_call: None,
            delegation: Vec::new(),
            hooks: Vec::new(),
            code: Vec::new(),
            permissions: None,
            root,
            session,
            tree,
            metadata: Map::new(),
            progress: None,
            timeout: None,
        }
    }

    /// The context in which a server is asked: as the caller's, inside `span`. A server that wants to end what it begins makes
    /// a token of its own below this one.
    pub(super) fn inside(&self, span: SpanId) -> Self {
        Self { parent: Some(span), ..self.clone() }
    }

    /// The context of a call inside `span`.
    #[must_use]
    pub fn within(&self, span: SpanId) -> Self {
        Self { parent: Some(span), cancel: self.cancel.child_token(), ..self.clone() }
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
        Ok(child)
    }

    /// The context in which hook `id` is asked: hooks are the operator's, so no agent's permissions bind them.
    #[must_use]
    pub fn for_hook(&self, id: &str, timeout: Duration) -> Self {
        let mut child = self.clone();
        child.hooks.push(id.to_owned());
        child.permissions = None;
        child.tool_call = None;
        child.progress = None;
        child.timeout = Some(timeout);
        child
    }

    /// How many hooks deep the call is.
    pub fn hook_depth(&self) -> u32 {
        u32::try_from(self.hooks.len()).unwrap_or(u32::MAX)
    }
}
