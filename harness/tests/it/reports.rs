//! Failure texts and the four reports.

use std::time::Duration;

use greenroom_harness::report::{HumanStyle, ReporterKind, ReporterSpec, render, render_failure};
use greenroom_harness::run::{SuiteResult, run_suite};
use test_case::test_case;

use crate::support::{cases, factory, options};

const TURN: &str = r#"[
    { emit: { event: request, span: 1, boundary: llm.main, method: chat, body: { messages: [] } } },
    { emit: { event: response, span: 1, boundary: llm.main, method: chat, outcome: ok, body: { text: Checking } } },
    { sleep_ms: 120 },
    { emit: { event: request, span: 2, boundary: mcp.shop, method: tools/call, body: { params: { name: buy, arguments: { n: 1 } } } } },
    { emit: { event: response, span: 2, boundary: mcp.shop, method: tools/call, outcome: ok, body: {} } },
    { reply: { outcome: ok, text: "bought <1> & done" } }
  ]"#;

fn suite() -> SuiteResult {
    let drivers =
        "drivers: { llm.main: { deny: true }, mcp.shop: { deny: true } }\nrun:\n  - send: { assistant: desk, user: hi }\n";
    let case = |id: &str, rest: &str| cases(id, TURN, &format!("title: \"A <b>title</b>\"\n{drivers}{rest}")).remove(0);
    let all = [
        case("shop/passes", "expect:\n  - reply: { outcome: ok }\n"),
        case(
            "shop/fails",
            "expect:\n  - id: two-items\n    trace:\n      - { boundary: llm.main, phase: request }\n      - { boundary: mcp.shop, method: tools/call, match: { params: { arguments: { n: 2 } } } }\n  - never: { boundary: mcp.shpo }\n  - reply: { text: sold }\n",
        ),
        case("shop/known", "known_failing: { reason: slow, issue: \"#7\" }\nexpect:\n  - reply: { text: sold }\n"),
    ];
    let mut suite = run_suite(&all, &factory(), &options(), 2, &|_| {});
    suite.wall = Duration::from_millis(20);
    for case in &mut suite.cases {
        case.wall = Duration::from_millis(5);
    }
    suite
}

#[test]
fn a_failure_says_what_where_and_how_to_run_it_again() {
    let suite = suite();
    let case = &suite.cases[1];
    let texts: Vec<String> = case.failures.iter().map(|failure| render_failure(case, failure)).collect();
    assert!(texts.iter().all(|text| text.lines().count() <= 25));
    insta::assert_snapshot!(texts.join("\n"));
}

#[test_case(ReporterKind::Human; "human")]
#[test_case(ReporterKind::Json; "json")]
#[test_case(ReporterKind::Junit; "junit")]
#[test_case(ReporterKind::Tap; "tap")]
fn reports(kind: ReporterKind) {
    let text = render(kind, &suite(), HumanStyle::default());
    insta::assert_snapshot!(format!("report_{kind:?}").to_lowercase(), text);
    assert_eq!(text, render(kind, &suite(), HumanStyle::default()));
}

#[test]
fn junit_has_one_case_per_scenario_and_escapes_what_it_must() {
    let text = render(ReporterKind::Junit, &suite(), HumanStyle::default());
    let report = quick_junit::Report::deserialize_from_str(&text).unwrap();
    let names: Vec<_> = report.test_suites.iter().flat_map(|suite| &suite.test_cases).map(|case| case.name.as_str()).collect();
    assert_eq!(names, ["shop/passes", "shop/fails", "shop/known"]);
    assert_eq!((report.tests, report.failures, report.errors), (3, 1, 0));
}

#[test]
fn colours_come_only_when_asked_for() {
    assert!(!render(ReporterKind::Human, &suite(), HumanStyle::default()).contains('\u{1b}'));
    assert!(render(ReporterKind::Human, &suite(), HumanStyle { colour: true, quiet: true }).contains("\u{1b}[31m"));
}

#[test]
fn an_empty_suite_and_a_failing_one_have_their_exit_codes() {
    assert_eq!(SuiteResult::default().exit_code(), 4);
    assert_eq!(suite().exit_code(), 1);
}

#[test_case("junit=r.xml" => Some((ReporterKind::Junit, Some("r.xml".into()))))]
#[test_case("tap=-" => Some((ReporterKind::Tap, None)))]
#[test_case("human" => Some((ReporterKind::Human, None)))]
#[test_case("html=x" => None)]
fn reporters_are_named(text: &str) -> Option<(ReporterKind, Option<std::path::PathBuf>)> {
    text.parse::<ReporterSpec>().ok().map(|spec| (spec.kind, spec.target))
}
