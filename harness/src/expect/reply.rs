//! `reply`: the answer of a turn.
//!
//! Invariant: a turn that has not ended fails the check. Deliberately no look at streamed output.

use greenroom_boundary::trace::EventKind;
use serde_json::{Value, json};

use super::{Finding, Judgement, Subject};
use crate::model::{Pattern, ReplyCheck};

pub(super) fn describe(check: &ReplyCheck) -> String {
    let mut parts = Vec::new();
    for (name, pattern) in [("text", &check.text), ("data", &check.data), ("error", &check.error)] {
        if let Some(pattern) = pattern {
            parts.push(format!("{name} {}", pattern.as_value()));
        }
    }
    if let Some(outcome) = check.outcome {
        parts.push(format!("outcome {}", json!(outcome).as_str().unwrap_or_default()));
    }
    format!("reply of {}: {}", check.of.as_deref().unwrap_or("the last turn"), parts.join(", "))
}

pub(super) fn judge(check: &ReplyCheck, subject: Subject<'_>) -> Judgement {
    let names = subject.scenario.turn_names();
    let Some(turn) = check.of.as_ref().or(names.last()) else {
        return Judgement::Vacuous("the scenario has no turn".to_owned());
    };
    let Some(reply) = subject.replies.get(turn) else {
        let why = if names.contains(turn) { "has not ended" } else { "is not in `run`" };
        return Judgement::fail(format!("turn {turn} {why}; the turns are {}", names.join(", ")));
    };
    let error = reply.error.as_ref().and_then(|error| serde_json::to_value(error).ok());
    let text = Value::String(reply.text.clone());
    let found: [(&str, &Option<Pattern>, Option<&Value>); 3] = [
        ("text", &check.text, Some(&text)),
        ("data", &check.data, Some(&reply.data).filter(|data| !data.is_null())),
        ("error", &check.error, error.as_ref()),
    ];
    let mut wrong: Vec<String> = found
        .iter()
        .filter_map(|(name, wanted, found)| {
            let mismatch = wanted.as_ref()?.matches(*found).err()?;
            Some(format!("{name}{}: expected {}, found {}", mismatch.path, mismatch.expected, mismatch.found))
        })
        .collect();
    if let Some(wanted) = check.outcome.filter(|wanted| *wanted != reply.outcome) {
        wrong.push(format!("outcome: expected {}, found {}", json!(wanted), json!(reply.outcome)));
    }
    if wrong.is_empty() {
        return Judgement::Pass;
    }
    if let Some(error) = reply.error.as_ref().filter(|_| check.error.is_none()) {
        wrong.push(format!("the turn failed with {}: {}", error.code, error.message));
    }
    let divergent =
        subject.events.iter().position(|event| matches!(&event.kind, EventKind::StimulusEnd { id, .. } if id == turn));
    Judgement::Fail(Finding { message: wrong.join("\n"), divergent })
}
