//! The audit stream: what is in it, how much memory it takes, and what happens when its sink is away.

use std::time::Duration;

use greenroom_boundary::audit::AuditError;
use greenroom_boundary::clock::sleep;
use serde_json::{Value, json};
use test_case::test_case;

use crate::front::{ask, connect};
use crate::support::{Native, Set, Stage, pure, returns, throws};

const SHOP: &str =
    "tools: [{name: buy}]\ncalls: [{when: {tool: buy}, repeat: 99, result: {content: [{type: text, text: done}]}}]";

fn stage(audit: &str, hooks: &str, natives: Vec<(&str, Native)>) -> Stage {
    let config = format!(
        "audit: {{file: unused.jsonl{audit}}}\nmcpServers:\n  shop: {{hooks: {hooks}}}\n  policy: {{script: policy.js}}\npublish: {{mcpServers: shop}}"
    );
    let set = Set::new(&config).mcp("shop", SHOP);
    natives.into_iter().fold(set, |set, (name, native)| set.native("policy", name, native)).build()
}

fn calls(records: &[Value], kind: &str, boundary: &str) -> Vec<Value> {
    records.iter().filter(|record| record["callType"] == kind && record["boundary"] == boundary).cloned().collect()
}

#[test]
fn a_record_tells_what_every_hook_said() {
    let change = pure(|args| {
        let mut envelope = args[0].clone();
        envelope["message"]["params"]["arguments"]["count"] = json!(1);
        envelope["mutated"] = json!(true);
        envelope["reason"] = json!("one each");
        Some(envelope)
    });
    let hooks = "{'tools/call?direction=request': [policy/m, policy/silent, {target: policy/m, mode: audit}, '!mutate:policy/v'], 'tools/call?direction=response': policy/r}";
    let rewrite = returns(json!({"accept": true, "mutated": true, "message": {"result": {"content": []}}}));
    let natives = vec![("m", change), ("silent", pure(|_| None)), ("v", returns(json!({"accept": true}))), ("r", rewrite)];
    let stage = stage("", hooks, natives);
    let peer = connect(&stage);
    ask(&stage, &peer, "tools/call", &json!({"name": "buy", "arguments": {"count": 9}}));
    stage.end();
    let records = stage.audit.records();
    let record = &calls(&records, "tools/call", "mcp.shop")[0];
    assert_eq!(
        (&record["sessionID"], &record["requestID"], &record["callIdentifier"]),
        (&json!("s1"), &json!("s1/1"), &json!("buy"))
    );
    assert_eq!(record["createdAt"], "2023-11-14T22:13:20.000Z");
    assert_eq!(record["requestBody"]["arguments"], json!({"count": 9}));
    assert_eq!(record["mutatedRequestBody"]["arguments"], json!({"count": 1}));
    assert_eq!(record["originalResponseBody"]["content"][0]["text"], "done");
    let said: Vec<(&str, &str)> = record["webhookStatuses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|said| (said["tool"].as_str().unwrap(), said["status"].as_str().unwrap()))
        .collect();
    assert_eq!(
        said,
        [("policy/m", "mutated"), ("policy/silent", "ok"), ("policy/m", "audit"), ("policy/v", "ok"), ("policy/r", "mutated")]
    );
    let first = &record["webhookStatuses"][0];
    assert_eq!((&first["type"], &first["message"]), (&json!("request"), &json!("one each")));
    assert_eq!(calls(&records, "tools/call", "host").len(), 1, "the client's own call is in it");
}

#[test]
fn a_refused_call_is_in_it_with_its_error() {
    let stage = stage(
        "",
        "{'tools/call?direction=request': [policy/m, '!mutate:policy/v']}",
        vec![("m", throws("boom")), ("v", returns(json!({"accept": true})))],
    );
    stage.call("shop", "buy", json!({})).unwrap_err();
    stage.end();
    let record = &calls(&stage.audit.records(), "tools/call", "mcp.shop")[0];
    assert_eq!(record["error"], json!({"code": "HOOK_THREW", "message": "hook policy/m failed: Error: boom"}));
    let said: Vec<&Value> = record["webhookStatuses"].as_array().unwrap().iter().map(|said| &said["status"]).collect();
    assert_eq!(said, ["failed", "skipped"]);
}

#[test]
fn secrets_are_masked_and_bodies_can_be_left_out() {
    for (audit, has_bodies) in [("", true), (", bodies: false", false)] {
        let stage = stage(audit, "{}", vec![]);
        stage.host.core().drivers.credentials.register("env/TOKEN", "s3cret-value");
        stage.call("shop", "buy", json!({"key": "Bearer s3cret-value"})).unwrap();
        stage.end();
        let record = calls(&stage.audit.records(), "tools/call", "mcp.shop").remove(0);
        assert_eq!(record.get("requestBody").is_some(), has_bodies);
        assert!(!record.to_string().contains("s3cret-value"));
    }
}

#[test]
fn records_go_when_a_batch_is_full_or_old_enough() {
    let stage = stage(", batch: 2, flush: 3s", "{}", vec![]);
    for _ in 0..3 {
        stage.call("shop", "buy", json!({})).unwrap();
    }
    stage.run(sleep(&stage.clock, Duration::from_secs(1)));
    let sizes = |stage: &Stage| stage.audit.batches().iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(sizes(&stage), [2]);
    stage.run(sleep(&stage.clock, Duration::from_secs(4)));
    assert_eq!(sizes(&stage), [2, 1]);
}

#[test]
fn a_full_buffer_drops_the_oldest_and_counts_them() {
    let stage = stage(", buffer: 2, retry: {max: 0}", "{}", vec![]);
    for n in 0..5 {
        stage.call("shop", "buy", json!({"n": n})).unwrap();
    }
    stage.end();
    let records = stage.audit.records();
    assert_eq!((&records[0]["callType"], &records[0]["dropped"]), (&json!("audit/dropped"), &json!(3)));
    let kept: Vec<&Value> = records[1..].iter().map(|record| &record["requestBody"]["arguments"]["n"]).collect();
    assert_eq!(kept, [3, 4]);
}

#[test_case(None, 1, 0; "too early for the back-off")]
#[test_case(None, 7, 1; "after the back-off")]
#[test_case(Some(60), 20, 0; "the far end asked for a minute")]
#[test_case(Some(60), 90, 1; "after the minute")]
fn what_could_not_be_delivered_is_tried_again(retry_after_s: Option<u64>, wait_s: u64, delivered: usize) {
    let stage = stage(", flush: 1s, retry: {max: 3, backoff: 2s}", "{}", vec![]);
    let retry_after = retry_after_s.map(Duration::from_secs);
    stage.audit.fail_next(AuditError::Unavailable { message: "away".to_owned(), retry_after });
    stage.call("shop", "buy", json!({})).unwrap();
    stage.run(sleep(&stage.clock, Duration::from_secs(wait_s)));
    assert_eq!(stage.audit.batches().len(), delivered);
}

#[test]
fn what_is_refused_is_counted_in_the_next_batch() {
    let stage = stage(", flush: 1s", "{}", vec![]);
    stage.audit.fail_next(AuditError::Refused { message: "no".to_owned() });
    stage.call("shop", "buy", json!({})).unwrap();
    stage.run(sleep(&stage.clock, Duration::from_secs(2)));
    stage.call("shop", "buy", json!({})).unwrap();
    stage.end();
    assert_eq!(stage.audit.records()[0]["dropped"], 1);
}

#[test]
fn a_sink_that_is_away_does_not_hold_up_the_end() {
    let stage = stage("", "{}", vec![]);
    stage.audit.set_lost(true);
    stage.call("shop", "buy", json!({})).unwrap();
    let before = stage.clock.clone();
    stage.end();
    assert!(stage.audit.records().is_empty());
    drop(before);
}

#[test]
fn hooks_of_a_turn_are_in_it() {
    let config = "audit: {file: unused.jsonl}\nagents: {desk: {connector: main, hooks: {request: policy/h}}}\nmcpServers: {policy: {script: policy.js}}";
    let stage = Set::new(config)
        .model("main", "- {id: a, reply: {text: hello}}")
        .native("policy", "h", returns(json!({"accept": false, "reason": "no"})))
        .build();
    stage.turn("desk", "go");
    stage.end();
    let record = &calls(&stage.audit.records(), "turn/request", "agent.desk")[0];
    assert_eq!((&record["agent"], &record["webhookStatuses"][0]["status"]), (&json!("desk"), &json!("rejected")));
}
