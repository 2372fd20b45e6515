//! Requests of the other side: answers, cancellation, failures of the handler.

use std::sync::Arc;

use greenroom_wire::{Peer, RpcError, pipe};
use tokio::sync::Notify;

use crate::support::{Bench, HandClock, Notes, frame, options, raw, settle};

fn request(id: &str, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)
}

fn result(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

#[tokio::test]
async fn ids_of_both_types_are_told_apart() {
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let mut bench = Bench::new(Notes::answering(move |request| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            Ok(raw(&serde_json::json!(request.id.to_json()).to_string()))
        }
    }));
    for id in ["7", "\"7\"", "\"\"", "0", "-3"] {
        bench.say(&request(id, "a")).await;
    }
    settle().await;
    assert_eq!(bench.peer.answering(), 5);
    go.notify_waiters();
    for (id, text) in [("7", "\"7\""), ("\"7\"", r#""\"7\"""#), ("\"\"", r#""\"\"""#), ("0", "\"0\""), ("-3", "\"-3\"")] {
        assert_eq!(bench.hear().await, result(id, text));
    }
    assert_eq!(bench.peer.answering(), 0);
}

#[tokio::test]
async fn ping_is_answered_even_while_the_handler_is_busy() {
    let mut bench = Bench::new(Notes::answering(|_| std::future::pending()));
    bench.say(&request("1", "a")).await;
    bench.say(&request("\"p\"", "ping")).await;
    assert_eq!(bench.hear().await, result("\"p\"", "{}"));
}

#[tokio::test]
async fn a_cancelled_request_gets_no_answer() {
    let mut bench = Bench::new(Notes::answering(|request| async move {
        if request.method == "wait" {
            request.cancel.cancelled().await;
        }
        Ok(raw("1"))
    }));
    bench.say(&request("\"x\"", "wait")).await;
    let cancel = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"r"}}}}"#)
    };
    bench.say(&cancel("1")).await;
    bench.say(&cancel("\"x\"")).await;
    bench.say(&cancel("null")).await;
    settle().await;
    bench.say(&cancel("\"x\"")).await;
    bench.say(&request("\"x\"", "b")).await;
    assert_eq!(bench.hear().await, result("\"x\"", "1"));
    let unknown = "dropped notifications/cancelled unknown_request";
    assert_eq!(bench.notes.take(), [unknown, "dropped notifications/cancelled malformed", unknown]);
}

#[tokio::test]
async fn a_failing_handler_costs_its_request_alone() {
    let mut bench = Bench::new(Notes::answering(|request| async move {
        assert_ne!(request.method, "panic", "a handler that fails");
        Ok(raw("1"))
    }));
    bench.say(&request("1", "panic")).await;
    bench.say(r#"{"jsonrpc":"2.0","method":"panic"}"#).await;
    bench.say(&request("2", "b")).await;
    let failed = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the request's handler failed"}}"#;
    assert_eq!(bench.hear().await, failed);
    assert_eq!(bench.hear().await, result("2", "1"));
}

#[tokio::test]
async fn errors_travel_whole() {
    let mut bench = Bench::new(Notes::answering(|_| async {
        Err(RpcError::new(-32042, "open \"this\"").with_data(&raw(r#"{"n":1.00}"#)))
    }));
    bench.say(&request("1", "a")).await;
    let sent = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32042,"message":"open \"this\"","data":{"n":1.00}}}"#;
    assert_eq!(bench.hear().await, sent);
}

#[tokio::test]
async fn what_is_no_message_is_told_and_harms_nothing() {
    let mut bench = Bench::new(Notes::answering(|request| async move {
        if request.method == "wait" {
            std::future::pending::<()>().await;
        }
        Ok(raw("1"))
    }));
    for text in ["Server ready.", "[]", r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#] {
        bench.say(text).await;
    }
    bench.say(&request("1", "wait")).await;
    bench.say(&request("1", "wait")).await;
    bench.say(r#"{"jsonrpc":"2.0","method":"notifications/new","params":{"a":1.0}}"#).await;
    bench.say(&request("2", "b")).await;
    assert_eq!(bench.hear().await, result("2", "1"));
    let told = [
        "malformed WIRE_JSON",
        "malformed WIRE_BATCH",
        "malformed WIRE_BAD_ID",
        "malformed WIRE_ID_IN_USE",
        r#"notification notifications/new {"a":1.0}"#,
    ];
    assert_eq!(bench.notes.take(), told);
}

#[tokio::test]
async fn the_end_of_the_connection_cancels_what_it_asked() {
    let ended = Arc::new(Notify::new());
    let told = ended.clone();
    let mut bench = Bench::new(Notes::answering(move |request| {
        let told = told.clone();
        async move {
            request.cancel.cancelled().await;
            told.notify_one();
            Ok(raw("1"))
        }
    }));
    bench.say(&request("1", "a")).await;
    settle().await;
    drop(bench.far);
    ended.notified().await;
    settle().await;
    assert_eq!(bench.peer.answering(), 0);
}

#[tokio::test]
async fn a_server_answers_what_was_asked_before_the_client_stopped_sending() {
    let go = Arc::new(Notify::new());
    let gate = go.clone();
    let notes = Notes::answering(move |_| {
        let gate = gate.clone();
        async move {
            gate.notified().await;
            Ok(raw("1"))
        }
    });
    let (near, mut far) = pipe("client");
    let peer = Peer::serve(near, notes.clone(), options(&HandClock::new()));
    far.sink.send(frame(&request("1", "a"))).await.unwrap();
    far.sink.close().await;
    settle().await;
    assert!(!peer.is_closed());
    go.notify_one();
    assert_eq!(far.source.next().await.unwrap().unwrap(), frame(&result("1", "1")));
    assert!(far.source.next().await.is_none());
    assert_eq!(notes.take(), ["closed -"]);
}
