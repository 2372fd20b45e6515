//! Hook-path coverage: cells, edges, and what cannot be reached.

use std::collections::{BTreeMap, BTreeSet};

use greenroom_boundary::trace::{EventKind, HookMode, HookPhase, HookVerdict, TraceEvent};
use greenroom_boundary::{Scope, SpanId};
use greenroom_harness::cover::{
    CellState, DeclaredHook, HookCoverage, HookDepth, HookFormName, HookOutcome, HookReport, render_html, render_text,
};
use proptest::prelude::*;
use test_case::test_case;

fn declared(id: &str, form: HookFormName) -> DeclaredHook {
    DeclaredHook {
        id: id.to_owned(),
        form,
        phase: HookPhase::Request,
        boundary: "mcp.shop".to_owned(),
        method: None,
        mode: HookMode::Enforce,
        depths: BTreeSet::from([HookDepth::Zero]),
        not_deeper: "nothing calls it deeper".to_owned(),
        cannot: BTreeMap::new(),
        after: Vec::new(),
        ends_silently: false,
    }
}

/// A mutator that runs first, and a validator behind it.
fn pair() -> Vec<DeclaredHook> {
    let mut fix = declared("fix", HookFormName::Mutate);
    fix.cannot.insert(HookOutcome::Rejected, "it has no word for refusing".to_owned());
    fix.cannot.insert(HookOutcome::Skipped, "nothing runs before it".to_owned());
    let mut judge = declared("judge", HookFormName::Validate);
    judge.cannot.insert(HookOutcome::Mutated, "a validator cannot mutate".to_owned());
    judge.after = vec![0];
    vec![fix, judge]
}

fn event(hook: &str, span: u64, verdict: HookVerdict, code: Option<&str>, depth: u32) -> TraceEvent {
    let kind = EventKind::Hook {
        hook: hook.to_owned(),
        of: SpanId(span),
        boundary: "mcp.shop".to_owned(),
        method: "tools/call".to_owned(),
        phase: HookPhase::Request,
        mode: HookMode::Enforce,
        verdict,
        patch: None,
        reason: None,
        code: code.map(str::to_owned),
        depth,
    };
    TraceEvent { seq: 0, vt: 0, scope: Scope::new("t1"), agent: None, kind }
}

fn report(events: &[TraceEvent]) -> HookReport {
    let mut coverage = HookCoverage::default();
    coverage.add("s/one", &pair(), events);
    coverage.report()
}

fn state(report: &HookReport, kind: &str, depth: HookDepth, outcome: HookOutcome) -> CellState {
    let row = report.kinds.iter().find(|row| row.name.starts_with(kind)).unwrap();
    row.cells.iter().find(|cell| cell.depth == depth && cell.outcome == outcome).unwrap().state
}

#[test_case(HookVerdict::Unchanged, None, HookOutcome::Unchanged)]
#[test_case(HookVerdict::Mutated, None, HookOutcome::Mutated)]
#[test_case(HookVerdict::Rejected, Some("HOOK_REJECTED"), HookOutcome::Rejected)]
#[test_case(HookVerdict::Skipped, None, HookOutcome::Skipped)]
#[test_case(HookVerdict::Error, Some("HOOK_THREW"), HookOutcome::Threw)]
#[test_case(HookVerdict::Error, Some("SERVER_DISABLED"), HookOutcome::Threw; "any other failure is a throw")]
#[test_case(HookVerdict::Error, None, HookOutcome::Threw; "a failure without code")]
#[test_case(HookVerdict::Error, Some("HOOK_MALFORMED"), HookOutcome::Malformed)]
#[test_case(HookVerdict::Error, Some("HOOK_NOT_JSON"), HookOutcome::Malformed; "a result that is no JSON")]
#[test_case(HookVerdict::Error, Some("HOOK_HEAP_LIMIT"), HookOutcome::Heap)]
#[test_case(HookVerdict::Timeout, Some("HOOK_TIMEOUT"), HookOutcome::Timeout)]
#[test_case(HookVerdict::Error, Some("HOOK_CPU_LIMIT"), HookOutcome::Timeout; "a limit filed as an error")]
#[test_case(HookVerdict::Timeout, None, HookOutcome::Timeout; "a timeout without code")]
fn the_code_tells_failures_apart(verdict: HookVerdict, code: Option<&str>, expected: HookOutcome) {
    assert_eq!(HookOutcome::of(verdict, code), expected);
}

