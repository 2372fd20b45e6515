//! Requests of ours: answers, deadlines, progress, giving up.

use std::sync::{Arc, Mutex};

use greenroom_boundary::CancellationToken;
use greenroom_wire::{Progress, RawJson, RequestError, RequestOptions, RpcError};
use test_case::test_case;
use tokio::task::JoinHandle;

use crate::support::{Bench, Notes, raw, secs, settle};

type Asking = JoinHandle<Result<RawJson, RequestError>>;

fn ask(bench: &Bench, method: &'static str, options: RequestOptions) -> Asking {
    let peer = bench.peer.clone();
    tokio::spawn(async move { peer.request(method, Some(raw(r#"{"name":"slow"}"#)), options).await })
}

fn patient() -> RequestOptions {
    RequestOptions { timeout: Some(secs(30)), cap: Some(secs(120)), attach_progress_token: true, ..RequestOptions::default() }
}

fn progress(token: &str, value: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{value}}}}}"#)
}

const CANCELLED_LATE: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"no answer in time"}}"#;

#[tokio::test]
async fn answers_find_their_request_in_any_order() {
    let mut bench = Bench::new(Notes::new());
    let first = ask(&bench, "a", RequestOptions::default());
    let second = ask(&bench, "b", RequestOptions::default());
    assert_eq!(bench.hear().await, r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"slow"}}"#);
    assert_eq!(bench.hear().await, r#"{"jsonrpc":"2.0","id":2,"method":"b","params":{"name":"slow"}}"#);
    assert_eq!(bench.peer.in_flight(), 2);
    bench.say(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-5,"message":"no","data":{"n":1.0}}}"#).await;
    bench.say(r#"{"jsonrpc":"2.0","id":1,"result":{"n":1.0, "big":9007199254740993}}"#).await;
    assert_eq!(first.await.unwrap().unwrap().get(), r#"{"n":1.0, "big":9007199254740993}"#);
    let error = RpcError::new(-5, "no").with_data(&raw(r#"{"n":1.0}"#));
    assert_eq!(second.await.unwrap().unwrap_err(), RequestError::Rpc(error));
    assert_eq!(bench.peer.in_flight(), 0);
}

#[tokio::test]
async fn answers_that_nobody_waits_for_are_told() {
    let mut bench = Bench::new(Notes::new());
    let asking = ask(&bench, "a", RequestOptions::default());
    bench.hear().await;
    for id in ["\"1\"", "2", "1", "1"] {
        bench.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{id}}}"#)).await;
    }
    bench.say(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what"}}"#).await;
    assert_eq!(asking.await.unwrap().unwrap().get(), "1");
    settle().await;
    assert_eq!(bench.notes.take(), ["stale \"1\"", "stale 2", "stale 1", "stale -"]);
}

#[tokio::test]
async fn no_answer_ends_at_the_timeout_and_a_late_one_is_told() {
    let mut bench = Bench::new(Notes::new());
    let asking = ask(&bench, "a", patient());
    let sent = r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"slow","_meta":{"progressToken":1}}}"#;
    assert_eq!(bench.hear().await, sent);
    bench.pass(secs(29)).await;
    assert!(!asking.is_finished());
    bench.pass(secs(1)).await;
    let error = asking.await.unwrap().unwrap_err();
    assert_eq!((error.code(), error.to_rpc().code), ("REQUEST_TIMEOUT", RpcError::TIMEOUT));
    assert_eq!(bench.hear().await, CANCELLED_LATE);
    bench.say(r#"{"jsonrpc":"2.0","id":1,"result":1}"#).await;
    settle().await;
    assert_eq!((bench.peer.in_flight(), bench.notes.take()), (0, vec!["stale 1".to_owned()]));
}

#[tokio::test]
async fn progress_extends_the_timeout() {
    let mut bench = Bench::new(Notes::new());
    let asking = ask(&bench, "a", patient());
    bench.hear().await;
    for step in 1..=3 {
        bench.pass(secs(20)).await;
        bench.say(&progress("1", &step.to_string())).await;
    }
    bench.pass(secs(10)).await;
    bench.say(r#"{"jsonrpc":"2.0","id":1,"result":70}"#).await;
    assert_eq!(asking.await.unwrap().unwrap().get(), "70");
}

#[tokio::test]
async fn progress_never_extends_the_cap() {
    let mut bench = Bench::new(Notes::new());
    let asking = ask(&bench, "a", patient());
    bench.hear().await;
    for step in 1..=5 {
        bench.pass(secs(20)).await;
        bench.say(&progress("1", &step.to_string())).await;
    }
    bench.pass(secs(19)).await;
    bench.say(&progress("1", "6")).await;
    settle().await;
    assert!(!asking.is_finished());
    bench.pass(secs(1)).await;
    assert_eq!(asking.await.unwrap().unwrap_err(), RequestError::Timeout);
    assert_eq!(bench.hear().await, CANCELLED_LATE);
}

#[test_case("1", &["1", "1", "1"], "not_increasing"; "the same value")]
#[test_case("1", &["2", "1", "0.5"], "not_increasing"; "a falling value")]
#[test_case("\"1\"", &["1", "2", "3"], "unknown_token"; "another type")]
#[test_case("\"srv-1\"", &["1", "2", "3"], "unknown_token"; "another token")]
#[test_case("null", &["1", "2", "3"], "malformed"; "no token")]
#[tokio::test]
async fn other_progress_extends_nothing(token: &str, values: &[&str], reason: &str) {
    let mut bench = Bench::new(Notes::new());
    let asking = ask(&bench, "a", patient());
    bench.hear().await;
    for value in values {
        bench.say(&progress(token, value)).await;
    }
    settle().await;
    let dropped = bench.notes.take();
    assert!(dropped.len() >= 2);
    assert!(dropped.iter().all(|line| *line == format!("dropped notifications/progress {reason}")), "{dropped:?}");
    bench.pass(secs(29)).await;
    bench.say(&progress(token, values[2])).await;
    bench.pass(secs(1)).await;
    assert_eq!(asking.await.unwrap().unwrap_err(), RequestError::Timeout);
}

#[tokio::test]
async fn progress_comes_in_order_and_before_the_answer() {
    let mut bench = Bench::new(Notes::new());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = heard.clone();
    let note = move |step: Progress| listener.lock().unwrap().push(step.params.get().to_owned());
    let options = RequestOptions { progress: Some(Box::new(note)), attach_progress_token: true, ..RequestOptions::default() };
    let asking = ask(&bench, "a", options);
    bench.hear().await;
    bench.say(&progress("1", "0")).await;
    bench.say(&progress("1", "1.50")).await;
    bench.say(r#"{"jsonrpc":"2.0","id":1,"result":1}"#).await;
    bench.say(&progress("1", "3")).await;
    asking.await.unwrap().unwrap();
    settle().await;
    let expected = [r#"{"progressToken":1,"progress":0}"#, r#"{"progressToken":1,"progress":1.50}"#];
    assert_eq!(*heard.lock().unwrap(), expected);
    assert_eq!(bench.notes.take(), ["dropped notifications/progress unknown_token"]);
}

#[tokio::test]
async fn a_token_that_the_caller_put_in_is_kept_with_its_type() {
    let mut bench = Bench::new(Notes::new());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener = heard.clone();
    let note = move |step: Progress| listener.lock().unwrap().push(step.progress);
    let (peer, options) = (bench.peer.clone(), RequestOptions { progress: Some(Box::new(note)), ..RequestOptions::default() });
    let asking = tokio::spawn(async move { peer.request("a", Some(raw(r#"{"_meta":{"progressToken":0}}"#)), options).await });
    bench.hear().await;
    for (token, value) in [("0", "1"), ("\"srv-1\"", "1"), ("\"0\"", "1"), ("0", "1"), ("0", "2")] {
        bench.say(&progress(token, value)).await;
    }
    bench.say(r#"{"jsonrpc":"2.0","id":1,"result":"unharmed"}"#).await;
    bench.say(&progress("0", "3")).await;
    assert_eq!(asking.await.unwrap().unwrap().get(), "\"unharmed\"");
    settle().await;
    assert_eq!(*heard.lock().unwrap(), [1.0, 2.0]);
    assert_eq!(bench.notes.take().len(), 4);
}

#[tokio::test]
async fn cancelling_tells_the_other_side() {
    let mut bench = Bench::new(Notes::new());
    let cancel = CancellationToken::new();
    let asking = ask(&bench, "a", RequestOptions { cancel: cancel.clone(), ..RequestOptions::default() });
    bench.hear().await;
    cancel.cancel();
    assert_eq!(asking.await.unwrap().unwrap_err(), RequestError::Cancelled);
    let told = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"the caller cancelled the request"}}"#;
    assert_eq!(bench.hear().await, told);
}

#[tokio::test]
async fn dropping_the_future_cancels_and_leaves_nothing() {
    let mut bench = Bench::new(Notes::new());
    let asking = ask(&bench, "a", patient());
    bench.hear().await;
    asking.abort();
    let told = bench.hear().await;
    assert!(told.contains("notifications/cancelled"), "{told}");
    assert_eq!(bench.peer.in_flight(), 0);
}

#[tokio::test]
async fn initialize_is_never_cancelled() {
    let mut bench = Bench::new(Notes::new());
    let asking = ask(&bench, "initialize", RequestOptions::within(secs(5)));
    bench.hear().await;
    bench.pass(secs(5)).await;
    assert_eq!(asking.await.unwrap().unwrap_err(), RequestError::Timeout);
    bench.peer.notify("after", None).await.unwrap();
    assert_eq!(bench.hear().await, r#"{"jsonrpc":"2.0","method":"after"}"#);
}

#[tokio::test]
async fn what_was_given_up_before_it_was_sent_is_not_sent() {
    let mut bench = Bench::new(Notes::new());
    let cancel = CancellationToken::new();
    let asking = ask(&bench, "a", RequestOptions { cancel: cancel.clone(), ..RequestOptions::default() });
    cancel.cancel();
    assert_eq!(asking.await.unwrap().unwrap_err(), RequestError::Cancelled);
    bench.peer.notify("after", None).await.unwrap();
    assert_eq!(bench.hear().await, r#"{"jsonrpc":"2.0","method":"after"}"#);
}

#[tokio::test]
async fn the_frame_is_shown_right_before_it_is_sent() {
    let mut bench = Bench::new(Notes::new());
    let seen = Arc::new(Mutex::new(String::new()));
    let note = seen.clone();
    let on_send = move |id: &greenroom_wire::RequestId, frame: &greenroom_wire::Frame| {
        *note.lock().unwrap() = format!("{id} {}", frame.to_text());
    };
    let _asking = ask(&bench, "a", RequestOptions { on_send: Some(Box::new(on_send)), ..RequestOptions::default() });
    let sent = bench.hear().await;
    assert_eq!(*seen.lock().unwrap(), format!("1 {sent}"));
}

#[tokio::test]
async fn an_answer_is_told_before_the_next_frame_is_read() {
    let mut bench = Bench::new(Notes::new());
    let notes = bench.notes.clone();
    let on_answer = move |answer: &Result<greenroom_wire::RawJson, greenroom_wire::RequestError>| {
        notes.lines.lock().unwrap().push(format!("answer {}", answer.as_ref().unwrap()));
    };
    let asking = ask(&bench, "a", RequestOptions { on_answer: Some(Box::new(on_answer)), ..RequestOptions::default() });
    bench.hear().await;
    bench.say(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    bench.say(r#"{"jsonrpc":"2.0","method":"later"}"#).await;
    asking.await.unwrap().unwrap();
    settle().await;
    assert_eq!(bench.notes.take(), ["answer {}", "notification later -"]);
}

#[tokio::test]
async fn the_end_of_the_connection_fails_what_is_under_way() {
    let mut bench = Bench::new(Notes::new());
    let asking = ask(&bench, "a", patient());
    bench.hear().await;
    drop(bench.far);
    assert_eq!(asking.await.unwrap().unwrap_err().code(), "MCP_CLOSED");
    bench.peer.closed().await;
    let later = bench.peer.request("b", None, RequestOptions::default()).await;
    assert_eq!(later.unwrap_err().code(), "MCP_CLOSED");
    assert_eq!(bench.peer.notify("b", None).await.unwrap_err().code(), "MCP_CLOSED");
    bench.peer.close().await;
    assert_eq!(bench.notes.take(), ["closed -"]);
}

#[tokio::test]
async fn closing_sends_what_was_queued_and_fails_the_rest() {
    let mut bench = Bench::new(Notes::new());
    let asking = ask(&bench, "a", patient());
    bench.hear().await;
    bench.peer.post("goodbye", None);
    bench.peer.close().await;
    assert_eq!(asking.await.unwrap().unwrap_err().code(), "MCP_CLOSED");
    assert_eq!(bench.hear().await, r#"{"jsonrpc":"2.0","method":"goodbye"}"#);
    assert!(bench.far.source.next().await.is_none());
}

#[tokio::test]
async fn params_that_cannot_carry_a_token_are_refused() {
    let bench = Bench::new(Notes::new());
    let error = bench.peer.request("a", Some(raw("[1]")), patient()).await.unwrap_err();
    assert_eq!((error.code(), bench.peer.in_flight()), ("WIRE_BAD_PARAMS", 0));
}
