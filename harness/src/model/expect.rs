//! The `expect:` section: what the trace must show.
//!
//! Invariant: an expectation is exactly one check, and a check that cannot fail is refused here already. Deliberately
//! no evaluation here.

use greenroom_boundary::trace::Outcome;
use greenroom_mocks::duration::Duration;
use greenroom_mocks::pattern::Pattern;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::address::outcome_schema;
use super::drivers::is_default;
use super::{Invariant, Where};

/// One expectation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "ExpectationParts", into = "ExpectationParts")]
#[schemars(with = "ExpectationParts")]
pub struct Expectation {
    /// Its name in reports.
    pub id: Option<String>,
    /// What is checked.
    pub check: Check,
}

/// What is checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Check {
    /// The answer of a turn.
    Reply(ReplyCheck),
    /// Events that must be in the trace.
    Trace {
        /// The events.
        events: Vec<Where>,
        /// How they lie in the trace.
        mode: TraceMode,
    },
    /// An event that must not be in the trace.
    Never(Where),
    /// How often an event is in the trace.
    Count(CountCheck),
    /// Which hooks ran.
    Hooks(HooksCheck),
    /// Laws that hold for every run.
    Invariant(Vec<Invariant>),
    /// Limits on what the run used.
    Budget(Box<Budget>),
    /// A stored picture of the run.
    Snapshot {
        /// Name of the snapshot.
        name: String,
        /// JSON pointers, `*` for any part, to what may differ.
        mask: Vec<String>,
    },
}

impl Check {
    /// The key that it is written with.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Reply(_) => "reply",
            Self::Trace { .. } => "trace",
            Self::Never(_) => "never",
            Self::Count(_) => "count",
            Self::Hooks(_) => "hooks",
            Self::Invariant(_) => "invariant",
            Self::Budget(_) => "budget",
            Self::Snapshot { .. } => "snapshot",
        }
    }
}

/// The answer of a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplyCheck {
    /// The turn; absent means the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<String>,
    /// Its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Pattern>,
    /// What `Next` returned as `data`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Pattern>,
    /// Its failure: `{ code, message }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Pattern>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "outcome_schema")]
    pub outcome: Option<Outcome>,
}

/// How listed events lie in the trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TraceMode {
    /// In this order, with anything between them.
    #[default]
    Subsequence,
    /// In this order, with no other event of their boundaries and phases between them.
    Exact,
    /// In any order, each by an event of its own.
    Unordered,
}

/// How often an event is in the trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CountCheck {
    /// The event.
    pub event: Where,
    /// The number: a pattern, such as `2` or `{ $range: { min: 1 } }`.
    pub is: Pattern,
}

/// Which hooks ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HooksCheck {
    /// Only hooks on the exchange that this event starts or ends.
    #[serde(default, rename = "for", skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Where>,
    /// These ran, in this order, and no others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Vec<String>>,
    /// These ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub covered: Vec<String>,
}

/// A limit on a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct CountBound {
    /// Not more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// Not less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<u64>,
    /// Exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<u64>,
}

/// A limit on a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct TimeBound {
    /// Not longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Duration>,
    /// Not shorter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Duration>,
    /// Exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is: Option<Duration>,
}

/// Limits on what a run used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("minProperties" = 1))]
pub struct Budget {
    /// Model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub llm_calls: Option<CountBound>,
    /// Tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<CountBound>,
    /// Tokens read by models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_in: Option<CountBound>,
    /// Tokens written by models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_out: Option<CountBound>,
    /// Time on the scenario's clock, from the first stimulus to the end of the last turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub r#virtual: Option<TimeBound>,
    /// Real time of the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<TimeBound>,
    /// Longest chain of delegation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delegation_depth: Option<CountBound>,
    /// Events in the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<CountBound>,
}

/// One name, or several.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Invariants {
    One(Invariant),
    Many(Vec<Invariant>),
}

