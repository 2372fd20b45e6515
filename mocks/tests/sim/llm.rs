//! The scripted model: choice of turns, timing, chunking, and what it says when no turn fits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use greenroom_boundary::clock::{MonoNanos, UnixNanos, sleep};
use greenroom_boundary::conformance::llm::{Assembled, assemble, request};
use greenroom_boundary::llm::{ChatMessage, LlmError, LlmEvent, LlmRequest, Role};
use greenroom_boundary::{CancellationToken, Clock, ConnectorName, Llm};
use greenroom_mocks::llm::{DenyLlm, LlmScript, LlmSwitch, ScriptedLlm};
use greenroom_mocks::{SeededEntropy, VirtualClock};
use proptest::prelude::*;
use serde_json::{Value, json};
use test_case::test_case;

const SEED: u64 = 20_260_801;

struct Rig {
    clock: VirtualClock,
    model: ScriptedLlm,
}

impl Rig {
    fn new(script: Value) -> Self {
        Self::seeded(script, SEED)
    }

    fn seeded(script: Value, seed: u64) -> Self {
        let script: LlmScript = serde_json::from_value(script).unwrap();
        let clock = VirtualClock::new(UnixNanos(0), 0);
        let model = ScriptedLlm::new("main", script, Arc::new(clock.clone()), &SeededEntropy::new(seed));
        Self { clock, model }
    }

    fn run<F: Future>(&self, future: F) -> F::Output {
        self.clock.runtime().unwrap().block_on(future)
    }

    async fn ask(&self, request: LlmRequest) -> Result<Assembled, LlmError> {
        Ok(assemble(self.model.stream(request, &CancellationToken::new()).await?).await)
    }

    /// The pieces and the milliseconds at which they come.
    fn timeline(&self) -> Vec<(u128, LlmEvent)> {
        self.run(async {
            let mut stream = self.model.stream(request(), &CancellationToken::new()).await.unwrap();
            let mut line = Vec::new();
            while let Some(event) = stream.next().await {
                line.push((self.clock.now().since(MonoNanos(0)).as_millis(), event.unwrap()));
            }
            line
        })
    }
}

fn user(text: &str) -> LlmRequest {
    LlmRequest { messages: vec![ChatMessage::text(Role::User, text)], ..request() }
}

fn tool(call: &str, content: &str) -> ChatMessage {
    ChatMessage { tool_call_id: Some(call.to_owned()), ..ChatMessage::text(Role::Tool, content) }
}

/// A conversation that ends with these tool messages.
fn results(messages: &[(&str, &str)]) -> LlmRequest {
    let mut request = user("Compare Oslo and Rome today");
    request.messages.push(ChatMessage::text(Role::Assistant, "Checking both cities."));
    request.messages.extend(messages.iter().map(|(call, content)| tool(call, content)));
    request
}

fn two_cities() -> Value {
    json!([
        {
            "id": "plan",
            "when": {
                "messages": { "$last": { "role": "user", "content": { "$contains": "Oslo" } } },
                "tools": { "$contains": { "name": "clock__now" } },
            },
            "reply": {
                "stream": { "ttft": "180ms", "tokens_per_s": 60, "chunking": "seeded" },
                "text": "Checking both cities.",
                "tool_calls": [
                    { "as": "oslo", "name": "weather__forecast", "arguments": { "city": "Oslo" } },
                    { "as": "rome", "name": "weather__forecast", "arguments": { "city": "Rome" } },
                ],
                "usage": { "in": 212, "out": 41 },
            },
        },
        {
            "id": "answer",
            "when": { "tool_results": [{ "of": "oslo", "structured": { "c": 14 } }, { "of": "rome", "structured": { "c": 31 } }] },
            "reply": { "text": "Oslo 14 °C, Rome 31 °C." },
        },
    ])
}

