//! The simulated arms of the conformance suites.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use greenroom_boundary::clock::UnixNanos;
use greenroom_boundary::conformance;
use greenroom_boundary::conformance::llm::{Answer, CONNECTOR, LlmStage};
use greenroom_boundary::conformance::search::{SearchStage, TEXTS};
use greenroom_boundary::egress::{DenyAll, Destination};
use greenroom_boundary::search::SearchKind;
use greenroom_boundary::workspace::{WorkspaceSpec, Workspaces as _};
use greenroom_boundary::{AgentId, Clock, Llm, Search};
use greenroom_mocks::llm::{LlmScript, ScriptedLlm};
use greenroom_mocks::search::{ScriptedSearch, SearchScript};
use greenroom_mocks::workspace::MemoryWorkspaces;
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

#[test_case(SearchKind::Web)]
#[test_case(SearchKind::Kb)]
#[test_case(SearchKind::Db)]
fn scripted_search(kind: SearchKind) {
    let clock = VirtualClock::new(UnixNanos(0), 0);
    let runtime = clock.runtime().unwrap();
    runtime.block_on(conformance::search::all(|| Searches { clock: Arc::new(clock.clone()), kind }));
    assert_eq!(clock.pending_timers(), 0);
}

#[test]
fn memory_workspace() {
    let workspaces = MemoryWorkspaces::new(Arc::new(VirtualClock::new(UnixNanos(0), 0)));
    let open = |agent: &str| workspaces.open(&AgentId::new(agent), &WorkspaceSpec::Files(BTreeMap::new())).unwrap();
    conformance::workspace::all(&*open("desk"));
    assert!(open("desk").stat("folder").is_ok(), "the same agent has the same files");
    assert!(open("other").stat("folder").is_err());
}

struct Searches {
    clock: Arc<dyn Clock>,
    kind: SearchKind,
}

impl Searches {
    fn of(&self, script: Value) -> Arc<dyn Search> {
        let script: SearchScript = serde_json::from_value(script).unwrap();
        Arc::new(ScriptedSearch::new(script, self.clock.clone()))
    }
}

#[async_trait]
impl SearchStage for Searches {
    fn kind(&self) -> SearchKind {
        self.kind
    }

    async fn knowing(&self) -> Arc<dyn Search> {
        let texts = |word: &str| -> Vec<Value> {
            let fits = TEXTS.iter().filter(|text| text.content.contains(word));
            fits.map(|text| json!({ "title": text.title, "content": text.content })).collect()
        };
        let answer = |word: &str| json!({ "when": { "query": word }, "after": "10ms", "repeat": 2, "results": texts(word) });
        self.of(json!([answer("harbour"), answer("ferry"), answer("volcano")]))
    }

    async fn lost(&self) -> Arc<dyn Search> {
        self.of(json!([{ "error": "no route to the provider" }]))
    }
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
