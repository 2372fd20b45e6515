//! Injected faults and held clocks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom_boundary::clock::{sleep, timeout_at};
use greenroom_boundary::trace::{EventKind, TraceEvent, TraceSink};
use greenroom_boundary::{CancellationToken, Clock, Llm, Tracer};
use greenroom_harness::faults::{FaultAction, FaultPhase, FaultPlan, FaultSpec, FaultyLlm, FaultyMcp};
use greenroom_harness::live::{HoldingLlm, HoldingMcp};
use greenroom_mocks::clock::VirtualClock;
use serde_json::json;
use test_case::test_case;

use crate::cassette_doubles::{LlmDouble, McpDouble, Session, call, clock, complete, finish, request, result, run, text};

#[derive(Default)]
struct Fired(Mutex<Vec<String>>);

impl TraceSink for Fired {
    fn emit(&self, event: TraceEvent) {
        if let EventKind::Fault { id, boundary, body } = event.kind {
            self.0.lock().unwrap().push(format!("{id} {boundary} {body}"));
        }
    }
}

fn tracer(clock: &VirtualClock) -> (Tracer, Arc<Fired>) {
    let fired = Arc::new(Fired::default());
    (Tracer::new(Arc::new(clock.clone()), fired.clone()), fired)
}

fn fault(boundary: &str, phase: FaultPhase, nth: u32, action: FaultAction) -> FaultSpec {
    FaultSpec { id: "f".into(), boundary: boundary.into(), method: None, phase, nth, times: 1, action }
}

const REQUEST: FaultPhase = FaultPhase::Request;
const RESPONSE: FaultPhase = FaultPhase::Response;

fn delay() -> FaultAction {
    FaultAction::Delay(Duration::from_secs(3))
}

fn error() -> FaultAction {
    FaultAction::Error { code: -32000, message: "busy".into() }
}

/// Three calls on a server that answers at once; the second is struck. `SECONDS id` of each answer, or what else came.
fn three_calls(phase: FaultPhase, action: FaultAction) -> (Vec<String>, usize) {
    let clock = clock();
    let (tracer, fired) = tracer(&clock);
    let plan = FaultPlan::new(vec![fault("mcp.shop", phase, 2, action)]);
    let server = McpDouble::new(|_, message| vec![result(&message["id"], json!({}))]);
    let mcp = FaultyMcp::new(server, plan.clone(), Arc::new(clock.clone()), tracer);
    let seen = run(&clock, async {
        let mut shop = Session::open(&mcp, "shop").await;
        let mut seen = Vec::new();
        for id in 1..=3 {
            if let Err(error) = shop.send(call(id, "x", json!({}))).await {
                seen.push(error.code().to_owned());
            }
        }
        for _ in 0..3 {
            let deadline = clock.now().after(Duration::from_secs(10));
            let Ok(frame) = timeout_at(&clock, deadline, Box::pin(shop.next())).await else { break };
            let frame: String = frame.replace("\"jsonrpc\":\"2.0\",", "").chars().take(60).collect();
            seen.push(format!("{}s {frame}", clock.now().0 / 1_000_000_000));
        }
        seen
    });
    assert_eq!(plan.unfired(), Vec::<String>::new());
    let fired = fired.0.lock().unwrap().len();
    (seen, fired)
}

#[test_case(REQUEST, delay() => vec![r#"0s {"id":1,"result":{}}"#, r#"0s {"id":3,"result":{}}"#, r#"3s {"id":2,"result":{}}"#]; "delayed request")]
#[test_case(RESPONSE, delay() => vec![r#"0s {"id":1,"result":{}}"#, r#"0s {"id":3,"result":{}}"#, r#"3s {"id":2,"result":{}}"#]; "delayed answer")]
#[test_case(REQUEST, FaultAction::Hang => vec![r#"0s {"id":1,"result":{}}"#, r#"0s {"id":3,"result":{}}"#]; "hanging request")]
#[test_case(RESPONSE, FaultAction::Drop => vec![r#"0s {"id":1,"result":{}}"#, r#"0s {"id":3,"result":{}}"#]; "lost answer")]
#[test_case(REQUEST, FaultAction::Drop => vec![r#"0s {"id":1,"result":{}}"#, r#"0s {"id":3,"result":{}}"#]; "lost request")]
#[test_case(RESPONSE, error() => vec![r#"0s {"id":1,"result":{}}"#, r#"0s {"id":2,"error":{"code":-32000,"message":"busy"}}"#, r#"0s {"id":3,"result":{}}"#]; "error answer")]
#[test_case(RESPONSE, FaultAction::Disconnect => vec![r#"0s {"id":1,"result":{}}"#, "0s MCP_CLOSED: server shop closed the connection: the connectio", "0s END"]; "broken at the answer")]
#[test_case(REQUEST, FaultAction::Disconnect => vec!["MCP_CLOSED", "0s MCP_CLOSED: server shop closed the connection: the connectio", "0s END", "0s END"]; "broken at the request")]
fn server_faults(phase: FaultPhase, action: FaultAction) -> Vec<String> {
    let (seen, fired) = three_calls(phase, action);
    assert_eq!(fired, 1);
    seen
}

