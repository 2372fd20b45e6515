//! `hooks`: which hooks ran on an exchange, in which order.
//!
//! Invariant: a skipped hook did not run. Deliberately no verdicts: `count` and `trace` see those.

use greenroom_boundary::SpanId;
use greenroom_boundary::trace::{EventKind, HookVerdict, TraceEvent};

use super::{Finding, Judgement, Subject, possible};
use crate::model::{HooksCheck, Where};
use crate::trace::Sides;

pub(super) fn describe(check: &HooksCheck) -> String {
    let mut parts = Vec::new();
    if let Some(order) = &check.order {
        parts.push(format!("order [{}]", order.join(", ")));
    }
    if !check.covered.is_empty() {
        parts.push(format!("covered [{}]", check.covered.join(", ")));
    }
    let of = check.exchange.as_ref().map(|event| format!(" for {}", event.describe())).unwrap_or_default();
    format!("hooks{of}: {}", parts.join(", "))
}

pub(super) fn judge(check: &HooksCheck, subject: Subject<'_>) -> Judgement {
    let listed = check.order.iter().flatten().chain(&check.covered);
    if let Some(why) = listed.clone().find_map(|hook| possible::hook_is_unknown(hook, subject.scenario)) {
        return Judgement::fail(why);
    }
    let exchange = match &check.exchange {
        None => None,
        Some(event) => match span(event, subject.events) {
            Some(found) => Some(found),
            None => return Judgement::fail(format!("no exchange is started or ended by {}", event.describe())),
        },
    };
    let ran: Vec<(usize, &str)> = subject
        .events
        .iter()
        .enumerate()
        .filter_map(|(index, event)| match &event.kind {
            EventKind::Hook { hook, of, verdict, .. }
                if *verdict != HookVerdict::Skipped && exchange.is_none_or(|(_, span)| span == *of) =>
            {
                Some((index, hook.as_str()))
            }
            _ => None,
        })
        .collect();
    let shown: Vec<&str> = ran.iter().map(|(_, hook)| *hook).collect();
    let place = |at: usize| ran.get(at).or(ran.last()).map(|(index, _)| *index).or(exchange.map(|(index, _)| index));
    if let Some(order) = &check.order
        && *order != shown
    {
        let at = order.iter().zip(&shown).take_while(|(wanted, found)| wanted == *found).count();
        return Judgement::Fail(Finding { message: format!("ran: [{}]", shown.join(", ")), divergent: place(at) });
    }
    let missing: Vec<&str> = check.covered.iter().map(String::as_str).filter(|hook| !shown.contains(hook)).collect();
    if missing.is_empty() {
        return Judgement::Pass;
    }
    let message = format!("never ran: [{}]; ran: [{}]", missing.join(", "), shown.join(", "));
    Judgement::Fail(Finding { message, divergent: place(ran.len()) })
}

/// The exchange that the event belongs to, and where the event is.
fn span(event: &Where, events: &[TraceEvent]) -> Option<(usize, SpanId)> {
    event.positions(events, Sides::Start).into_iter().find_map(|index| match &events[index].kind {
        EventKind::Request { span, .. } | EventKind::Response { span, .. } | EventKind::Chunk { span, .. } => {
            Some((index, *span))
        }
        EventKind::Hook { of, .. } => Some((index, *of)),
        _ => None,
    })
}
