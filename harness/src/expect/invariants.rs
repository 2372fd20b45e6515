//! The named invariants that read the trace alone.
//!
//! Invariant: each says "vacuous" when the trace holds nothing that it could have judged. Deliberately no knowledge of a
//! host: what is not in an event is not judged.

use std::collections::{BTreeMap, BTreeSet};

use greenroom_boundary::SpanId;
use greenroom_boundary::trace::{EventKind, TraceEvent};
use serde_json::Value;

use super::Judgement;
use crate::trace::brief;

/// Every request has exactly one response, every stimulus exactly one end.
pub(super) fn every_request_answered(events: &[TraceEvent]) -> Judgement {
    let mut open: BTreeMap<SpanId, usize> = BTreeMap::new();
    let mut closed: BTreeSet<SpanId> = BTreeSet::new();
    let mut stimuli: BTreeMap<&str, usize> = BTreeMap::new();
    let mut judged = false;
    for (index, event) in events.iter().enumerate() {
        match &event.kind {
            EventKind::Request { span, .. } => {
                judged = true;
                if closed.contains(span) || open.insert(*span, index).is_some() {
                    return Judgement::fail_at(format!("span {} is used for a second request", span.0), index);
                }
            }
            EventKind::Response { span, .. } => {
                if open.remove(span).is_none() {
                    let why = if closed.contains(span) { "a second response" } else { "a response without a request" };
                    return Judgement::fail_at(format!("span {} got {why}", span.0), index);
                }
                closed.insert(*span);
            }
            EventKind::Stimulus { id, method, .. } if method != "cancel" => {
                judged = true;
                stimuli.insert(id, index);
            }
            EventKind::StimulusEnd { id, .. } => {
                stimuli.remove(id.as_str());
            }
            _ => {}
        }
    }
    if let Some(index) = open.values().chain(stimuli.values()).min() {
        let count = open.len() + stimuli.len();
        let first = events.get(*index).map(brief).unwrap_or_default();
        return Judgement::fail_at(format!("{count} never answered; the first: {first}"), *index);
    }
    if judged { Judgement::Pass } else { Judgement::Vacuous("the trace holds no request".to_owned()) }
}

/// In every model request, the results that follow an assistant message are those of its tool calls, in their order.
pub(super) fn tool_results_in_call_order(events: &[TraceEvent]) -> Judgement {
    let mut judged = false;
    for (index, event) in llm_requests(events) {
        let Some(messages) = event.and_then(|body| body.get("messages")).and_then(Value::as_array) else { continue };
        for (at, message) in messages.iter().enumerate() {
            let calls = ids(message.get("tool_calls"), "id");
            if calls.is_empty() {
                continue;
            }
            judged = true;
            let results: Vec<_> = messages[at + 1..]
                .iter()
                .take_while(|message| message.get("role").and_then(Value::as_str) == Some("tool"))
                .map(|message| message.get("tool_call_id").and_then(Value::as_str).unwrap_or("(no id)"))
                .collect();
            if results != calls {
                return Judgement::fail_at(format!("tool calls {calls:?} are followed by results {results:?}"), index);
            }
        }
    }
    if judged { Judgement::Pass } else { Judgement::Vacuous("no model request carries tool calls".to_owned()) }
}

/// The model requests: position and body.
fn llm_requests(events: &[TraceEvent]) -> impl Iterator<Item = (usize, Option<&Value>)> {
    events.iter().enumerate().filter_map(|(index, event)| match &event.kind {
        EventKind::Request { boundary, body, .. } if boundary.starts_with("llm.") => Some((index, Some(body))),
        _ => None,
    })
}

fn ids<'v>(list: Option<&'v Value>, key: &str) -> Vec<&'v str> {
    list.and_then(Value::as_array)
        .map(|items| items.iter().filter_map(|item| item.get(key)?.as_str()).collect())
        .unwrap_or_default()
}

