//! The one vocabulary of events, and the way they leave a host.
//!
//! Invariant: [`EventKind`] is closed and its JSON form stable; nothing observes a run but through it. One event is one
//! JSON line; field order is fixed. Sequence numbers are given in the order of emission, which a simulation fixes.
//! Deliberately no filtering and no storage here.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::llm::Usage;
use crate::{AgentId, Clock, Scope, SpanId};

/// One event of a run: a line of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceEvent {
    /// Position in the trace, from 0.
    pub seq: u64,
    /// Nanoseconds since the run started, on the host's clock.
    pub vt: u64,
    /// The causal path of whoever acts: `t1/desk/billing`.
    #[serde(default, skip_serializing_if = "scope_is_empty")]
    pub scope: Scope,
    /// The agent that acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

fn scope_is_empty(scope: &Scope) -> bool {
    scope.as_str().is_empty()
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With a result.
    Ok,
    /// With an error.
    Error,
    /// By the caller's cancellation.
    Cancelled,
    /// By the host's deadline.
    Timeout,
    /// The peer went away.
    Lost,
}

/// Which way a one-way message went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// To the host.
    In,
    /// From the host.
    Out,
}

/// Side of an exchange that a hook looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookPhase {
    /// Before the session is set up.
    Session,
    /// When an agent's config is made for a turn.
    Config,
    /// Before the message is sent, or the model asked.
    Request,
    /// After the answer came.
    Response,
    /// Yao's `Create`.
    Create,
    /// Yao's `Next`.
    Next,
}

/// Whether a hook's word counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookMode {
    /// It counts.
    #[default]
    Enforce,
    /// It is recorded, never applied.
    Audit,
}

/// What a hook decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookVerdict {
    /// Nothing changed.
    Unchanged,
    /// The value was changed; the patch says how.
    Mutated,
    /// The call was refused.
    Rejected,
    /// The hook failed.
    Error,
    /// The hook did not answer in time.
    Timeout,
    /// It did not run, as an earlier one ended the chain.
    Skipped,
}

/// Why work went to another agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelegateVia {
    /// `Create` returned `delegate`.
    Create,
    /// `Next` returned `delegate`.
    Next,
    /// A script called `ctx.agent`.
    Script,
    /// The model called the agent's tool.
    Tool,
    /// A server asked for a sample.
    Sampling,
}

/// What can happen. `boundary` is `llm.NAME`, `mcp.NAME`, `cli.NAME`, `agent.NAME`, `server.NAME` (built in), `client.NAME`, `hook`,
/// `isolate`, `egress` (what scripts fetch), `clock` or `host`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventKind {
    /// Something from outside reached the host: a user's turn, a cancellation.
    Stimulus {
        /// Its name in the scenario, `turn`.
        id: String,
        /// `turn` or `cancel`.
        method: String,
        /// What it carries.
        body: Value,
    },
    /// The host answered a stimulus.
    StimulusEnd {
        /// The stimulus.
        id: String,
        /// How it ended.
        outcome: Outcome,
        /// The reply.
        body: Value,
    },
    /// The host starts an exchange at a boundary, after every request hook.
    Request {
        /// The exchange.
        span: SpanId,
        /// The exchange or turn that it is part of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<SpanId>,
        /// Where.
        boundary: String,
        /// `tools/call`, `chat`, `turn`, …
        method: String,
        /// The model's id of the tool call that this exchange answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_call: Option<String>,
        /// What is sent.
        body: Value,
    },
    /// A piece of a streamed answer.
    Chunk {
        /// The exchange.
        span: SpanId,
        /// Where.
        boundary: String,
        /// The piece.
        body: Value,
    },
    /// An exchange ends.
    Response {
        /// The exchange.
        span: SpanId,
        /// Where.
        boundary: String,
        /// As in the request.
        method: String,
        /// How it ended.
        outcome: Outcome,
        /// Result or error, as it came in, before any response hook.
        body: Value,
        /// Token counts of a completion.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
    },
    /// A one-way message, or a request that a server makes of the host.
    Notification {
        /// Where.
        boundary: String,
        /// `notifications/progress`, …
        method: String,
        /// Which way.
        direction: Direction,
        /// Its parameters.
        body: Value,
    },
    /// A hook decided.
    Hook {
        /// Its id: `metric-only`, `policy/check_args`, `desk/Create`.
        hook: String,
        /// The exchange or turn that it looked at.
        of: SpanId,
        /// Where that exchange goes.
        boundary: String,
        /// The method of that exchange.
        method: String,
        /// Which side.
        phase: HookPhase,
        /// Whether its word counts.
        mode: HookMode,
        /// What it decided.
        verdict: HookVerdict,
        /// What it changed, or would have changed: RFC 6902.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        patch: Option<Value>,
        /// Why.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The error's code, if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// How many hooks deep it ran.
        depth: u32,
    },
    /// Work went to another agent.
    Delegate {
        /// Who gave it away.
        from: AgentId,
        /// Who takes it.
        to: AgentId,
        /// Length of the chain, from 1.
        depth: u32,
        /// How.
        via: DelegateVia,
    },
    /// A message for the client's stream.
    Output {
        /// The message: Yao's envelope.
        body: Value,
    },
    /// A line that a script wrote to its console.
    Console {
        /// `log`, `info`, `warn`, `error` or `debug`.
        level: String,
        /// The text.
        text: String,
    },
    /// An injected fault fired.
    Fault {
        /// Its id in the scenario.
        id: String,
        /// Where.
        boundary: String,
        /// What was done.
        body: Value,
    },
    /// The host noticed something that no caller hears of: a late answer, an unlisted server.
    Warning {
        /// Where.
        boundary: String,
        /// A stable code: `stale_response`, `list_incomplete`.
        method: String,
        /// Details.
        body: Value,
    },
}

