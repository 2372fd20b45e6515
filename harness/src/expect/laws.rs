//! The named invariants: one judge each.
//!
//! Invariant: the match is exhaustive, so that no name is without a judge. Deliberately no new facts here.

use std::collections::BTreeMap;

use super::{Judgement, Subject, invariants};
use crate::model::Invariant;

pub(super) fn judge(law: Invariant, subject: Subject<'_>) -> Judgement {
    let events = subject.events;
    match law {
        Invariant::ToolResultsInCallOrder => invariants::tool_results_in_call_order(events),
        Invariant::SideEffectsAtMostOnce => invariants::side_effects_at_most_once(events),
        Invariant::DelegationAcyclic => invariants::delegation_acyclic(events),
        Invariant::DelegateSeesOnlyItsOwnTools => invariants::sees_only_its_own_tools(events, &allowed(subject)),
        _ if !subject.over => Judgement::Vacuous(format!("{law} can be judged only when the run is over")),
        Invariant::EveryRequestAnswered => invariants::every_request_answered(events),
        Invariant::SpansClosed => match invariants::every_request_answered(events) {
            // A run without exchanges leaves none open.
            Judgement::Vacuous(_) => Judgement::Pass,
            other => other,
        },
        Invariant::NothingLeftOver => nothing_left_over(subject),
        Invariant::ScriptFullyConsumed => consumed(subject.facts.unused_script.as_deref(), "scripted"),
        Invariant::CassetteFullyConsumed => consumed(subject.facts.unused_recorded.as_deref(), "recorded"),
    }
}

/// What each agent of the `assistants` section may use.
fn allowed(subject: Subject<'_>) -> BTreeMap<String, Vec<String>> {
    let assistants = subject.scenario.host.assistants.iter();
    assistants.map(|(name, own)| (name.clone(), own.mcp.iter().chain(&own.agents).cloned().collect())).collect()
}

fn nothing_left_over(subject: Subject<'_>) -> Judgement {
    let Some(left) = subject.facts.leftovers else {
        return Judgement::Vacuous("the host was not shut down".to_owned());
    };
    let timers = subject.facts.pending_timers.unwrap_or(0);
    let clean = left.tasks == 0 && left.connections == 0 && left.handles == 0 && timers == 0;
    Judgement::check(clean, || {
        format!(
            "after the shutdown there were {} tasks, {} connections, {} script handles, {timers} timers",
            left.tasks, left.connections, left.handles
        )
    })
}

fn consumed(unused: Option<&[String]>, what: &str) -> Judgement {
    match unused {
        None => Judgement::Vacuous(format!("nothing is {what} in this scenario")),
        Some([]) => Judgement::Pass,
        Some(unused) => Judgement::fail(format!("never used: {}", unused.join("; "))),
    }
}
