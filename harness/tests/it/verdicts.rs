//! What each expectation says about a trace: it holds, it fails and shows where, or it proves nothing.

use greenroom_harness::run::Verdict;
use test_case::test_case;

use crate::support::{codes, run};

/// A model call with two tool calls, the tools, a second model call.
const TURN: &str = r"[
    { emit: { event: request, span: 1, boundary: llm.main, method: chat, body: { messages: [{ role: user, content: hi }] } } },
    { emit: { event: response, span: 1, boundary: llm.main, method: chat, outcome: ok, body: {}, usage: { in: 10, out: 5 } } },
    { emit: { event: hook, hook: metric, of: 2, boundary: mcp.shop, method: tools/call, phase: request, mode: enforce, verdict: mutated, depth: 0 } },
    { emit: { event: hook, hook: allow, of: 2, boundary: mcp.shop, method: tools/call, phase: request, mode: enforce, verdict: skipped, depth: 0 } },
    { emit: { event: request, span: 2, boundary: mcp.shop, method: tools/call, tool_call: a, body: { params: { name: buy, n: 1 } } } },
    { emit: { event: request, span: 3, boundary: mcp.shop, method: tools/call, tool_call: b, body: { params: { name: buy, n: 2 } } } },
    { sleep_ms: 250 },
    { emit: { event: response, span: 3, boundary: mcp.shop, method: tools/call, outcome: ok, body: {} } },
    { emit: { event: response, span: 2, boundary: mcp.shop, method: tools/call, outcome: timeout, body: {} } },
    { emit: { event: delegate, from: desk, to: billing, depth: 1, via: create } },
    { emit: { event: request, span: 4, boundary: llm.main, method: chat, body: { messages: [
        { role: assistant, tool_calls: [{ id: a }, { id: b }] },
        { role: tool, tool_call_id: a, content: x }, { role: tool, tool_call_id: b, content: y }] } } },
    { emit: { event: response, span: 4, boundary: llm.main, method: chat, outcome: ok, body: {}, usage: { in: 20, out: 7 } } },
    { reply: { outcome: ok, text: Done in 2 steps, data: { n: 2 } } }
  ]";

/// Drivers that nothing is asked of, so that the boundaries are there.
const DRIVERS: &str = "drivers: { llm.main: { deny: true }, mcp.shop: { deny: true } }\n";

fn verdict(turn: &str, expectation: &str) -> (Verdict, Vec<String>) {
    let result = run(turn, &format!("{DRIVERS}expect:\n  - {expectation}\n"));
    (result.verdict, codes(&result))
}

#[test_case("reply: { text: { $re: '\\d steps' }, data: { n: 2 }, outcome: ok }")]
#[test_case(
    "trace: [{ boundary: llm.main, phase: request }, { boundary: mcp.shop, match: { params: { n: 2 } } }, { boundary: llm.main, nth: 2 }]"
)]
#[test_case(
    "{ trace: [{ boundary: mcp.shop, method: tools/call, nth: 1 }, { boundary: mcp.shop, method: tools/call, nth: 2 }], mode: exact }"
)]
#[test_case("{ trace: [{ boundary: mcp.shop, match: { params: { n: 2 } } }, { boundary: mcp.shop }], mode: unordered }")]
#[test_case("never: { boundary: mcp.shop, match: { params: { n: 3 } } }")]
#[test_case("count: { event: { boundary: llm.main, phase: request }, is: 2 }")]
#[test_case("count: { event: { boundary: mcp.shop }, is: { $range: { min: 1, max: 3 } } }")]
#[test_case("hooks: { for: { boundary: mcp.shop, nth: 1 }, order: [metric], covered: [metric] }")]
#[test_case(
    "invariant: [every-request-answered, tool-results-in-call-order, spans-closed, side-effects-at-most-once, delegation-acyclic, nothing-left-over]"
)]
#[test_case(
    "budget: { llm_calls: { is: 2 }, tool_calls: { max: 2 }, tokens_in: { is: 30 }, tokens_out: { is: 12 }, virtual: { is: 250ms }, wall: { max: 60s }, delegation_depth: { is: 1 }, events: { min: 5 } }"
)]
fn it_holds(expectation: &str) {
    assert_eq!(verdict(TURN, expectation), (Verdict::Pass, vec![]));
}

