//! The simulated arms of the conformance suites.

use std::sync::Arc;

use async_trait::async_trait;
use greenroom_boundary::clock::UnixNanos;
use greenroom_boundary::conformance;
use greenroom_boundary::conformance::llm::{Answer, CONNECTOR, LlmStage};
use greenroom_boundary::egress::{DenyAll, Destination};
use greenroom_boundary::{Clock, Llm};
use greenroom_mocks::llm::{LlmScript, ScriptedLlm};
use greenroom_mocks::{SeededEntropy, VirtualClock};
use serde_json::{Value, json};
use test_case::test_case;

#[test_case(0; "in order of creation")]
#[test_case(42; "in a seeded order")]
fn virtual_clock(seed: u64) {
    let start = UnixNanos(1_785_574_800_000_000_000);
    let clock = VirtualClock::new(start, seed);
    clock.runtime().unwrap().block_on(conformance::clock::all(&clock, start));
    assert_eq!((clock.pending_timers(), clock.holds()), (0, 0));
}

#[test]
fn seeded_entropy() {
    conformance::entropy::all(&SeededEntropy::new(7));
    conformance::entropy::all(&SeededEntropy::new(7).derive("llm.main"));
}

#[test]
fn deny_all() {
    let refused = Destination { host: "api.example.com".to_owned(), port: 443, purpose: "llm.main".to_owned() };
    conformance::egress::all(&DenyAll, &refused);
}

#[test_case("whole")]
#[test_case("words")]
#[test_case("seeded")]
fn scripted_llm(chunking: &'static str) {
    let clock = VirtualClock::new(UnixNanos(0), 0);
    let runtime = clock.runtime().unwrap();
    runtime.block_on(conformance::llm::all(&Stage { clock: Arc::new(clock.clone()), chunking }));
    assert_eq!(clock.pending_timers(), 0);
}

struct Stage {
    clock: Arc<dyn Clock>,
    chunking: &'static str,
}

#[async_trait]
impl LlmStage for Stage {
    async fn model(&self, answer: Answer) -> Arc<dyn Llm> {
        let script: LlmScript = serde_json::from_value(json!([{ "id": "only", "reply": self.reply(answer) }])).unwrap();
        Arc::new(ScriptedLlm::new(CONNECTOR, script, self.clock.clone(), &SeededEntropy::new(1)))
    }
}

impl Stage {
    fn reply(&self, answer: Answer) -> Value {
        let stream = json!({ "ttft": "180ms", "tokens_per_s": 60, "chunking": self.chunking });
        match answer {
            Answer::Complete { text, calls, usage, finish } => {
                let calls: Vec<_> =
                    calls.into_iter().map(|(name, arguments)| json!({ "name": name, "arguments": arguments })).collect();
                let usage = usage.map(|usage| json!({ "in": usage.input_tokens, "out": usage.output_tokens }));
                json!({ "stream": stream, "text": text, "tool_calls": calls, "usage": usage, "finish": finish })
            }
            Answer::Error { status, message, retry_after_s } => {
                let retry_after = retry_after_s.map(|s| format!("{s}s"));
                json!({ "error": { "status": status, "message": message, "retry_after": retry_after } })
            }
            Answer::Cut { text } => json!({ "stream": stream, "text": text, "cut": true }),
            Answer::Stalls { word } => {
                let slow = json!({ "tokens_per_s": 0.000_1, "chunking": "words" });
                json!({ "stream": slow, "text": format!("{word} and then some more") })
            }
        }
    }
}
