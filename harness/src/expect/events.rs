//! `trace`, `never` and `count`: which events are there, and in which order.
//!
//! Invariant: a failure shows the first event at which the trace parts from what was asked. Deliberately no time: that is
//! `budget`'s.

use greenroom_boundary::trace::TraceEvent;
use serde_json::Value;

use super::{Finding, Judgement, Subject, possible};
use crate::model::{CountCheck, Phase, TraceMode, Where};
use crate::trace::{Sides, brief};

pub(super) fn describe_trace(events: &[Where], mode: TraceMode) -> String {
    let mode = match mode {
        TraceMode::Subsequence => "in order",
        TraceMode::Exact => "in order with nothing between",
        TraceMode::Unordered => "in any order",
    };
    format!("trace of {} events {mode}", events.len())
}

pub(super) fn trace(wanted: &[Where], mode: TraceMode, subject: Subject<'_>) -> Judgement {
    if let Some(why) = wanted.iter().find_map(|event| possible::why_not(event, subject.scenario)) {
        return Judgement::fail(why);
    }
    match mode {
        TraceMode::Subsequence => subsequence(wanted, subject.events),
        TraceMode::Exact => exact(wanted, subject.events),
        TraceMode::Unordered => unordered(wanted, subject.events),
    }
}

/// Greedy: the earliest event that fits leaves most room for the rest.
fn subsequence(wanted: &[Where], events: &[TraceEvent]) -> Judgement {
    let mut next = 0;
    for (step, event) in wanted.iter().enumerate() {
        let all = event.positions(events, Sides::Start);
        match all.iter().find(|index| **index >= next) {
            Some(index) => next = index + 1,
            None => return Judgement::Fail(not_found(step, wanted, events, next, &all)),
        }
    }
    Judgement::Pass
}

fn not_found(step: usize, wanted: &[Where], events: &[TraceEvent], next: usize, all: &[usize]) -> Finding {
    let event = &wanted[step];
    let head = format!("event {} of {}, {}", step + 1, wanted.len(), event.describe());
    let after = match next {
        0 => "is not in the trace".to_owned(),
        _ => format!("does not come after #{}", events[next - 1].seq),
    };
    if let Some(early) = all.last() {
        let message = format!("{head}, {after}\nit comes earlier: {}", brief(&events[*early]));
        return Finding { message, divergent: Some(*early) };
    }
    if let Some((near, mismatch)) = event.near_miss(events, next).or_else(|| event.near_miss(events, 0)) {
        let message = format!("{head}, {after}\nnearest is #{}: {mismatch}", events[near].seq);
        return Finding { message, divergent: Some(near) };
    }
    Finding { message: format!("{head}, {after}"), divergent: next.checked_sub(1) }
}

/// Looks only at events of the boundaries and phases that are listed; there the list must be one unbroken run.
fn exact(wanted: &[Where], events: &[TraceEvent]) -> Judgement {
    let alike: Vec<Where> = wanted
        .iter()
        .map(|event| Where { method: None, assistant: None, hook: None, nth: None, body: None, outcome: None, ..event.clone() })
        .collect();
    let positions: Vec<Vec<usize>> = wanted.iter().map(|event| event.positions(events, Sides::Start)).collect();
    let kept: Vec<usize> = (0..events.len())
        .filter(|index| {
            alike.iter().any(|event| event.names(&events[*index], Sides::Start))
                || positions.iter().any(|list| list.contains(index))
        })
        .collect();
    let run = |start: usize| {
        positions
            .iter()
            .enumerate()
            .take_while(|(step, list)| kept.get(start + step).is_some_and(|at| list.contains(at)))
            .count()
    };
    let best = (0..kept.len()).map(|start| (run(start), start)).max_by_key(|(length, start)| (*length, usize::MAX - start));
    let (length, start) = best.unwrap_or((0, 0));
    if length == wanted.len() {
        return Judgement::Pass;
    }
    let expected = format!("event {} of {}, {}", length + 1, wanted.len(), wanted[length].describe());
    match kept.get(start + length) {
        Some(at) => {
            let near = wanted[length]
                .names(&events[*at], Sides::Start)
                .then(|| wanted[length].body_fits(&events[*at]).err())
                .flatten();
            let why = near.map(|mismatch| format!("\n{mismatch}")).unwrap_or_default();
            Judgement::fail_at(format!("expected {expected}\nfound {}{why}", brief(&events[*at])), *at)
        }
        None => {
            Judgement::Fail(Finding { message: format!("{expected}, is missing at the end"), divergent: kept.last().copied() })
        }
    }
}