/// An expectation: one of `reply`, `trace` (with `mode`), `never`, `count`, `hooks`, `invariant`, `budget`, `snapshot`
/// (with `mask`); `id` names it.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Expectation", extend("minProperties" = 1))]
struct ExpectationParts {
    /// Its name in reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The answer of a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<ReplyCheck>,
    /// Events that must be in the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<Vec<Where>>,
    /// How they lie in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<TraceMode>,
    /// An event that must not be in the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    never: Option<Where>,
    /// How often an event is in the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    count: Option<CountCheck>,
    /// Which hooks ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hooks: Option<HooksCheck>,
    /// Laws that hold for every run: one name or a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    invariant: Option<Invariants>,
    /// Limits on what the run used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    budget: Option<Budget>,
    /// Name of a stored picture of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    snapshot: Option<String>,
    /// JSON pointers, `*` for any part, to what may differ from the snapshot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mask: Vec<String>,
}

impl TryFrom<ExpectationParts> for Expectation {
    type Error = String;

    fn try_from(parts: ExpectationParts) -> Result<Self, Self::Error> {
        let given = [
            ("reply", parts.reply.is_some()),
            ("trace", parts.trace.is_some()),
            ("never", parts.never.is_some()),
            ("count", parts.count.is_some()),
            ("hooks", parts.hooks.is_some()),
            ("invariant", parts.invariant.is_some()),
            ("budget", parts.budget.is_some()),
            ("snapshot", parts.snapshot.is_some()),
        ];
        super::exactly_one("an expectation", &given)?;
        if parts.mode.is_some() && parts.trace.is_none() {
            return Err("`mode` says how events lie in the trace: it goes with `trace`".to_owned());
        }
        if !parts.mask.is_empty() && parts.snapshot.is_none() {
            return Err("`mask` says what may differ from a snapshot: it goes with `snapshot`".to_owned());
        }
        let id = parts.id.clone();
        let check = check(parts)?;
        vacuous(&check).map_or(Ok(Self { id, check }), |why| Err(why.to_owned()))
    }
}

fn check(parts: ExpectationParts) -> Result<Check, String> {
    Ok(match parts {
        ExpectationParts { reply: Some(reply), .. } => Check::Reply(reply),
        ExpectationParts { trace: Some(events), mode, .. } => Check::Trace { events, mode: mode.unwrap_or_default() },
        ExpectationParts { never: Some(event), .. } => Check::Never(event),
        ExpectationParts { count: Some(count), .. } => Check::Count(count),
        ExpectationParts { hooks: Some(hooks), .. } => Check::Hooks(hooks),
        ExpectationParts { invariant: Some(Invariants::One(one)), .. } => Check::Invariant(vec![one]),
        ExpectationParts { invariant: Some(Invariants::Many(many)), .. } => Check::Invariant(many),
        ExpectationParts { budget: Some(budget), .. } => Check::Budget(Box::new(budget)),
        ExpectationParts { snapshot: Some(name), mask, .. } => Check::Snapshot { name, mask },
        _ => return Err("an expectation needs one thing to check".to_owned()),
    })
}

/// Why a check could never fail.
fn vacuous(check: &Check) -> Option<&'static str> {
    match check {
        Check::Reply(ReplyCheck { text: None, data: None, error: None, outcome: None, .. }) => {
            Some("`reply` checks nothing; give it `text`, `data`, `error` or `outcome`")
        }
        Check::Trace { events, .. } if events.is_empty() => Some("`trace` lists no event, so it checks nothing"),
        Check::Hooks(HooksCheck { order: None, covered, .. }) if covered.is_empty() => {
            Some("`hooks` checks nothing; give it `order` or `covered`")
        }
        Check::Invariant(names) if names.is_empty() => Some("`invariant` lists no name, so it checks nothing"),
        Check::Budget(budget) if is_default(&**budget) => Some("`budget` sets no limit, so it checks nothing"),
        _ => None,
    }
}

impl From<Expectation> for ExpectationParts {
    fn from(Expectation { id, check }: Expectation) -> Self {
        let none = Self { id, ..Self::default() };
        match check {
            Check::Reply(reply) => Self { reply: Some(reply), ..none },
            Check::Trace { events, mode } => Self { trace: Some(events), mode: Some(mode), ..none },
            Check::Never(event) => Self { never: Some(event), ..none },
            Check::Count(count) => Self { count: Some(count), ..none },
            Check::Hooks(hooks) => Self { hooks: Some(hooks), ..none },
            Check::Invariant(names) => Self { invariant: Some(Invariants::Many(names)), ..none },
            Check::Budget(budget) => Self { budget: Some(*budget), ..none },
            Check::Snapshot { name, mask } => Self { snapshot: Some(name), mask, ..none },
        }
    }
}