#[test]
fn a_conversation_goes_through_its_turns() {
    let rig = Rig::new(two_cities());
    rig.run(async {
        assert_eq!(rig.model.unused(), ["plan", "answer"]);
        let plan = rig.ask(user("Compare Oslo and Rome today")).await.unwrap();
        let ids: Vec<_> = plan.calls.iter().map(|call| call.id.as_str()).collect();
        assert_eq!((plan.text.as_str(), ids), ("Checking both cities.", vec!["call_oslo", "call_rome"]));
        assert_eq!(plan.calls[0].function.arguments, r#"{"city":"Oslo"}"#);
        assert_eq!(plan.finish.as_deref(), Some("tool_calls"));
        assert_eq!(rig.model.unused(), ["answer"]);

        let answer = rig.ask(results(&[("call_oslo", r#"{"c":14}"#), ("call_rome", r#"{"c":31.0}"#)])).await.unwrap();
        assert_eq!((answer.text.as_str(), answer.finish.as_deref()), ("Oslo 14 °C, Rome 31 °C.", Some("stop")));
        assert!(rig.model.unused().is_empty());
    });
}

#[test_case("swapped_results", &[("call_rome", r#"{"c":31}"#), ("call_oslo", r#"{"c":14}"#)])]
#[test_case("another_value", &[("call_oslo", r#"{"c":15}"#), ("call_rome", r#"{"c":31}"#)])]
#[test_case("a_result_is_missing", &[("call_oslo", r#"{"c":14}"#)])]
#[test_case("text_instead_of_json", &[("call_oslo", "no such city"), ("call_rome", r#"{"c":31}"#)])]
fn a_request_that_fits_no_turn_says_what_differs(case: &str, messages: &[(&str, &str)]) {
    let rig = Rig::new(two_cities());
    let error = rig.run(async {
        rig.ask(user("Compare Oslo and Rome today")).await.unwrap();
        rig.ask(results(messages)).await.unwrap_err()
    });
    assert_eq!(error.code(), "LLM_UNAVAILABLE");
    insta::assert_snapshot!(case, error.to_string());
    assert_eq!(rig.model.unused(), ["answer"], "what did not match is not used up");
}

#[test]
fn a_script_that_is_used_up_says_so() {
    let rig = Rig::new(json!([{ "id": "hello", "reply": { "text": "Hi." } }]));
    let error = rig.run(async {
        rig.ask(user("Hello")).await.unwrap();
        rig.ask(user("Hello")).await.unwrap_err()
    });
    insta::assert_snapshot!(error.to_string(), @r"
    llm.main: no scripted turn fits this request (messages: 1, tools: 1)
      every turn of the script has been used; add a turn, or `repeat: N` to one
    ");
}

#[test]
fn of_the_turns_that_fit_the_first_unused_one_answers() {
    let rig = Rig::new(json!([
        { "id": "billing", "when": { "assistant": "billing" }, "reply": { "text": "billing" } },
        { "id": "twice", "repeat": 2, "reply": { "text": "twice" } },
        { "id": "other connector", "when": { "connector": "small" }, "reply": { "text": "small" } },
        { "id": "rest", "reply": { "text": "rest" } },
    ]));
    let mut heard = Vec::new();
    rig.run(async {
        for _ in 0..3 {
            heard.push(rig.ask(user("Hello")).await.unwrap().text);
        }
        heard.push(rig.ask(LlmRequest { agent: Some("billing".to_owned()), ..user("Hello") }).await.unwrap().text);
        heard.push(rig.ask(LlmRequest { connector: ConnectorName::from("small"), ..user("Hello") }).await.unwrap().text);
    });
    assert_eq!(heard, ["twice", "twice", "rest", "billing", "small"]);
}

#[test]
fn unused_counts_the_uses_of_a_repeated_turn() {
    let rig = Rig::new(json!([{ "id": "hello", "repeat": 3, "reply": { "text": "Hi." } }]));
    rig.run(rig.ask(user("Hello"))).unwrap();
    assert_eq!(rig.model.unused(), ["hello (2 of 3 uses left)"]);
}

#[test]
fn a_repeated_call_gets_an_id_of_its_own_and_keeps_its_name() {
    let call = json!({ "tool_calls": [{ "as": "l1", "name": "ledger__lookup" }] });
    let rig = Rig::new(json!([
        { "id": "ask", "repeat": 2, "when": { "messages": { "$last": { "role": "user" } } }, "reply": call },
        { "id": "answer", "when": { "tool_results": [{ "of": "l1", "text": { "$contains": "gone" }, "is_error": true }] },
          "reply": { "text": "Sorry." } },
    ]));
    rig.run(async {
        let mut ids = Vec::new();
        for _ in 0..2 {
            let asked = rig.ask(user("Hello")).await.unwrap();
            assert_eq!(asked.calls[0].function.arguments, "{}");
            ids.push(asked.calls[0].id.clone());
        }
        assert_eq!(ids, ["call_l1", "call_l1_2"]);
        let mut request = results(&[("call_l1_2", "it is gone")]);
        assert_eq!(rig.ask(request.clone()).await.unwrap_err().code(), "LLM_UNAVAILABLE");
        request.messages.last_mut().unwrap().extra.insert("is_error".to_owned(), json!(true));
        assert_eq!(rig.ask(request).await.unwrap().text, "Sorry.");
    });
}

#[test]
fn time_to_first_token_and_speed_decide_when_pieces_come() {
    let stream = json!({ "ttft": "180ms", "tokens_per_s": 10, "chunking": "words" });
    let rig = Rig::new(
        json!([{ "id": "a", "reply": { "stream": stream, "text": "One two seventeen", "usage": { "in": 1, "out": 2 } } }]),
    );
    let lines: Vec<_> = rig.timeline().into_iter().map(|(ms, event)| format!("{ms} ms {event:?}")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    180 ms Text { delta: "One " }
    280 ms Text { delta: "two " }
    580 ms Text { delta: "seventeen" }
    580 ms Usage(Usage { input_tokens: 1, output_tokens: 2 })
    580 ms Finish { reason: "stop" }
    "#);
}

#[test]
fn the_same_seed_gives_the_same_borders_and_another_seed_others() {
    let stream = json!({ "chunking": "seeded" });
    let script = json!([{ "id": "a", "reply": { "stream": stream, "text": "The quick brown fox jumps over the lazy dog again and again." } }]);
    let line = |seed| Rig::seeded(script.clone(), seed).timeline();
    assert_eq!(line(1), line(1));
    assert_ne!(line(1), line(2));
}

#[test]
fn borders_of_a_turn_do_not_depend_on_what_was_asked_before() {
    let stream = json!({ "chunking": "seeded" });
    let turn = |id: &str| json!({ "id": id, "when": { "assistant": id }, "reply": { "stream": stream, "text": "The quick brown fox jumps." } });
    let script = json!([turn("a"), turn("b")]);
    let pieces = |order: &[&str]| {
        let rig = Rig::new(script.clone());
        rig.run(async {
            let mut all = BTreeMap::new();
            for agent in order {
                let request = LlmRequest { agent: Some((*agent).to_owned()), ..request() };
                let stream = rig.model.stream(request, &CancellationToken::new()).await.unwrap();
                all.insert((*agent).to_owned(), stream.map(Result::unwrap).collect::<Vec<_>>().await);
            }
            all
        })
    };
    assert_eq!(pieces(&["a", "b"]), pieces(&["b", "a"]));
}

#[test]
fn an_error_alone_fails_the_call_and_after_text_the_stream() {
    let error = json!({ "status": 503, "message": "overloaded", "retry_after": "1500ms" });
    let rig = Rig::new(json!([
        { "id": "at once", "reply": { "error": error, "stream": { "ttft": "2s" } } },
        { "id": "later", "reply": { "error": error, "text": "Half" } },
    ]));
    rig.run(async {
        let failed = rig.ask(request()).await.unwrap_err();
        assert_eq!(rig.clock.now(), MonoNanos(2_000_000_000));
        let broken = rig.ask(request()).await.unwrap();
        assert_eq!((broken.text.as_str(), broken.error.as_ref()), ("Half", Some(&failed)));
        assert!(matches!(failed, LlmError::Status { status: 503, retry_after_ms: Some(1500), .. }));
    });
}

#[test]
fn cancelling_ends_any_wait_and_leaves_no_timer() {
    let rig = Rig::new(json!([
        { "id": "slow error", "reply": { "error": { "status": 500 }, "stream": { "ttft": "1h" } } },
        { "id": "slow text", "reply": { "text": "Late.", "stream": { "ttft": "1h" } } },
    ]));
    rig.run(async {
        for _ in 0..2 {
            let cancel = CancellationToken::new();
            let asked = async {
                match rig.model.stream(request(), &cancel).await {
                    Ok(stream) => assemble(stream).await.error.unwrap(),
                    Err(error) => error,
                }
            };
            let cancelling = async {
                sleep(&rig.clock, Duration::from_secs(1)).await;
                cancel.cancel();
            };
            assert_eq!(futures::join!(asked, cancelling).0.code(), "LLM_CANCELLED");
        }
        assert_eq!(rig.clock.now(), MonoNanos(2_000_000_000));
        assert_eq!(rig.clock.pending_timers(), 0);
    });
}

#[test]
fn a_switch_asks_the_model_of_the_connector_and_denies_the_rest() {
    let rig = Rig::new(json!([{ "id": "a", "reply": { "text": "Hi." } }]));
    let clock = rig.clock.clone();
    let models: BTreeMap<String, Arc<dyn Llm>> = BTreeMap::from([("main".to_owned(), Arc::new(rig.model) as Arc<dyn Llm>)]);
    let switch = LlmSwitch::new(models);
    let stray = LlmRequest { connector: ConnectorName::from("other"), ..request() };
    let (heard, refused, denied) = clock.runtime().unwrap().block_on(async {
        let cancel = CancellationToken::new();
        let heard = assemble(switch.stream(request(), &cancel).await.unwrap()).await.text;
        (heard, switch.stream(stray, &cancel).await.err().unwrap(), DenyLlm.stream(request(), &cancel).await.err().unwrap())
    });
    assert_eq!(heard, "Hi.");
    insta::assert_snapshot!(format!("{refused}\n{denied}"), @r"
    llm.other is not listed here, so it is denied (listed: llm.main); add `llm.other` to `drivers`
    llm.main is not listed here, so it is denied (listed: no connector); add `llm.main` to `drivers`
    ");
}

#[test_case(json!([{ "id": "a", "reply": { "txt": "x" } }]), "unknown field `txt`"; "misspelt key")]
#[test_case(json!([{ "reply": {} }]), "missing field `id`"; "no id")]
#[test_case(json!([{ "id": "a", "reply": { "stream": { "tokens_per_s": 0 } } }]), "more than 0"; "no speed")]
#[test_case(json!([{ "id": "a", "reply": { "stream": { "ttft": "180" } } }]), "no duration"; "no unit")]
#[test_case(json!([{ "id": "a", "reply": {}, "repeat": 0 }]), "nonzero"; "repeat of nothing")]
#[test_case(json!([{ "id": "a", "reply": {}, "when": { "tools": { "$containz": 1 } } }]), "$containz"; "unknown operator")]
fn a_faulty_script_is_refused(script: Value, said: &str) {
    let error = serde_json::from_value::<LlmScript>(script).unwrap_err().to_string();
    assert!(error.contains(said), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn however_it_is_cut_the_text_is_the_text(text in "\\PC{0,80}", seed: u64, chunking in prop::sample::select(vec!["whole", "words", "seeded"])) {
        let script = json!([{ "id": "a", "reply": {
            "stream": { "chunking": chunking, "ttft": "1ms", "tokens_per_s": 7 },
            "text": text, "reasoning": text, "tool_calls": [{ "name": "t", "arguments": text }],
        } }]);
        let rig = Rig::seeded(script, seed);
        let got = rig.run(rig.ask(request())).unwrap();
        prop_assert_eq!(&got.text, &text);
        prop_assert_eq!(&got.reasoning, &text);
        prop_assert_eq!(&got.calls[0].function.arguments, &text);
    }
}
