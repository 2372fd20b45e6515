//! What hooks have judged is what goes on: texts that readers understand in two ways, or not at all.
//!
//! Invariant: nothing that a hook refuses to let pass gets past it by its spelling. Deliberately raw servers: a well-behaved
//! one cannot write such texts.

use std::time::Duration;

use greenroom_wire::RequestOptions;
use serde_json::json;
use test_case::test_case;

use crate::front::{ask_with, connect};
use crate::support::{Set, Stage, pure, result};

const LISTED: &str = r#"{"tools":[{"name":"buy"}]}"#;

/// A server that answers a call with `answer`, after the frames `before` it.
fn stage(config: &str, before: &'static [&str], answer: &'static str) -> Stage {
    let refuses = pure(|args| {
        let secret = args[0]["message"].to_string().contains("SECRET");
        Some(json!({"accept": !secret}))
    });
    Set::new(config)
        .raw("one", move |method, _| match method {
            "tools/list" => vec![result(LISTED)],
            "tools/call" => before.iter().map(|frame| (*frame).to_owned()).chain([result(answer)]).collect(),
            _ => vec![],
        })
        .native("policy", "h", refuses)
        .build()
}

const OF_SERVER: &str = "mcpServers: {one: {hooks: {'tools/call?direction=response': '!mutate:policy/h'}}, policy: {script: policy.js}}\npublish: {mcpServers: one}";
const OF_HOST: &str = "hooks: {'response?method=tools/call': '!mutate:policy/h'}\nmcpServers: {one: {}, policy: {script: policy.js}}\npublish: {mcpServers: one}";

#[test_case(OF_SERVER, r#"{"content":[{"type":"text","text":"SECRET"}],"content":[]}"#, r#"{"content":[]}"#; "outermost, hooks of the server")]
#[test_case(OF_HOST, r#"{"content":[{"type":"text","text":"SECRET"}],"content":[]}"#, r#"{"content":[]}"#; "outermost, hooks of the host")]
#[test_case(OF_SERVER, r#"{"content":[{"type":"text","text":"SECRET","text":"ok"}]}"#, r#"{"content":[{"type":"text","text":"ok"}]}"#; "deep")]
#[test_case(OF_SERVER, r#"{"content":[],"n":[1.0,1e400]}"#, r#"{"content":[],"n":[1.0,1e400]}"#; "a number beyond all readers hides nothing and stays")]
fn a_key_twice_goes_on_as_it_was_judged(config: &str, text: &'static str, expected: &str) {
    let stage = stage(config, &[], text);
    let peer = connect(&stage);
    let options = RequestOptions::within(Duration::from_mins(1));
    let raw = ask_with(&stage, &peer, "tools/call", &json!({"name": "buy"}), options).unwrap();
    assert_eq!(raw.get(), expected);
}

/// What a server logs; deep enough that no reader takes it.
fn log(rest: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"SECRET"{rest}}}}}"#)
}

#[test_case(&log(""); "plain")]
#[test_case(&log(r#","n":1e400"#); "beside a number that nobody can hold")]
#[test_case(&log(r#","data":"ok""#).replace("ok", "SECRET"); "twice")]
#[test_case(&log(&format!(r#","n":{}{}"#, "[".repeat(200), "]".repeat(200))); "beside what nobody can read")]
fn a_notification_that_hooks_refuse_is_withheld_however_it_is_written(frame: &str) {
    let frames: &'static [&str] = Box::leak(Box::new([&*Box::leak(frame.to_owned().into_boxed_str())]));
    let config = "mcpServers: {one: {hooks: {notifications/message: '!mutate:policy/h'}}, policy: {script: policy.js}}\npublish: {mcpServers: one}";
    let stage = stage(config, frames, r#"{"content":[]}"#);
    let peer = connect(&stage);
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    for (method, params) in [("initialize", hello), ("tools/call", json!({"name": "buy"}))] {
        ask_with(&stage, &peer, method, &params, RequestOptions::within(Duration::from_mins(1))).unwrap();
    }
    stage.run(stage.clock.settle());
    let warnings: Vec<String> = stage.warnings().into_iter().map(|(code, _)| code).collect();
    assert!(warnings.contains(&"notification_withheld".to_owned()), "{warnings:?}");
}

const BIG: &str = r#"{"content":[{"type":"text","text":"hi"}],"structuredContent":{"big":12345678901234567890123,"price":1.10,"n":[1e2,1e400]}}"#;

/// Where a hook changed one field, the others keep their digits and their spelling.
#[test_case(true; "hooks of the server")]
#[test_case(false; "hooks of the host")]
fn numbers_beside_a_change_keep_their_digits(at_server: bool) {
    let (of_server, of_host) =
        ("{hooks: {'tools/call?direction=response': policy/h}}", "hooks: {'response?method=tools/call': policy/h}\n");
    let (server, host) = if at_server { (of_server, "") } else { ("{}", of_host) };
    let config = format!(
        "{host}mcpServers: {{one: {server}, policy: {{script: policy.js}}}}\npublish: {{mcpServers: one}}\npolicy: {{note: meta}}"
    );
    let mark = pure(|args| {
        let mut message = args[0]["message"].clone();
        message["result"]["structuredContent"]["seen"] = json!(true);
        Some(json!({"accept": true, "mutated": true, "message": message}))
    });
    let stage = Set::new(&config)
        .raw("one", move |method, _| match method {
            "tools/list" => vec![result(LISTED)],
            _ => vec![result(BIG)],
        })
        .native("policy", "h", mark)
        .build();
    let peer = connect(&stage);
    let raw =
        ask_with(&stage, &peer, "tools/call", &json!({"name": "buy"}), RequestOptions::within(Duration::from_mins(1))).unwrap();
    let kept = r#""structuredContent":{"big":12345678901234567890123,"price":1.10,"n":[1e2,1e400],"seen":true}"#;
    assert!(raw.get().contains(kept), "{raw}");
    assert!(raw.get().contains("ai.nanobot.hooks/mutations"), "{raw}");
}

/// A server that speaks of hooks does not speak for this host, and is not silenced.
#[test_case(Some("policy/h"), json!({"response": {"mutated": true}, "upstream": {"request": {"mutated": true}}}); "beside hooks of this host")]
#[test_case(None, json!({"request": {"mutated": true}}); "without any")]
fn what_a_server_says_of_hooks_stays_its_own_word(hook: Option<&str>, expected: serde_json::Value) {
    let hooks = hook.map(|hook| format!("hooks: {{'tools/call?direction=response': {hook}}}")).unwrap_or_default();
    let config = format!("mcpServers: {{one: {{{hooks}}}, policy: {{script: policy.js}}}}\npublish: {{mcpServers: one}}");
    let mark = pure(|args| {
        let mut message = args[0]["message"].clone();
        message["result"]["x"] = json!(true);
        Some(json!({"accept": true, "mutated": true, "message": message}))
    });
    let stage = Set::new(&config)
        .raw("one", move |method, _| match method {
            "tools/list" => vec![result(LISTED)],
            _ => vec![result(r#"{"content":[],"_meta":{"ai.nanobot.hooks/mutations":{"request":{"mutated":true}}}}"#)],
        })
        .native("policy", "h", mark)
        .build();
    let output = stage.call("one", "buy", json!({})).unwrap();
    let mut record = output.value["_meta"]["ai.nanobot.hooks/mutations"].clone();
    if let Some(own) = record.get_mut("response").and_then(|own| own.as_object_mut()) {
        own.retain(|key, _| key == "mutated");
    }
    assert_eq!(record, expected);
}
