//! Requests of the other side: answers, cancellation, failures of the handler.

use std::sync::Arc;
use std::time::Duration;

use greenroom_wire::{Peer, RequestOptions, RpcError, pipe};
use test_case::test_case;
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

#[tokio::test]
async fn a_client_that_stopped_sending_is_asked_nothing_more() {
    let (near, mut far) = pipe("client");
    let peer = Peer::serve(
        near,
        Notes::answering(|request| async move {
            request.peer.request("roots/list", None, RequestOptions::default()).await.map_err(|error| error.to_rpc())
        }),
        options(&HandClock::new()),
    );
    far.sink.send(frame(&request("1", "a"))).await.unwrap();
    settle().await;
    assert_eq!(peer.in_flight(), 1);
    far.sink.close().await;
    assert!(far.source.next().await.unwrap().unwrap().to_text().contains("roots/list"));
    assert!(far.source.next().await.unwrap().unwrap().to_text().contains("stopped sending"));
    assert!(far.source.next().await.is_none());
}

#[tokio::test]
async fn calls_of_a_client_that_stopped_sending_end_after_a_grace() {
    let clock = HandClock::new();
    let (near, mut far) = pipe("client");
    let ended = Arc::new(Notify::new());
    let told = ended.clone();
    let notes = Notes::answering(move |request| {
        let told = told.clone();
        async move {
            request.cancel.cancelled().await;
            told.notify_one();
            Ok(raw("1"))
        }
    });
    let peer = Peer::serve(near, notes, options(&clock));
    far.sink.send(frame(&request("1", "a"))).await.unwrap();
    far.sink.close().await;
    settle().await;
    assert!(!peer.is_closed());
    clock.advance(Duration::from_secs(5));
    ended.notified().await;
    peer.closed().await;
}

#[test_case(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"no"}}"#, "WIRE_BAD_RESPONSE"; "a result and an error")]
#[test_case(r#"{"id":1,"result":{}}"#, "WIRE_VERSION"; "without jsonrpc")]
#[tokio::test]
async fn an_answer_that_is_none_fails_its_request_at_once(answer: &str, code: &str) {
    let (near, mut far) = pipe("server");
    let peer = Peer::start(near, Notes::new(), options(&HandClock::new()));
    let asked = tokio::spawn(async move { peer.request("a", None, RequestOptions::default()).await });
    far.source.next().await.unwrap().unwrap();
    far.sink.send(frame(answer)).await.unwrap();
    assert_eq!(asked.await.unwrap().unwrap_err().code(), code);
}

#[tokio::test]
async fn messages_to_a_side_that_does_not_read_are_dropped_beyond_a_limit() {
    let notes = Notes::new();
    let (near, mut far) = pipe("client");
    let peer = Peer::serve(near, notes.clone(), options(&HandClock::new()));
    // Nothing runs in between, so nothing is read.
    let text = raw(&format!("\"{}\"", "a".repeat(1 << 20)));
    (0..6).for_each(|_| peer.post("notifications/message", Some(&text)));
    peer.post("notifications/resources/updated", None);
    let (mut told, mut news) = (0, 0);
    while news == 0 {
        let is_news = far.source.next().await.unwrap().unwrap().to_text().contains("updated");
        if is_news { news += 1 } else { told += 1 }
    }
    assert_eq!(told, 4);
    settle().await;
    assert_eq!(notes.take(), ["flooded 2"]);
}