/// Gives each listed event one of its own by augmenting paths.
fn unordered(wanted: &[Where], events: &[TraceEvent]) -> Judgement {
    let positions: Vec<Vec<usize>> = wanted.iter().map(|event| event.positions(events, Sides::Start)).collect();
    let mut owner: Vec<Option<usize>> = vec![None; events.len()];
    for step in 0..wanted.len() {
        let mut tried = vec![false; events.len()];
        if !assign(step, &positions, &mut owner, &mut tried) {
            let head = format!("event {} of {}, {}", step + 1, wanted.len(), wanted[step].describe());
            return match wanted[step].near_miss(events, 0) {
                _ if !positions[step].is_empty() => {
                    Judgement::fail_at(format!("{head}, is there too few times"), positions[step][0])
                }
                Some((near, mismatch)) => {
                    Judgement::fail_at(format!("{head}, is missing\nnearest is #{}: {mismatch}", events[near].seq), near)
                }
                None => Judgement::fail(format!("{head}, is missing")),
            };
        }
    }
    Judgement::Pass
}

fn assign(step: usize, positions: &[Vec<usize>], owner: &mut [Option<usize>], tried: &mut [bool]) -> bool {
    for &at in &positions[step] {
        if tried[at] {
            continue;
        }
        tried[at] = true;
        if owner[at].is_none_or(|other| assign(other, positions, owner, tried)) {
            owner[at] = Some(step);
            return true;
        }
    }
    false
}

pub(super) fn never(event: &Where, subject: Subject<'_>) -> Judgement {
    if let Some(why) = possible::why_not(event, subject.scenario) {
        return Judgement::Vacuous(format!("it could not have happened: {why}"));
    }
    match event.positions(subject.events, Sides::Any).first() {
        Some(at) => Judgement::fail_at(format!("it happened: {}", brief(&subject.events[*at])), *at),
        None => Judgement::Pass,
    }
}

pub(super) fn count(check: &CountCheck, subject: Subject<'_>) -> Judgement {
    if let Some(why) = possible::why_not(&check.event, subject.scenario) {
        return Judgement::Vacuous(format!("there is nothing to count: {why}"));
    }
    let all = check.event.positions(subject.events, Sides::Start);
    let Err(mismatch) = check.is.matches(Some(&Value::from(all.len()))) else { return Judgement::Pass };
    let mut message = format!("expected {}, found {}", mismatch.expected, all.len());
    // Too many: the first one over an exact number is where it went wrong; else the last one is all there is to show.
    let exact = check.is.as_value().as_u64().and_then(|number| usize::try_from(number).ok());
    let divergent = exact.and_then(|number| all.get(number)).or(all.last()).copied();
    if let Some((near, why)) = check.event.near_miss(subject.events, 0).filter(|_| all.is_empty()) {
        message.push_str(&format!("\nnearest is #{}: {why}", subject.events[near].seq));
        return Judgement::fail_at(message, near);
    }
    Judgement::Fail(Finding { message, divergent })
}

/// Phases that an event of a boundary can have; see [`possible`].
pub(super) fn phases_of(boundary: &str) -> &'static [Phase] {
    use Phase::{
        Chunk, Console, Delegate, Fault, Hook, Notification, Output, Request, Response, Stimulus, StimulusEnd, Warning,
    };
    match boundary.split('.').next().unwrap_or_default() {
        "mcp" => &[Request, Response, Notification, Hook, Fault, Warning],
        "llm" | "cli" | "agent" | "server" => &[Request, Chunk, Response, Notification, Hook, Fault, Warning],
        "client" => &[Request, Response, Notification, Warning],
        "host" => &[Stimulus, StimulusEnd, Delegate, Output, Warning, Notification, Request, Response, Hook],
        "hook" => &[Hook, Fault, Warning],
        "egress" => &[Request, Response],
        "isolate" => &[Console, Request, Response, Fault, Warning],
        "clock" => &[Fault, Warning],
        _ => &[Request, Response, Chunk, Notification, Hook, Warning, Stimulus, StimulusEnd, Delegate, Output, Console, Fault],
    }
}

/// The word of a phase in scenarios.
pub(super) fn phase_word(phase: Phase) -> String {
    serde_json::to_value(phase).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