/// Two completions, the second struck.
#[test_case(REQUEST, delay() => r#"3s {"type":"text","delta":"b"} {"type":"finish","reason":"stop"}"#; "delayed request")]
#[test_case(RESPONSE, delay() => r#"3s {"type":"text","delta":"b"} {"type":"finish","reason":"stop"}"#; "delayed answer")]
#[test_case(REQUEST, FaultAction::Hang => "10s hangs"; "hanging request")]
#[test_case(RESPONSE, FaultAction::Drop => "10s hangs"; "lost answer")]
#[test_case(REQUEST, FaultAction::Error { code: 503, message: "busy".into() } => "0s LLM_STATUS: main: provider answered 503: busy"; "error instead")]
#[test_case(RESPONSE, FaultAction::Error { code: 503, message: "busy".into() } => "0s LLM_STATUS"; "error answer")]
#[test_case(RESPONSE, FaultAction::Disconnect => r#"0s {"type":"text","delta":"b"} LLM_TRANSPORT"#; "broken after the first piece")]
fn model_faults(phase: FaultPhase, action: FaultAction) -> String {
    let clock = clock();
    let (tracer, fired) = tracer(&clock);
    let plan = FaultPlan::new(vec![fault("llm.main", phase, 2, action)]);
    let double = LlmDouble::new(vec![Ok(vec![text("a"), finish()]), Ok(vec![text("b"), finish()])]);
    let llm = FaultyLlm::new(double, plan.clone(), Arc::new(clock.clone()), tracer);
    let pieces = run(&clock, async {
        complete(&llm, request("main", "one")).await;
        assert_eq!(plan.unfired(), ["f"]);
        let deadline = clock.now().after(Duration::from_secs(10));
        timeout_at(&clock, deadline, Box::pin(complete(&llm, request("main", "two")))).await
    });
    assert_eq!((plan.unfired().len(), fired.0.lock().unwrap().len()), (0, 1));
    format!("{}s {}", clock.now().0 / 1_000_000_000, pieces.map_or("hangs".to_owned(), |pieces| pieces.join(" ")))
}

#[test]
fn faults_count_what_they_match_and_name_themselves() {
    let clock = clock();
    let (tracer, fired) = tracer(&clock);
    let spec = |id: &str, method: &str, nth: u32, times: u32| FaultSpec {
        id: id.into(),
        method: Some(method.into()),
        times,
        ..fault("mcp.shop", REQUEST, nth, error())
    };
    let plan = FaultPlan::new(vec![spec("twice", "tools/call", 2, 2), spec("never", "tools/list", 1, 1)]);
    let server = McpDouble::new(|_, message| vec![result(&message["id"], json!({}))]);
    let mcp = FaultyMcp::new(server, plan.clone(), Arc::new(clock.clone()), tracer);
    let failed: Vec<bool> = run(&clock, async {
        let mut shop = Session::open(&mcp, "shop").await;
        let mut failed = Vec::new();
        for id in 1..=4 {
            shop.send(call(id, "x", json!({}))).await.unwrap();
            failed.push(shop.next().await.contains("error"));
        }
        failed
    });
    assert_eq!(failed, [false, true, true, false]);
    assert_eq!(plan.unfired(), ["never"]);
    insta::assert_snapshot!(fired.0.lock().unwrap().join("\n"), @r#"
    twice mcp.shop {"method":"tools/call","phase":"request","do":{"error":{"code":-32000,"message":"busy"}}}
    twice mcp.shop {"method":"tools/call","phase":"request","do":{"error":{"code":-32000,"message":"busy"}}}
    "#);
}

#[test]
fn the_clock_is_held_from_request_to_answer_and_no_longer() {
    let clock = clock();
    let server = McpDouble::new(|_, message| match message["method"].as_str() {
        Some("tools/call") if message["params"]["name"] == "answers" => vec![result(&message["id"], json!({}))],
        _ => Vec::new(),
    });
    let mcp = HoldingMcp::new(server, Arc::new(clock.clone()));
    run(&clock, async {
        let mut shop = Session::open(&mcp, "shop").await;
        let mut holds = vec![clock.holds()];
        shop.send(call(1, "answers", json!({}))).await.unwrap();
        holds.push(clock.holds());
        shop.next().await;
        holds.push(clock.holds());
        shop.send(call(2, "silent", json!({}))).await.unwrap();
        shop.send(call(3, "silent", json!({}))).await.unwrap();
        holds.push(clock.holds());
        shop.send(json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 2 } }).to_string())
            .await
            .unwrap();
        holds.push(clock.holds());
        shop.0.sink.close().await;
        holds.push(clock.holds());
        assert_eq!(holds, [0, 1, 0, 2, 1, 0]);
        sleep(&clock, Duration::from_secs(1)).await;
    });
}

#[test]
fn the_clock_is_held_during_a_completion() {
    let clock = clock();
    let llm =
        HoldingLlm::new(LlmDouble::new(vec![Ok(vec![text("a")]), Ok(vec![text("a"), finish()])]), Arc::new(clock.clone()));
    run(&clock, async {
        let stream = llm.stream(request("main", "hi"), &CancellationToken::new()).await.unwrap();
        assert_eq!(clock.holds(), 1);
        drop(stream);
        assert_eq!(clock.holds(), 0);
        complete(&llm, request("main", "hi")).await;
        assert_eq!(clock.holds(), 0);
    });
}