impl EventKind {
    /// The boundary of an event; `host` for stimuli, delegation and output.
    pub fn boundary(&self) -> &str {
        match self {
            Self::Request { boundary, .. }
            | Self::Chunk { boundary, .. }
            | Self::Response { boundary, .. }
            | Self::Notification { boundary, .. }
            | Self::Hook { boundary, .. }
            | Self::Fault { boundary, .. }
            | Self::Warning { boundary, .. } => boundary,
            Self::Console { .. } => "isolate",
            Self::Stimulus { .. } | Self::StimulusEnd { .. } | Self::Delegate { .. } | Self::Output { .. } => "host",
        }
    }

    /// The method of an event, or its kind's name where it has none.
    pub fn method(&self) -> &str {
        match self {
            Self::Stimulus { method, .. }
            | Self::Request { method, .. }
            | Self::Response { method, .. }
            | Self::Notification { method, .. }
            | Self::Hook { method, .. }
            | Self::Warning { method, .. } => method,
            Self::StimulusEnd { .. } => "stimulus_end",
            Self::Chunk { .. } => "chunk",
            Self::Delegate { .. } => "delegate",
            Self::Output { .. } => "output",
            Self::Console { .. } => "console",
            Self::Fault { .. } => "fault",
        }
    }
}

/// Receives the events of a run.
pub trait TraceSink: Send + Sync {
    /// Takes one event. Called in order; must not block.
    fn emit(&self, event: TraceEvent);

    /// Whether anybody listens; a host may leave out the work of describing an event if not.
    fn enabled(&self) -> bool {
        true
    }
}

/// Throws events away.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrace;

impl TraceSink for NoTrace {
    fn emit(&self, _event: TraceEvent) {}

    fn enabled(&self) -> bool {
        false
    }
}

/// Numbers, times and forwards events. Clones share the numbering.
#[derive(Clone)]
pub struct Tracer(Arc<TracerState>);

struct TracerState {
    clock: Arc<dyn Clock>,
    started: u64,
    next_seq: std::sync::Mutex<u64>,
    next_span: AtomicU64,
    sink: Arc<dyn TraceSink>,
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tracer")
    }
}

impl Tracer {
    /// A tracer whose `vt` counts from now on `clock`.
    pub fn new(clock: Arc<dyn Clock>, sink: Arc<dyn TraceSink>) -> Self {
        let started = clock.now().0;
        Self(Arc::new(TracerState { clock, started, next_seq: std::sync::Mutex::new(0), next_span: AtomicU64::new(1), sink }))
    }

    /// Whether anybody listens.
    pub fn enabled(&self) -> bool {
        self.0.sink.enabled()
    }

    /// A fresh span id.
    pub fn span(&self) -> SpanId {
        SpanId(self.0.next_span.fetch_add(1, Ordering::SeqCst))
    }

    /// Emits an event.
    pub fn emit(&self, scope: &Scope, agent: Option<&AgentId>, kind: EventKind) {
        if !self.enabled() {
            return;
        }
        let vt = self.0.clock.now().0.saturating_sub(self.0.started);
        let mut next_seq = self.0.next_seq.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let event = TraceEvent { seq: *next_seq, vt, scope: scope.clone(), agent: agent.cloned(), kind };
        *next_seq += 1;
        self.0.sink.emit(event);
    }
}
