//! Addresses, the log and the JSON lines of a trace.

use std::sync::Arc;

use greenroom_boundary::trace::{TraceEvent, TraceSink};
use greenroom_harness::model::Where;
use greenroom_harness::trace::{Sides, TraceLog, parse, to_jsonl};
use serde_json::json;
use test_case::test_case;

pub(crate) fn events() -> Vec<TraceEvent> {
    let lines = [
        json!({"event": "stimulus", "id": "t1", "method": "turn", "body": {"user": "hi"}}),
        json!({"event": "hook", "hook": "metric", "of": 2, "boundary": "mcp.weather", "method": "tools/call",
               "phase": "request", "mode": "enforce", "verdict": "mutated", "depth": 0}),
        json!({"event": "request", "span": 1, "boundary": "llm.main", "method": "chat", "body": {"messages": []}}),
        json!({"event": "chunk", "span": 1, "boundary": "llm.main", "body": {"delta": "a"}}),
        json!({"event": "response", "span": 1, "boundary": "llm.main", "method": "chat", "outcome": "ok", "body": {}}),
        json!({"event": "request", "span": 2, "boundary": "mcp.weather", "method": "tools/call", "body": {"params": {"name": "f", "n": 1}}}),
        json!({"event": "response", "span": 2, "boundary": "mcp.weather", "method": "tools/call", "outcome": "timeout", "body": {}}),
        json!({"event": "notification", "boundary": "mcp.weather", "method": "notifications/cancelled", "direction": "out", "body": {}}),
        json!({"event": "request", "span": 3, "boundary": "mcp.weather", "method": "tools/call", "body": {"params": {"name": "f", "n": 2}}}),
        json!({"event": "warning", "boundary": "mcp.weather", "method": "stale_response", "body": {"id": 7}}),
        json!({"event": "delegate", "from": "a", "to": "b", "depth": 1, "via": "create"}),
        json!({"event": "stimulus_end", "id": "t1", "outcome": "ok", "body": {"text": "done"}}),
    ];
    numbered(&lines)
}

pub(crate) fn numbered(lines: &[serde_json::Value]) -> Vec<TraceEvent> {
    let number = |(seq, line): (usize, &serde_json::Value)| {
        let mut whole = json!({"seq": seq, "vt": seq * 1000, "scope": "t1", "agent": "desk"});
        whole.as_object_mut().unwrap().extend(line.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    };
    lines.iter().enumerate().map(number).collect()
}

fn at(address: serde_json::Value) -> Where {
    serde_json::from_value(address).unwrap()
}

#[test_case(json!({"boundary": "mcp.weather"}), &[5, 7, 8, 9]; "without a phase the starts are meant")]
#[test_case(json!({"boundary": "mcp.*", "method": "tools/call", "nth": 2}), &[8]; "nth counts calls, not answers")]
#[test_case(json!({"boundary": "llm.*", "phase": "chunk"}), &[3]; "chunks are named by their phase")]
#[test_case(json!({"boundary": "*", "phase": "response"}), &[4, 6]; "responses by their phase")]
#[test_case(json!({"boundary": "host", "phase": "stimulus_end"}), &[11]; "the end of a stimulus by its phase")]
#[test_case(json!({"boundary": "*", "outcome": "timeout"}), &[6]; "an outcome names answers")]
#[test_case(json!({"boundary": "mcp.weather", "hook": "metric"}), &[1]; "a hook by its id")]
#[test_case(json!({"boundary": "hook"}), &[1]; "all hooks")]
#[test_case(json!({"boundary": "hook", "match": {"verdict": "mutated"}}), &[1]; "a hook by its verdict")]
#[test_case(json!({"boundary": "host", "method": "stale_response"}), &[9]; "warnings of the host")]
#[test_case(json!({"boundary": "mcp.weather", "match": {"params": {"n": 2}}}), &[8]; "by body")]
#[test_case(json!({"boundary": "host", "phase": "delegate", "match": {"to": "b"}}), &[10]; "delegation by its fields")]
#[test_case(json!({"boundary": "*", "assistant": "other"}), &[]; "another agent")]
fn an_address_names_events(address: serde_json::Value, expected: &[usize]) {
    let address = at(address);
    assert_eq!(address.positions(&events(), Sides::Start), expected, "{}", address.describe());
}

#[test]
fn never_looks_at_both_sides() {
    let address = at(json!({"boundary": "host", "match": {"text": "done"}}));
    assert_eq!(address.positions(&events(), Sides::Any), [11]);
    assert!(address.positions(&events(), Sides::Start).is_empty());
}

#[test]
fn a_trace_survives_its_lines() {
    let text = to_jsonl(&events());
    assert_eq!(to_jsonl(&parse(&text).unwrap()), text);
    assert_eq!(parse("{\"seq\":1}\n").unwrap_err().line, 1);
}

#[test]
fn the_log_wakes_waiters_and_counts_what_is_past_its_limit() {
    let log = Arc::new(TraceLog::new(10));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let waiter = tokio::spawn({
            let log = log.clone();
            async move { log.wait_until(|events| events.len() >= 8).await }
        });
        tokio::task::yield_now().await;
        for event in events() {
            log.emit(event);
        }
        waiter.await.unwrap();
        log.overflow().await;
    });
    assert_eq!((log.events().len(), log.dropped()), (10, 2));
}
