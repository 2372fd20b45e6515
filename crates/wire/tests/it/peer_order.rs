//! Two connections against each other: order, large messages, full pipes.

use std::sync::{Arc, Mutex};

use futures::future::join_all;
use greenroom_wire::splice::progress_token_of;
use greenroom_wire::stdio::{self, StdioOptions};
use greenroom_wire::{FrameDuplex, IncomingRequest, Peer, Progress, RawJson, RequestOptions, RpcError, pipe};
use serde_json::json;
use serde_json::value::to_raw_value;
use test_case::test_case;
use tokio::io::DuplexStream;

use crate::support::{HandClock, Notes, options, raw};

const CALLS: usize = 300;
const STEPS: usize = 20;

/// Both ends over byte streams that hold `capacity_bytes` in each direction.
fn over_stdio(capacity_bytes: usize, limit_bytes: usize) -> (FrameDuplex, FrameDuplex) {
    let end = |stream: DuplexStream, server: &str| {
        let (reader, writer) = tokio::io::split(stream);
        stdio::duplex(reader, writer, &StdioOptions { server: server.to_owned(), limit_bytes })
    };
    let (near, far) = tokio::io::duplex(capacity_bytes);
    (end(near, "server"), end(far, "client"))
}

async fn work(request: IncomingRequest) -> Result<RawJson, RpcError> {
    let token = progress_token_of(request.params.as_deref()).unwrap();
    for step in 1..=STEPS {
        let params = to_raw_value(&json!({"progressToken": token, "progress": step})).unwrap();
        request.peer.post("notifications/progress", Some(&params));
        tokio::task::yield_now().await;
    }
    Ok(raw("\"done\""))
}

#[test_case(pipe("server"); "pipe")]
#[test_case(over_stdio(256, 1 << 20); "narrow byte stream")]
#[tokio::test]
async fn every_call_hears_its_progress_in_order(ends: (FrameDuplex, FrameDuplex)) {
    let clock = HandClock::new();
    let _server = Peer::start(ends.1, Notes::answering(work), options(&clock));
    let client = Peer::start(ends.0, Notes::new(), options(&clock));
    let calls = (0..CALLS).map(|_| async {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let listener = heard.clone();
        let note = move |step: Progress| listener.lock().unwrap().push(step.progress as usize);
        let options =
            RequestOptions { progress: Some(Box::new(note)), attach_progress_token: true, ..RequestOptions::default() };
        client.request("work", None, options).await.unwrap();
        heard.lock().unwrap().clone()
    });
    let in_order: Vec<usize> = (1..=STEPS).collect();
    assert!(join_all(calls).await.iter().all(|heard| *heard == in_order));
}

#[tokio::test]
async fn notifications_arrive_in_order() {
    let (near, far) = over_stdio(64, 1 << 20);
    let (clock, notes) = (HandClock::new(), Notes::new());
    let _receiver = Peer::start(far, notes.clone(), options(&clock));
    let sender = Peer::start(near, Notes::new(), options(&clock));
    for number in 0..200 {
        sender.post("n", Some(&raw(&number.to_string())));
    }
    sender.request("end", None, RequestOptions::default()).await.unwrap_err();
    let expected: Vec<_> = (0..200).map(|number| format!("notification n {number}")).collect();
    assert_eq!(notes.take(), expected);
}

async fn echo(request: IncomingRequest) -> Result<RawJson, RpcError> {
    Ok(request.params.unwrap_or_else(|| raw("null")))
}

/// Params of about `bytes` bytes, with characters of every width.
fn payload(bytes: usize) -> RawJson {
    raw(&format!("{{\"text\":\"{}\"}}", "aé漢🧪".repeat(bytes / 10)))
}

#[test_case(&[1 << 10, 8 << 10, 60 << 10, 66 << 10, 200 << 10, 8 << 20], 1 << 10; "up to 8 MiB through 1 KiB")]
#[test_case(&[1000, 5000, 20_000], 7; "through 7 bytes")]
#[tokio::test]
async fn large_messages_pass_whole_in_both_directions(sizes: &[usize], capacity_bytes: usize) {
    let (near, far) = over_stdio(capacity_bytes, 16 << 20);
    let clock = HandClock::new();
    let one = Peer::start(near, Notes::answering(echo), options(&clock));
    let two = Peer::start(far, Notes::answering(echo), options(&clock));
    // Both sides write large messages at once: neither may wait for the other to read.
    let calls = sizes.iter().flat_map(|size| [(&one, payload(*size)), (&two, payload(*size))]).map(|(peer, sent)| async move {
        let back = peer.request("echo", Some(sent.clone()), RequestOptions::default()).await.unwrap();
        assert!(back.get() == sent.get(), "{} bytes came back changed", sent.get().len());
    });
    join_all(calls).await;
}

#[tokio::test]
async fn an_answer_beyond_the_limit_fails_its_call_alone() {
    let (near, far) = over_stdio(4096, 64 << 10);
    let (clock, notes) = (HandClock::new(), Notes::new());
    let sizes = |request: IncomingRequest| async move {
        let bytes: usize = request.params.unwrap().get().parse().unwrap();
        Ok(payload(bytes))
    };
    let _server = Peer::start(far, Notes::answering(sizes), options(&clock));
    let client = Peer::start(near, notes.clone(), options(&clock));
    let call = async |bytes: usize| client.request("give", Some(raw(&bytes.to_string())), RequestOptions::default()).await;
    let (before, lost, beside) = tokio::join!(call(1000), call(1 << 20), call(2000));
    assert_eq!((before.unwrap().get(), beside.unwrap().get()), (payload(1000).get(), payload(2000).get()));
    let lost = lost.unwrap_err();
    assert_eq!(lost.code(), "MCP_TOO_LARGE");
    assert!(lost.to_string().contains("65536"), "{lost}");
    assert_eq!(call(3000).await.unwrap().get(), payload(3000).get());
    assert_eq!(notes.take(), ["too large MCP_TOO_LARGE"]);
}
