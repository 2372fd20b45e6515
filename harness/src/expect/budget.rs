//! `budget`: limits on what a run used.
//!
//! Invariant: every count comes from the trace; only `wall` is real time. A tool call is one that a model asked for or that
//! an external server got: calls of hooks are none. Deliberately no prices.

use std::time::Duration;

use greenroom_boundary::trace::{EventKind, TraceEvent};

use super::{Judgement, Subject};
use crate::model::{Budget, CountBound, TimeBound};
use crate::report::seconds;

/// One word per limit, with the limit in words.
pub(super) fn judge(budget: &Budget, subject: Subject<'_>) -> Vec<(String, Judgement)> {
    let used = Used::of(subject.events);
    let counts = [
        ("llm_calls", budget.llm_calls, used.llm_calls),
        ("tool_calls", budget.tool_calls, used.tool_calls),
        ("tokens_in", budget.tokens_in, used.tokens_in),
        ("tokens_out", budget.tokens_out, used.tokens_out),
        ("delegation_depth", budget.delegation_depth, used.delegation_depth),
        ("events", budget.events, subject.events.len() as u64),
    ];
    let times =
        [("virtual", budget.r#virtual, Duration::from_nanos(used.virtual_ns)), ("wall", budget.wall, subject.facts.wall)];
    let counts = counts.into_iter().filter_map(|(name, bound, found)| Some(count(name, bound?, found)));
    let times = times.into_iter().filter_map(|(name, bound, found)| Some(time(name, bound?, found)));
    counts.chain(times).collect()
}

fn count(name: &str, bound: CountBound, found: u64) -> (String, Judgement) {
    let holds = bound.is.is_none_or(|is| found == is)
        && bound.min.is_none_or(|min| found >= min)
        && bound.max.is_none_or(|max| found <= max);
    let what = limits(name, bound.is, bound.min, bound.max, |number| number.to_string());
    (what, Judgement::check(holds, || format!("{name} is {found}")))
}

fn time(name: &str, bound: TimeBound, found: Duration) -> (String, Judgement) {
    let holds = bound.is.is_none_or(|is| found == is.to_std())
        && bound.min.is_none_or(|min| found >= min.to_std())
        && bound.max.is_none_or(|max| found <= max.to_std());
    let shown = |duration: crate::model::Duration| seconds(duration.as_nanos());
    let what = limits(name, bound.is, bound.min, bound.max, shown);
    (what, Judgement::check(holds, || format!("{name} is {}", seconds(found.as_nanos() as u64))))
}

fn limits<T>(name: &str, is: Option<T>, min: Option<T>, max: Option<T>, show: impl Fn(T) -> String) -> String {
    let parts = [("is", is), ("min", min), ("max", max)];
    let parts = parts.into_iter().filter_map(|(word, value)| Some(format!("{word} {}", show(value?))));
    format!("{name} {}", parts.collect::<Vec<_>>().join(", "))
}

#[derive(Default)]
struct Used {
    llm_calls: u64,
    tool_calls: u64,
    tokens_in: u64,
    tokens_out: u64,
    delegation_depth: u64,
    virtual_ns: u64,
}

impl Used {
    fn of(events: &[TraceEvent]) -> Self {
        let mut used = Self::default();
        let mut first_stimulus = None;
        for event in events {
            match &event.kind {
                EventKind::Request { boundary, .. } if boundary.starts_with("llm.") => used.llm_calls += 1,
                EventKind::Request { boundary, method, tool_call, .. }
                    if method == "tools/call" && (tool_call.is_some() || boundary.starts_with("mcp.")) =>
                {
                    used.tool_calls += 1;
                }
                EventKind::Response { usage: Some(usage), .. } => {
                    used.tokens_in += usage.input_tokens;
                    used.tokens_out += usage.output_tokens;
                }
                EventKind::Delegate { depth, .. } => used.delegation_depth = used.delegation_depth.max(u64::from(*depth)),
                EventKind::Stimulus { .. } => first_stimulus = first_stimulus.or(Some(event.vt)),
                EventKind::StimulusEnd { .. } => used.virtual_ns = event.vt.saturating_sub(first_stimulus.unwrap_or(0)),
                _ => {}
            }
        }
        used
    }
}