#[test]
fn a_cell_is_covered_uncovered_or_unreachable_with_its_reason() {
    let report = report(&[event("fix", 1, HookVerdict::Mutated, None, 0), event("judge", 1, HookVerdict::Unchanged, None, 0)]);
    let at = |kind, outcome| state(&report, kind, HookDepth::Zero, outcome);
    assert_eq!(at("mutate", HookOutcome::Mutated), CellState::Covered);
    assert_eq!(at("mutate", HookOutcome::Threw), CellState::Uncovered);
    assert_eq!(at("mutate", HookOutcome::Rejected), CellState::Unreachable);
    assert_eq!(at("validate", HookOutcome::Skipped), CellState::Uncovered);
    assert_eq!(state(&report, "validate", HookDepth::One, HookOutcome::Unchanged), CellState::Unreachable);
    let reasons: Vec<_> =
        report.unreachable.iter().map(|row| format!("{}: {} ({})", row.kind, row.cells, row.reason)).collect();
    insta::assert_snapshot!(reasons.join("\n"), @r"
    mutate request mcp enforce: rejected (it has no word for refusing)
    mutate request mcp enforce: skipped (nothing runs before it)
    mutate request mcp enforce: depth 1 (nothing calls it deeper)
    mutate request mcp enforce: depth 2+ (nothing calls it deeper)
    validate request mcp enforce: mutated (a validator cannot mutate)
    validate request mcp enforce: depth 1 (nothing calls it deeper)
    validate request mcp enforce: depth 2+ (nothing calls it deeper)
    ");
    assert_eq!((report.totals.cells.covered, report.totals.cells.reachable), (2, 13));
    assert!(!report.is_full());
}

#[test]
fn what_one_hook_of_a_kind_can_do_the_kind_can_do() {
    let mut hooks = pair();
    let mut second = declared("fix-2", HookFormName::Mutate);
    second.cannot.insert(HookOutcome::Rejected, "it has no word for refusing".to_owned());
    hooks.push(second);
    let mut coverage = HookCoverage::default();
    coverage.add("s/one", &hooks, &[]);
    assert_eq!(state(&coverage.report(), "mutate", HookDepth::Zero, HookOutcome::Skipped), CellState::Uncovered);
}

#[test]
fn an_edge_counts_whether_the_later_hook_ran_or_was_skipped() {
    let report = report(&[
        event("fix", 1, HookVerdict::Error, Some("HOOK_THREW"), 0),
        event("judge", 1, HookVerdict::Skipped, None, 0),
        event("fix", 2, HookVerdict::Unchanged, None, 0),
        event("judge", 2, HookVerdict::Rejected, None, 0),
    ]);
    let seen: Vec<_> = report.edges.iter().filter(|edge| edge.state == CellState::Covered).collect();
    let seen: Vec<_> = seen.iter().map(|edge| (edge.outcome, edge.ran, edge.skipped)).collect();
    assert_eq!(seen, [(HookOutcome::Unchanged, 1, 0), (HookOutcome::Threw, 0, 1)]);
    assert_eq!((report.totals.edges.covered, report.totals.edges.reachable), (2, 6));
}

#[test]
fn a_turn_that_asks_its_hooks_again_begins_a_new_chain() {
    let report = report(&[
        event("fix", 1, HookVerdict::Mutated, None, 0),
        event("fix", 1, HookVerdict::Unchanged, None, 0),
        event("judge", 1, HookVerdict::Unchanged, None, 0),
    ]);
    let edges: Vec<_> = report.edges.iter().filter(|edge| edge.ran > 0).map(|edge| edge.outcome).collect();
    assert_eq!(edges, [HookOutcome::Unchanged]);
}

#[test]
fn what_the_model_calls_impossible_is_shown_and_counts_for_nothing() {
    let report =
        report(&[event("judge", 1, HookVerdict::Mutated, None, 1), event("stranger", 1, HookVerdict::Unchanged, None, 0)]);
    assert_eq!(state(&report, "validate", HookDepth::One, HookOutcome::Mutated), CellState::Unexpected);
    assert_eq!(report.totals.cells.covered, 0);
    assert_eq!(report.undeclared, BTreeMap::from([("s/one: stranger request mcp.shop".to_owned(), 1)]));
    let text = render_text(&report);
    assert!(text.contains("mutated at depth 1") && text.contains("stranger request mcp.shop (1)"), "{text}");
}

#[test]
fn a_scenario_is_credited_with_what_only_it_shows() {
    let mut coverage = HookCoverage::default();
    let unchanged = event("fix", 1, HookVerdict::Unchanged, None, 0);
    coverage.add("s/both", &pair(), &[unchanged.clone(), event("judge", 1, HookVerdict::Rejected, None, 0)]);
    coverage.add("s/half", &pair(), &[unchanged]);
    let report = coverage.report();
    let rows: Vec<_> = report.scenarios.iter().map(|row| (row.id.as_str(), row.cells, row.unique)).collect();
    assert_eq!(rows, [("s/both", 2, 1), ("s/half", 1, 0)]);
    assert!(render_text(&report).contains("none of their own: s/half"));
}

#[test]
fn the_page_is_whole_and_escapes_what_scenarios_say() {
    let mut hooks = pair();
    hooks[0].id = "<script>alert(1)</script>".to_owned();
    let mut coverage = HookCoverage::default();
    coverage.add("s/<b>", &hooks, &[]);
    let page = render_html(&coverage.report());
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && !page.contains("<script"), "{page}");
    assert!(!page.contains("http") && page.contains("prefers-color-scheme: dark") && page.ends_with("</html>\n"), "{page}");
}

