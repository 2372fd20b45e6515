//! What a host declares about its hooks, and the cells that coverage counts.
//!
//! Invariant: every enum here is closed and its order is the order of every report. Deliberately plain data: how a host
//! comes to know what cannot happen is its own affair.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use greenroom_boundary::trace::{HookMode, HookPhase, HookVerdict};
use serde::{Deserialize, Serialize};

/// What came of one hook's turn in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookOutcome {
    /// It let the value pass as it was.
    Unchanged,
    /// It changed the value.
    Mutated,
    /// It refused the value.
    Rejected,
    /// It failed: a throw, an error result, a server that could not be reached.
    Threw,
    /// It did not answer in time.
    Timeout,
    /// It answered something that is no answer.
    Malformed,
    /// It ran out of memory.
    Heap,
    /// An earlier hook ended the chain.
    Skipped,
}

impl HookOutcome {
    /// All outcomes, in the order of reports.
    pub const ALL: [Self; 8] = [
        Self::Unchanged,
        Self::Mutated,
        Self::Rejected,
        Self::Threw,
        Self::Timeout,
        Self::Malformed,
        Self::Heap,
        Self::Skipped,
    ];

    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Mutated => "mutated",
            Self::Rejected => "rejected",
            Self::Threw => "threw",
            Self::Timeout => "timeout",
            Self::Malformed => "malformed",
            Self::Heap => "heap",
            Self::Skipped => "skipped",
        }
    }

    /// The outcome of a hook event. The code tells failures apart, whichever verdict the host files them under.
    pub fn of(verdict: HookVerdict, code: Option<&str>) -> Self {
        match verdict {
            HookVerdict::Unchanged => Self::Unchanged,
            HookVerdict::Mutated => Self::Mutated,
            HookVerdict::Rejected => Self::Rejected,
            HookVerdict::Skipped => Self::Skipped,
            HookVerdict::Timeout | HookVerdict::Error => match code {
                Some("HOOK_TIMEOUT" | "HOOK_WALL_LIMIT" | "HOOK_CPU_LIMIT") => Self::Timeout,
                Some("HOOK_MALFORMED" | "HOOK_NOT_JSON") => Self::Malformed,
                Some("HOOK_HEAP_LIMIT") => Self::Heap,
                _ if verdict == HookVerdict::Timeout => Self::Timeout,
                _ => Self::Threw,
            },
        }
    }

    /// Whether it refuses the value or fails, so that an enforced hook ends the call with it.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Rejected | Self::Threw | Self::Timeout | Self::Malformed | Self::Heap)
    }
}

impl fmt::Display for HookOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How many hooks deep a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum HookDepth {
    /// On a call that no hook made.
    #[serde(rename = "0")]
    Zero,
    /// On a call that a hook made.
    #[serde(rename = "1")]
    One,
    /// Deeper.
    #[serde(rename = "2+")]
    More,
}

impl HookDepth {
    /// All depths.
    pub const ALL: [Self; 3] = [Self::Zero, Self::One, Self::More];

    /// The class of a depth.
    pub fn of(depth: u32) -> Self {
        match depth {
            0 => Self::Zero,
            1 => Self::One,
            _ => Self::More,
        }
    }

    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Zero => "0",
            Self::One => "1",
            Self::More => "2+",
        }
    }
}

/// How a hook is written: what it is asked, and what words it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookFormName {
    /// A message hook that answers `{accept, mutated, message, reason}`.
    Envelope,
    /// The same under `!mutate:`.
    EnvelopeValidator,
    /// A message hook that returns the new message.
    Mutate,
    /// A message hook that returns `{valid, reason?}`.
    Validate,
    /// A hook of an agent's config, request or response.
    Turn,
    /// The same under `!mutate:`.
    TurnValidator,
    /// A hook of the host at the beginning of a client's session.
    Session,
    /// The same under `!mutate:`.
    SessionValidator,
    /// `Create` of an agent's script.
    Create,
    /// `Next` of an agent's script.
    Next,
}

