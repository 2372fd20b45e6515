//! The `drivers:` and `faults:` sections: what stands behind a boundary, and what is said when it is not used.

use std::path::Path;
use std::sync::Arc;

use greenroom_boundary::egress::DenyAll;
use greenroom_boundary::{CliRunner, Clock, Egress, Entropy, Llm, McpConnector};
use greenroom_harness::model::{Live, LlmScript};
use greenroom_harness::run::{CaseResult, LiveDrivers, LiveError, LiveWorld, RunOptions, Verdict, run_case};
use greenroom_mocks::cli::DenyCli;
use greenroom_mocks::llm::ScriptedLlm;
use greenroom_mocks::mcp::DenyMcp;
use greenroom_mocks::{SeededEntropy, VirtualClock};
use serde_json::json;
use test_case::test_case;

use crate::support::{codes, factory, load, options, run};

const SCRIPT: &str = "drivers: { llm.main: { script: [{ id: hello, reply: { text: Good day } }] } }\n";
const ASKS: &str = "[{ ask: hello }]";

#[test]
fn a_scripted_model_answers() {
    assert_eq!(codes(&run(ASKS, &format!("{SCRIPT}expect:\n  - reply: {{ text: Good day }}\n"))), Vec::<String>::new());
}

#[test]
fn an_unlisted_boundary_is_denied() {
    let result = run(ASKS, "expect:\n  - reply: { text: LLM_UNAVAILABLE }\n");
    assert_eq!(result.verdict, Verdict::Pass);
}

#[test_case("{ boundary: llm.main, nth: 1 }", "{ error: { code: 503, message: busy } }", "LLM_STATUS" => ""; "a fault that fires")]
#[test_case("{ boundary: llm.main, phase: response }", "{ delay: 4s }", "Good day" => ""; "a fault that delays")]
#[test_case("{ boundary: llm.main, nth: 2 }", "{ disconnect: true }", "Good day" => "vacuous FAULT_UNUSED"; "a fault that never fires")]
#[test_case("{ boundary: isolate }", "{ crash: true }", "Good day" => "error FAULT_UNSUPPORTED"; "a fault where none can be")]
#[test_case("{ boundary: llm.main, assistant: desk }", "{ crash: true }", "Good day" => "error FAULT_UNSUPPORTED"; "a fault that is narrowed too far")]
fn faults(at: &str, action: &str, said: &str) -> String {
    // A failing model leaves the script unused, which is not the point here.
    let script = if said == "LLM_STATUS" { "drivers: { llm.main: { script: [] } }\n" } else { SCRIPT };
    let faults = format!("faults: [{{ id: f, at: {at}, do: {action} }}]\n");
    codes(&run(ASKS, &format!("{script}{faults}expect:\n  - reply: {{ text: {said} }}\n"))).join(", ")
}

/// "Real" drivers: a model that says good day.
struct Double;

impl LiveDrivers for Double {
    fn clock(&self) -> Arc<dyn Clock> {
        Arc::new(VirtualClock::new(greenroom_boundary::clock::UnixNanos(0), 0))
    }

    fn entropy(&self) -> Arc<dyn Entropy> {
        Arc::new(SeededEntropy::new(1))
    }

    fn egress(&self, _: &[String], _: &Arc<dyn Clock>) -> Result<Arc<dyn Egress>, LiveError> {
        Ok(Arc::new(DenyAll))
    }

    fn mcp(&self, _: &LiveWorld) -> Arc<dyn McpConnector> {
        Arc::new(DenyMcp)
    }

    fn llm(&self, name: &str, _: &Live, world: &LiveWorld) -> Result<Arc<dyn Llm>, LiveError> {
        let script: LlmScript =
            serde_json::from_value(json!([{ "id": "a", "repeat": 9, "reply": { "text": "Good day" } }])).unwrap();
        Ok(Arc::new(ScriptedLlm::new(name, script, world.clock.clone(), &SeededEntropy::new(1))))
    }

    fn cli(&self, _: &Live, _: &LiveWorld) -> Arc<dyn CliRunner> {
        Arc::new(DenyCli)
    }
}

fn with_cassette(folder: &Path, asks: &[&str], options: RunOptions) -> CaseResult {
    let turn: Vec<_> = asks.iter().map(|text| json!({ "ask": text })).collect();
    let text = json!({
        "scenario": 1, "id": "fake/tape", "host": { "inline": { "turn": turn } },
        "drivers": { "llm.main": { "record": { "cassette": "tape.cas", "live": { "url": "http://model.test/v1" } } } },
        "run": [{ "send": { "assistant": "desk", "user": "hi" } }],
        "expect": [{ "reply": { "text": "Good day" } }, { "invariant": "every-request-answered" }],
    });
    run_case(&load(&folder.join("tape.json"), &text.to_string())[0], &factory(), &options)
}

fn recording() -> RunOptions {
    RunOptions { live: Some(Arc::new(Double)), record: true, ..options() }
}

#[test]
fn what_was_recorded_replays_offline_to_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let asks = ["hello", "hello"];
    let recorded = with_cassette(folder.path(), &asks, recording());
    assert_eq!((recorded.verdict, codes(&recorded)), (Verdict::Pass, vec![]));
    assert!(recorded.notes[0].starts_with("recorded "), "{:?}", recorded.notes);
    let replayed = with_cassette(folder.path(), &asks, options());
    assert_eq!((replayed.verdict, codes(&replayed)), (Verdict::Pass, vec![]));
    assert_eq!(replayed.trace, recorded.trace);
}

#[test]
fn a_replay_that_goes_another_way_is_a_miss() {
    let folder = tempfile::tempdir().unwrap();
    with_cassette(folder.path(), &["hello"], recording());
    let other = with_cassette(folder.path(), &["goodbye"], options());
    assert_eq!((other.verdict, other.verdict.exit_code()), (Verdict::Miss, 3));
    assert_eq!(codes(&other)[0], "miss REPLAY_MISS");
    assert!(other.failures[0].message.contains("goodbye"), "{}", other.failures[0].message);
}

#[test]
fn a_recorded_exchange_that_nobody_asks_for_is_told() {
    let folder = tempfile::tempdir().unwrap();
    with_cassette(folder.path(), &["hello", "and again"], recording());
    assert_eq!(codes(&with_cassette(folder.path(), &["hello"], options())), ["miss CASSETTE_UNUSED"]);
}

#[test]
fn without_a_cassette_and_a_recorder_nothing_runs() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(codes(&with_cassette(folder.path(), &["hello"], options())), ["error CASSETTE_MISSING"]);
}
