//! The policy of a host: limits and switches.
//!
//! Invariant: what a section leaves out keeps its default; nothing has a deadline that has passed when it begins. Deliberately no
//! limits on what the protocol itself bounds.

use std::time::Duration;

use greenroom_boundary::isolate::Limits;
use greenroom_harness::model::{CyclesSpec, ElicitationSpec, NoteSpec, PolicySpec, RetryOnly, SamplingSpec, TypeScriptSpec};

use super::{parse_deadline, parse_duration};
use crate::hooks::NoteMode;
use crate::scripts::TypeScriptMode;

/// Limits of delegation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelegationPolicy {
    /// Longest chain.
    pub max_depth: u32,
    /// Whether a chain may come back to an agent in it.
    pub allow_cycles: bool,
}

/// Repeating failed tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Repetitions after the first try.
    pub max: u32,
    /// Pause before each.
    pub backoff: Duration,
    /// Only tools that call themselves idempotent or read-only.
    pub idempotent_only: bool,
}

/// Limits and switches.
#[derive(Clone, Debug)]
pub struct HostPolicy {
    /// Protocol revision offered to servers.
    pub spec: String,
    /// Tool calls of one answer side by side.
    pub parallel_tools: bool,
    /// How the TypeScript of scripts is read.
    pub typescript: TypeScriptMode,
    /// Deadline of one tool call.
    pub tool_timeout: Duration,
    /// How far progress may extend that deadline; four times if not set.
    pub tool_timeout_cap: Option<Duration>,
    /// Deadline of a whole list, the connection to its server included.
    pub list_timeout: Duration,
    /// Repeating failed tool calls.
    pub tool_retry: Option<RetryPolicy>,
    /// Delegation.
    pub delegation: DelegationPolicy,
    /// Most model calls in one turn of one agent.
    pub max_model_calls: u32,
    /// Limits of hook scripts.
    pub script_limits: Limits,
    /// Questions of servers.
    pub questions: QuestionPolicy,
    /// How much a result tells of what hooks changed.
    pub note: NoteMode,
    /// How long a client of the HTTP front may stay away; `None`: for ever.
    pub session_idle: Option<Duration>,
    /// Most sessions at once on the HTTP front.
    pub max_sessions: usize,
}

/// Who answers what servers ask, and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionPolicy {
    /// `sampling/createMessage`; `None`: whoever can.
    pub sampling: Option<SamplingSpec>,
    /// `elicitation/create`.
    pub elicitation: ElicitationSpec,
    /// Roots besides the client's.
    pub roots: Vec<String>,
    /// Longest wait for an answer.
    pub timeout: Duration,
}

impl Default for QuestionPolicy {
    fn default() -> Self {
        let timeout = Duration::from_mins(5);
        Self { sampling: None, elicitation: ElicitationSpec::default(), roots: Vec::new(), timeout }
    }
}

impl Default for HostPolicy {
    fn default() -> Self {
        Self {
            spec: "2025-11-25".to_owned(),
            parallel_tools: true,
            typescript: TypeScriptMode::default(),
            tool_timeout: Duration::from_secs(60),
            tool_timeout_cap: None,
            list_timeout: Duration::from_secs(10),
            tool_retry: None,
            delegation: DelegationPolicy { max_depth: 8, allow_cycles: false },
            max_model_calls: 16,
            script_limits: Limits::default(),
            questions: QuestionPolicy::default(),
            note: NoteMode::default(),
            session_idle: Some(Duration::from_mins(30)),
            max_sessions: 1024,
        }
    }
}

impl HostPolicy {
    /// Lays a policy section over this one; the error is (key, message).
    pub fn overlay(&mut self, spec: &PolicySpec) -> Result<(), (&'static str, String)> {
        let duration = |key: &'static str, text: &str| parse_deadline(text).map_err(|error| (key, error));
        if let Some(revision) = &spec.spec {
            if revision.parse::<greenroom_wire::ProtocolVersion>().is_err() {
                return Err((
                    "spec",
                    format!("{revision:?} is not a supported protocol revision; use 2025-11-25, 2025-06-18 or 2025-03-26"),
                ));
            }
            self.spec.clone_from(revision);
        }
        self.parallel_tools = spec.parallel_tools.unwrap_or(self.parallel_tools);
        if let Some(text) = &spec.tool_timeout {
            self.tool_timeout = duration("tool_timeout", text)?;
        }
        if let Some(text) = &spec.tool_timeout_cap {
            self.tool_timeout_cap = Some(duration("tool_timeout_cap", text)?);
        }
        if let Some(text) = &spec.list_timeout {
            self.list_timeout = duration("list_timeout", text)?;
        }
        if let Some(retry) = &spec.tool_retry {
            let backoff = parse_duration(&retry.backoff).map_err(|error| ("tool_retry.backoff", error.to_string()))?;
            self.tool_retry =
                Some(RetryPolicy { max: retry.max, backoff, idempotent_only: retry.only == RetryOnly::Idempotent });
        }
        if let Some(delegation) = &spec.delegation {
            self.delegation.max_depth = delegation.max_depth.unwrap_or(self.delegation.max_depth);
            self.delegation.allow_cycles = delegation.cycles == Some(CyclesSpec::Allow);
        }
        self.max_model_calls = spec.max_model_calls.unwrap_or(self.max_model_calls);
        self.note = match spec.note {
            None => self.note,
            Some(NoteSpec::Content) => NoteMode::Content,
            Some(NoteSpec::Meta) => NoteMode::Meta,
            Some(NoteSpec::Off) => NoteMode::Off,
        };
        self.typescript = match spec.typescript {
            None => self.typescript,
            Some(TypeScriptSpec::Erase) => TypeScriptMode::Erase,
            Some(TypeScriptSpec::Full) => TypeScriptMode::Full,
        };
        if let Some(isolation) = spec.isolation {
            self.script_limits.isolation = isolation.into();
        }
        if let Some(limits) = &spec.script_limits {
            if let Some(text) = &limits.wall {
                self.script_limits.wall = duration("script_limits.wall", text)?;
            }
            if let Some(text) = &limits.cpu {
                self.script_limits.cpu = duration("script_limits.cpu", text)?;
            }
            if let Some(mib) = limits.heap_mib {
                self.script_limits.heap_bytes = (mib as usize) << 20;
            }
        }
        match spec.session_idle.as_deref() {
            None => {}
            Some("off") => self.session_idle = None,
            Some(text) => self.session_idle = Some(duration("session_idle", text)?),
        }
        if spec.max_sessions == Some(0) {
            return Err(("max_sessions", "0 sessions would serve nobody; write 1 or more".to_owned()));
        }
        self.max_sessions = spec.max_sessions.map_or(self.max_sessions, |most| most as usize);
        self.questions.overlay(spec)?;
        Ok(())
    }
}

impl QuestionPolicy {
    fn overlay(&mut self, spec: &PolicySpec) -> Result<(), (&'static str, String)> {
        self.sampling = spec.sampling.or(self.sampling);
        self.elicitation = spec.elicitation.unwrap_or(self.elicitation);
        if let Some(root) = spec.roots.iter().find(|root| !root.starts_with("file://")) {
            return Err(("roots", format!("{root:?} is no root: write it as `file:///folder`")));
        }
        if !spec.roots.is_empty() {
            self.roots.clone_from(&spec.roots);
        }
        if let Some(text) = &spec.question_timeout {
            self.timeout = parse_deadline(text).map_err(|error| ("question_timeout", error))?;
        }
        Ok(())
    }
}
