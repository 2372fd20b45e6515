//! Steps, limits, seeds and threads of the runner.

use std::sync::Arc;

use greenroom_harness::host::HostFactory;
use greenroom_harness::run::{RunOptions, Verdict, run_case, run_suite};
use test_case::test_case;

use crate::fake_host::FakeFactory;
use crate::support::{cases, codes, factory, options, run};

const PASSES: &str = "expect:\n  - reply: { outcome: ok }\n";

#[test]
fn steps_happen_in_order_on_virtual_time() {
    let turn = "[{ sleep_ms: 30000 }, { emit: { event: output, body: late } }, { reply: { outcome: ok, text: done } }]";
    let steps = "
run:
  - as: slow
    send: { assistant: desk, user: hi, wait: false }
  - advance: 29999ms
  - expect: { count: { event: { boundary: host, phase: output }, is: 0 } }
  - advance: 1ms
  - expect: { count: { event: { boundary: host, phase: output }, is: 1 } }
  - await: { boundary: host, phase: stimulus_end }
    within: 1s
expect:
  - reply: { of: slow, text: done }
  - budget: { virtual: { is: 30s } }
";
    let result = run(turn, steps);
    assert_eq!((result.verdict, codes(&result)), (Verdict::Pass, vec![]));
}

#[test]
fn a_cancelled_turn_ends_as_cancelled() {
    let steps = "
run:
  - as: one
    send: { assistant: desk, user: hi, wait: false }
  - cancel: one
expect:
  - reply: { of: one, outcome: cancelled, error: { code: CANCELLED } }
";
    assert_eq!(codes(&run("[{ hang: true }]", steps)), Vec::<String>::new());
}

#[test_case("[{ hang: true }]", "limits: { virtual: 5s }" => "error LIMIT_VIRTUAL"; "a turn that never ends")]
#[test_case("[{ spin: true }]", "limits: { wall: 50ms }" => "error LIMIT_WALL"; "a host that never comes back")]
#[test_case("[{ flood: 1000 }]", "limits: { events: 100 }" => "error LIMIT_EVENTS"; "a host that goes round in circles")]
fn limits_end_a_case(turn: &str, limits: &str) -> String {
    codes(&run(turn, &format!("{limits}\nrun:\n  - send: {{ assistant: desk, user: hi }}\n{PASSES}"))).join(", ")
}

#[test]
fn a_step_that_waits_in_vain_fails_at_its_line() {
    let steps = "run:\n  - await: { boundary: host, phase: output }\n    within: 2s\nexpect:\n  - invariant: spans-closed\n";
    let result = run("[]", steps);
    assert_eq!(codes(&result), ["fail AWAIT_TIMEOUT"]);
    assert_eq!(result.failures[0].at.to_string(), "suite/fake.yaml:7");
}

#[test]
fn a_host_that_does_not_start_is_an_error() {
    let text = "scenario: 1\nid: fake/start\nhost: { inline: { start_error: no such model } }\nrun:\n  - send: { assistant: a, user: b }\nexpect:\n  - reply: { outcome: ok }\n";
    let cases = crate::support::load(std::path::Path::new("f.yaml"), text);
    let result = run_case(&cases[0], &factory(), &options());
    assert_eq!(codes(&result), ["error HOST_START"]);
    assert!(result.failures[0].message.contains("no such model (FAKE_START)"));
}

#[test]
fn what_a_host_leaves_behind_is_seen() {
    let result = run("[{ leak_timer_ms: 99000 }, { reply: { outcome: ok } }]", "expect:\n  - invariant: nothing-left-over\n");
    assert_eq!(codes(&result), ["fail INVARIANT_NOTHING_LEFT_OVER"]);
    assert!(result.failures[0].message.contains("1 timers"), "{}", result.failures[0].message);
}

#[test]
fn an_unused_scripted_turn_makes_a_scenario_vacuous() {
    let drivers = "drivers: { llm.main: { script: [{ id: never-asked, reply: { text: x } }] } }\n";
    let result = run("[]", &format!("{drivers}{PASSES}"));
    assert_eq!((result.verdict, codes(&result)), (Verdict::Vacuous, vec!["vacuous SCRIPT_UNUSED".to_owned()]));
    assert!(result.failures[0].message.contains("llm.main never-asked"));
}

