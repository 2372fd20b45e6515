//! What is judged: the trace, the replies, and the facts that a trace does not hold.
//!
//! Invariant: every check of the model has exactly one judge, chosen here. Deliberately no snapshots: they need files,
//! so the runner compares them.

use std::collections::BTreeMap;
use std::time::Duration;

use greenroom_boundary::trace::TraceEvent;

use super::{Judgement, budget, events, hooks, laws, reply};
use crate::host::{Leftovers, TurnReply};
use crate::model::{Check, Expectation, Scenario};

/// What is known about a run beside its trace.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Real time of the run so far.
    pub wall: Duration,
    /// What the host still had at its shutdown; absent before it.
    pub leftovers: Option<Leftovers>,
    /// Timers that somebody still waited for after the shutdown; absent before it, and on a system clock.
    pub pending_timers: Option<usize>,
    /// Scripted answers that were never given; absent if nothing is scripted.
    pub unused_script: Option<Vec<String>>,
    /// Recorded exchanges that were never asked for; absent if nothing is replayed.
    pub unused_recorded: Option<Vec<String>>,
}

/// A run, so far or whole.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// Its trace.
    pub events: &'a [TraceEvent],
    /// The replies of the turns that have ended, by name.
    pub replies: &'a BTreeMap<String, TurnReply>,
    /// What else is known.
    pub facts: &'a Facts,
    /// The run is over; before that, laws about its end cannot be judged.
    pub over: bool,
}

/// The word of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Stable code: `EXPECT_TRACE`, `INVARIANT_SPANS_CLOSED`, …
    pub code: String,
    /// What was asked, in one line.
    pub what: String,
    /// The word.
    pub judgement: Judgement,
}

/// Judges an expectation; a list of laws or limits gives one word each. A snapshot gives none.
pub fn judge(expectation: &Expectation, subject: Subject<'_>) -> Vec<Judged> {
    let name = expectation.id.as_deref().map(|id| format!("{id}: ")).unwrap_or_default();
    let one = |what: String, judgement| {
        let code = format!("EXPECT_{}", expectation.check.kind().to_uppercase());
        vec![Judged { code, what: format!("{name}{what}"), judgement }]
    };
    match &expectation.check {
        Check::Reply(check) => one(reply::describe(check), reply::judge(check, subject)),
        Check::Trace { events, mode } => one(events::describe_trace(events, *mode), events::trace(events, *mode, subject)),
        Check::Never(event) => one(format!("never {}", event.describe()), events::never(event, subject)),
        Check::Count(check) => {
            one(format!("count {} is {}", check.event.describe(), check.is.as_value()), events::count(check, subject))
        }
        Check::Hooks(check) => one(hooks::describe(check), hooks::judge(check, subject)),
        Check::Invariant(names) => names
            .iter()
            .map(|law| Judged {
                code: format!("INVARIANT_{}", law.name().replace('-', "_").to_uppercase()),
                what: format!("{name}invariant {law}"),
                judgement: laws::judge(*law, subject),
            })
            .collect(),
        Check::Budget(budget) => budget::judge(budget, subject)
            .into_iter()
            .map(|(what, judgement)| Judged {
                code: "EXPECT_BUDGET".to_owned(),
                what: format!("{name}budget {what}"),
                judgement,
            })
            .collect(),
        Check::Snapshot { .. } => Vec::new(),
    }
}