impl HookFormName {
    /// Its name in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Envelope => "envelope",
            Self::EnvelopeValidator => "envelope-validator",
            Self::Mutate => "mutate",
            Self::Validate => "validate",
            Self::Turn => "turn",
            Self::TurnValidator => "turn-validator",
            Self::Session => "session",
            Self::SessionValidator => "session-validator",
            Self::Create => "create",
            Self::Next => "next",
        }
    }
}

/// A hook as a host declares it: one side of one declaration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredHook {
    /// Its id in hook events.
    pub id: String,
    /// How it is written.
    pub form: HookFormName,
    /// Which side it looks at.
    pub phase: HookPhase,
    /// The boundary of the exchanges that it looks at: `mcp.shop`.
    pub boundary: String,
    /// The method of those exchanges, if it looks at one only.
    #[serde(default)]
    pub method: Option<String>,
    /// Whether its word counts.
    #[serde(default)]
    pub mode: HookMode,
    /// How deep it can run; empty if it cannot run at all.
    pub depths: BTreeSet<HookDepth>,
    /// Why it cannot run at the other depths.
    #[serde(default)]
    pub not_deeper: String,
    /// What cannot come of it, and why.
    #[serde(default)]
    pub cannot: BTreeMap<HookOutcome, String>,
    /// Places, in the same list, of the hooks that run before it in some chain.
    #[serde(default)]
    pub after: Vec<usize>,
    /// When it ends its chain, nothing is recorded of the hooks behind it.
    #[serde(default)]
    pub ends_silently: bool,
}

impl DeclaredHook {
    /// The kind that it is of.
    pub fn kind(&self) -> HookKindKey {
        let boundary = self.boundary.split_once('.').map_or(self.boundary.as_str(), |(kind, _)| kind);
        HookKindKey { form: self.form, phase: self.phase, boundary: boundary.to_owned(), mode: self.mode }
    }

    /// The outcomes that can come of it.
    pub fn outcomes(&self) -> impl Iterator<Item = HookOutcome> + '_ {
        HookOutcome::ALL.into_iter().filter(|outcome| !self.cannot.contains_key(outcome))
    }

    /// Whether a hook event is this hook's.
    pub(super) fn is_meant(&self, hook: &str, phase: HookPhase, boundary: &str, mode: HookMode) -> bool {
        self.id == hook && self.phase == phase && self.boundary == boundary && self.mode == mode
    }
}

/// A kind of hooks: what they have in common that decides what can come of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HookKindKey {
    /// How they are written.
    pub form: HookFormName,
    /// Which side they look at.
    pub phase: HookPhase,
    /// `mcp`, `server` or `agent`.
    pub boundary: String,
    /// Whether their word counts.
    pub mode: HookMode,
}

impl Ord for HookKindKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |kind: &Self| (kind.form, kind.phase, kind.mode == HookMode::Audit);
        key(self).cmp(&key(other)).then_with(|| self.boundary.cmp(&other.boundary))
    }
}

impl PartialOrd for HookKindKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for HookKindKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {} {}", self.form.as_str(), phase_name(self.phase), self.boundary, mode_name(self.mode))
    }
}

/// A cell: this comes of a hook of this kind, this deep.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Cell {
    /// The kind.
    pub kind: HookKindKey,
    /// How deep.
    pub depth: HookDepth,
    /// What comes of it.
    pub outcome: HookOutcome,
}

pub(super) fn phase_name(phase: HookPhase) -> &'static str {
    match phase {
        HookPhase::Session => "session",
        HookPhase::Config => "config",
        HookPhase::Request => "request",
        HookPhase::Response => "response",
        HookPhase::Create => "create",
        HookPhase::Next => "next",
    }
}

pub(super) fn mode_name(mode: HookMode) -> &'static str {
    match mode {
        HookMode::Enforce => "enforce",
        HookMode::Audit => "audit",
    }
}