#[test_case("reply: { text: nothing }" => "fail EXPECT_REPLY")]
#[test_case("reply: { error: { code: X } }" => "fail EXPECT_REPLY")]
#[test_case("trace: [{ boundary: llm.main, nth: 2 }, { boundary: mcp.shop }]" => "fail EXPECT_TRACE")]
#[test_case("{ trace: [{ boundary: mcp.shop, nth: 1 }, { boundary: mcp.shop, nth: 1 }], mode: exact }" => "fail EXPECT_TRACE")]
#[test_case("{ trace: [{ boundary: mcp.shop }, { boundary: mcp.shop }, { boundary: mcp.shop }], mode: unordered }" => "fail EXPECT_TRACE")]
#[test_case("never: { boundary: mcp.shop, outcome: timeout }" => "fail EXPECT_NEVER")]
#[test_case("count: { event: { boundary: mcp.shop }, is: 3 }" => "fail EXPECT_COUNT")]
#[test_case("hooks: { covered: [metric, allow] }" => "fail EXPECT_HOOKS"; "a skipped hook did not run")]
#[test_case("hooks: { for: { boundary: llm.main, nth: 1 }, order: [metric] }" => "fail EXPECT_HOOKS"; "hooks of another exchange do not count")]
#[test_case("budget: { tool_calls: { max: 1 } }" => "fail EXPECT_BUDGET")]
#[test_case("budget: { virtual: { max: 249ms } }" => "fail EXPECT_BUDGET"; "virtual budget")]
#[test_case("never: { boundary: mcp.shpo }" => "vacuous EXPECT_NEVER"; "a boundary that is not there")]
#[test_case("never: { boundary: mcp.shop, phase: chunk }" => "vacuous EXPECT_NEVER"; "a phase that a server never has")]
#[test_case("never: { boundary: mcp.shop, phase: request, outcome: ok }" => "vacuous EXPECT_NEVER"; "a request has no outcome")]
#[test_case("count: { event: { boundary: llm.other }, is: 0 }" => "vacuous EXPECT_COUNT"; "a count of what cannot be")]
#[test_case("invariant: cassette-fully-consumed" => "vacuous INVARIANT_CASSETTE_FULLY_CONSUMED")]
#[test_case("invariant: script-fully-consumed" => "vacuous INVARIANT_SCRIPT_FULLY_CONSUMED")]
#[test_case("invariant: delegate-sees-only-its-own-tools" => "vacuous INVARIANT_DELEGATE_SEES_ONLY_ITS_OWN_TOOLS")]
fn it_does_not_hold(expectation: &str) -> String {
    verdict(TURN, expectation).1.join(", ")
}

const CALL: &str = "event: request, boundary: mcp.shop, method: tools/call, body: { params: { name: buy } }";

fn emits(events: &[&str]) -> String {
    format!("[{}]", events.iter().map(|event| format!("{{ emit: {{ {event} }} }}")).collect::<Vec<_>>().join(", "))
}

#[test_case("every-request-answered", &[&format!("span: 1, {CALL}")] => "fail INVARIANT_EVERY_REQUEST_ANSWERED"; "a request without an answer")]
#[test_case("spans-closed", &["event: response, span: 9, boundary: mcp.shop, method: x, outcome: ok, body: {}"] => "fail INVARIANT_SPANS_CLOSED"; "an answer without a request")]
#[test_case("side-effects-at-most-once", &[&format!("span: 1, tool_call: a, {CALL}"), &format!("span: 2, tool_call: a, {CALL}")] => "fail INVARIANT_SIDE_EFFECTS_AT_MOST_ONCE"; "a repeated side effect")]
#[test_case("side-effects-at-most-once", &[
    "event: response, span: 9, boundary: mcp.shop, method: tools/list, outcome: ok, body: { tools: [{ name: buy, annotations: { idempotentHint: true } }] }",
    &format!("span: 1, tool_call: a, {CALL}"), &format!("span: 2, tool_call: a, {CALL}")] => ""; "an idempotent tool may be called again")]
#[test_case("delegation-acyclic", &["event: delegate, from: a, to: b, depth: 1, via: create", "event: delegate, from: b, to: a, depth: 2, via: next"] => "fail INVARIANT_DELEGATION_ACYCLIC"; "a circle")]
#[test_case("delegation-acyclic", &["event: delegate, from: a, to: b, depth: 1, via: tool", "event: delegate, from: a, to: b, depth: 1, via: tool"] => ""; "the same agent twice is no circle")]
#[test_case("tool-results-in-call-order", &["event: request, span: 1, boundary: llm.main, method: chat, body: { messages: [{ role: assistant, tool_calls: [{ id: a }, { id: b }] }, { role: tool, tool_call_id: b }, { role: tool, tool_call_id: a }] }"] => "fail INVARIANT_TOOL_RESULTS_IN_CALL_ORDER"; "results out of order")]
#[test_case("tool-results-in-call-order", &["event: request, span: 1, boundary: llm.main, method: chat, body: { messages: [{ role: assistant, tool_calls: [{ id: a }, { id: b }] }, { role: tool, tool_call_id: a }] }"] => "fail INVARIANT_TOOL_RESULTS_IN_CALL_ORDER"; "a result is missing")]
fn a_law_is_broken_or_not(law: &str, events: &[&str]) -> String {
    verdict(&emits(events), &format!("invariant: {law}")).1.join(", ")
}