fn any_event() -> impl Strategy<Value = TraceEvent> {
    use HookVerdict::{Error, Mutated, Rejected, Skipped, Timeout, Unchanged};
    let verdict = prop::sample::select(vec![Unchanged, Mutated, Rejected, Error, Timeout, Skipped]);
    let code = prop::sample::select(vec![None, Some("HOOK_MALFORMED"), Some("HOOK_HEAP_LIMIT"), Some("HOOK_THREW")]);
    (prop::sample::select(vec!["fix", "judge", "other"]), 0..4_u64, verdict, code, 0..4_u32)
        .prop_map(|(hook, span, verdict, code, depth)| event(hook, span, verdict, code, depth))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_order_of_scenarios_changes_nothing(runs in prop::collection::vec(prop::collection::vec(any_event(), 0..12), 0..5)) {
        let tally = |order: &[usize]| {
            let mut coverage = HookCoverage::default();
            for place in order {
                coverage.add(&format!("s/{place}"), &pair(), &runs[*place]);
            }
            coverage.report()
        };
        let forward: Vec<usize> = (0..runs.len()).collect();
        let backward: Vec<usize> = forward.iter().rev().copied().collect();
        prop_assert_eq!(tally(&forward), tally(&backward));
    }

    #[test]
    fn the_sums_are_those_of_the_rows(events in prop::collection::vec(any_event(), 0..40)) {
        let report = report(&events);
        let count = |state| report.cells(state).count();
        prop_assert_eq!(report.totals.cells.covered, count(CellState::Covered));
        prop_assert_eq!(report.totals.cells.reachable, count(CellState::Covered) + count(CellState::Uncovered));
        prop_assert_eq!(report.is_full(), count(CellState::Uncovered) == 0);
    }
}