/// No chain of delegation comes back to an agent that is in it.
pub(super) fn delegation_acyclic(events: &[TraceEvent]) -> Judgement {
    let mut chains: Vec<(String, Vec<&str>)> = Vec::new();
    for (index, event) in events.iter().enumerate() {
        let EventKind::Delegate { from, to, depth, .. } = &event.kind else { continue };
        let root = event.scope.as_str().split('/').next().unwrap_or_default().to_owned();
        let parent = chains
            .iter()
            .rev()
            .find(|(turn, chain)| *turn == root && chain.len() == *depth as usize && chain.last() == Some(&from.as_str()));
        let mut chain = parent.map_or_else(|| vec![from.as_str()], |(_, chain)| chain.clone());
        if chain.contains(&to.as_str()) {
            chain.push(to.as_str());
            return Judgement::fail_at(format!("delegation goes in a circle: {}", chain.join(" -> ")), index);
        }
        chain.push(to.as_str());
        chains.push((root, chain));
    }
    if chains.is_empty() { Judgement::Vacuous("nothing was delegated".to_owned()) } else { Judgement::Pass }
}

/// A tool that does not call itself idempotent or read-only is called at most once per tool call of the model.
pub(super) fn side_effects_at_most_once(events: &[TraceEvent]) -> Judgement {
    let repeatable = repeatable_tools(events);
    let mut seen: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    let mut judged = false;
    for (index, event) in events.iter().enumerate() {
        let EventKind::Request { boundary, method, tool_call, body, .. } = &event.kind else { continue };
        if method != "tools/call" {
            continue;
        }
        judged = true;
        let tool = body.pointer("/params/name").or_else(|| body.get("name")).and_then(Value::as_str).unwrap_or_default();
        let Some(id) = tool_call.as_deref() else { continue };
        if repeatable.contains(&(boundary.as_str(), tool)) {
            continue;
        }
        if let Some(first) = seen.insert((event.scope.as_str(), boundary, id), event.seq) {
            return Judgement::fail_at(
                format!("{boundary} {tool}, not idempotent, was called again for tool call {id}; first at #{first}"),
                index,
            );
        }
    }
    if judged { Judgement::Pass } else { Judgement::Vacuous("no tool was called".to_owned()) }
}

/// (boundary, tool) of the tools whose annotations allow repeating, as the servers listed them in this trace.
fn repeatable_tools(events: &[TraceEvent]) -> BTreeSet<(&str, &str)> {
    let mut found = BTreeSet::new();
    for event in events {
        let EventKind::Response { boundary, method, body, .. } = &event.kind else { continue };
        if method != "tools/list" {
            continue;
        }
        let tools = body.get("tools").or_else(|| body.pointer("/result/tools")).and_then(Value::as_array);
        for tool in tools.into_iter().flatten() {
            let hint = |name| tool.pointer(&format!("/annotations/{name}")).and_then(Value::as_bool) == Some(true);
            if let Some(name) =
                tool.get("name").and_then(Value::as_str).filter(|_| hint("idempotentHint") || hint("readOnlyHint"))
            {
                found.insert((boundary.as_str(), name));
            }
        }
    }
    found
}

/// The tools shown to an agent's model come from the servers and agents that this agent may use.
///
/// `allowed` says which those are, per agent. Names are compared by prefix (`server__tool`), so this does not see a tool
/// that hides behind another server's name.
pub(super) fn sees_only_its_own_tools(events: &[TraceEvent], allowed: &BTreeMap<String, Vec<String>>) -> Judgement {
    let mut judged = false;
    for (index, event) in events.iter().enumerate() {
        let EventKind::Request { boundary, body, .. } = &event.kind else { continue };
        let Some(own) = event.agent.as_ref().and_then(|agent| allowed.get(agent.as_str())) else { continue };
        if !boundary.starts_with("llm.") {
            continue;
        }
        judged = true;
        for name in ids(body.get("tools"), "name") {
            if !own.iter().any(|source| comes_from(name, source)) {
                let agent = event.agent.as_ref().map(|agent| agent.as_str()).unwrap_or_default();
                return Judgement::fail_at(format!("{agent} was shown {name}, but it may use only {own:?}"), index);
            }
        }
    }
    if judged {
        Judgement::Pass
    } else {
        Judgement::Vacuous("no model request of an agent of the `host.assistants` section is in the trace".to_owned())
    }
}

fn comes_from(name: &str, source: &str) -> bool {
    let plain = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric() && c != '-', "_");
    let name = plain(name);
    match source.split_once('/') {
        Some((server, tool)) => name == format!("{}__{}", plain(server), plain(tool)) || name == plain(tool),
        None => {
            let server = plain(source);
            name == server || name.starts_with(&format!("{server}__")) || name == format!("chat-with-{server}")
        }
    }
}