#[test_case("[]", "expect:\n  - reply: { text: x }\n" => Verdict::KnownFailing; "fails as known")]
#[test_case("[]", "expect:\n  - reply: { outcome: ok }\n" => Verdict::UnexpectedPass; "passes all the same")]
fn known_failures(turn: &str, expect: &str) -> Verdict {
    run(turn, &format!("known_failing: {{ reason: not yet, issue: \"#7\" }}\n{expect}")).verdict
}

/// A case that never comes back is masked like one that ends.
#[test]
fn secrets_leave_no_run_that_is_given_up() {
    let turn = "[{ secret: hunter22 }, { emit: { event: output, body: { key: \"a hunter22 b\" } } }, { spin: true }]";
    let result = run(turn, &format!("limits: {{ wall: 50ms }}\nrun:\n  - send: {{ assistant: desk, user: hi }}\n{PASSES}"));
    assert_eq!(codes(&result), ["error LIMIT_WALL"]);
    assert!(!result.trace.contains("hunter22") && result.trace.contains("a «secret:llm.main/apiKey» b"), "{}", result.trace);
    let excerpt = format!("{:?}", result.failures[0].excerpt);
    assert!(!excerpt.contains("hunter22"), "{excerpt}");
}

/// A secret that is also a word of the trace's own cannot be masked in its place: the event is withheld.
#[test]
fn a_secret_in_a_closed_vocabulary_withholds_the_event() {
    let turn = "[{ secret: output }, { emit: { event: output, body: { key: output } } }, { reply: { outcome: ok, text: x } }]";
    let result = run(turn, &format!("run:\n  - send: {{ assistant: desk, user: hi }}\n{PASSES}"));
    assert!(!result.trace.contains("output"), "{}", result.trace);
    assert!(result.trace.contains("event_withheld"), "{}", result.trace);
}

#[test]
fn secrets_leave_no_run() {
    let turn = "[{ secret: hunter22 }, { emit: { event: output, body: { key: \"a hunter22 b\" } } }, { reply: { outcome: ok, text: hunter22 } }]";
    let result = run(turn, "expect:\n  - reply: { text: other }\n");
    assert_eq!(result.verdict, Verdict::Fail);
    assert!(!result.trace.contains("hunter22") && result.trace.contains("a «secret:llm.main/apiKey» b"), "{}", result.trace);
    assert!(!format!("{:?}", result.failures).contains("hunter22"));
}

fn many() -> Vec<Arc<greenroom_harness::load::ScenarioCase>> {
    let turn = "[{ random: true }, { sleep_ms: 5 }, { random: true }]";
    let rest = format!(
        "matrix: {{ n: [1, 2, 3, 4, 5, 6, 7, 8] }}\nrun:\n  - send: {{ assistant: desk, user: \"n ${{matrix.n}}\" }}\n{PASSES}"
    );
    cases("fake/many", turn, &rest)
}

#[test]
fn the_same_seed_gives_the_same_bytes_with_any_number_of_threads() {
    let traces = |jobs, seed| {
        let options = RunOptions { seed: Some(seed), ..options() };
        let suite = run_suite(&many(), &factory(), &options, jobs, &|_| {});
        assert_eq!(suite.exit_code(), 0);
        suite.cases.into_iter().map(|case| (case.id, case.trace)).collect::<Vec<_>>()
    };
    let one = traces(1, 7);
    assert_eq!(one.len(), 8);
    assert_eq!(one, traces(4, 7));
    assert_ne!(one, traces(1, 8));
}

#[test]
fn a_host_that_drifts_is_found_out() {
    let drifting: Arc<dyn HostFactory> = Arc::new(FakeFactory { drift: true, ..FakeFactory::default() });
    let options = RunOptions { check_determinism: true, ..options() };
    let result = run_case(&many()[0], &drifting, &options);
    assert_eq!((result.verdict, result.verdict.exit_code()), (Verdict::Nondeterministic, 7));
    assert_eq!(run_case(&many()[0], &factory(), &options).verdict, Verdict::Pass);
}

#[test]
fn progress_hears_of_every_case() {
    let heard = std::sync::atomic::AtomicUsize::new(0);
    run_suite(&many(), &factory(), &options(), 3, &|_| {
        heard.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
    });
    assert_eq!(heard.into_inner(), 8);
}
