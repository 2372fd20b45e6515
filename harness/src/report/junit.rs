//! `JUnit` XML, one test case per scenario case.
//!
//! Invariant: suites are scenario files in suite order, cases keep theirs; properties are in a fixed order. Deliberately
//! no timestamps and no random report id, so that two runs differ in times only.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::failure::render_failure;
use crate::run::{CaseResult, SuiteResult, Verdict};

pub(super) fn render(suite: &SuiteResult) -> String {
    let mut report = Report::new("greenroom");
    report.set_time(suite.wall);
    let mut suites: Vec<TestSuite> = Vec::new();
    for case in &suite.cases {
        let index = suites.iter().position(|known| known.name.as_str() == case.file).unwrap_or_else(|| {
            suites.push(TestSuite::new(&case.file));
            suites.len() - 1
        });
        suites[index].add_test_case(test_case(case));
    }
    for mut one in suites {
        let time = one.test_cases.iter().filter_map(|case| case.time).sum();
        one.set_time(time);
        report.add_test_suite(one);
    }
    report.to_string().unwrap_or_else(|error| format!("<!-- {error} -->\n"))
}

fn test_case(case: &CaseResult) -> TestCase {
    let mut made = TestCase::new(&case.id, status(case));
    made.set_classname(&case.file);
    made.set_time(case.wall);
    made.add_property(("seed", case.seed.to_string().as_str()));
    made.add_property(("verdict", case.verdict.as_str()));
    made.add_property(("events", case.events.to_string().as_str()));
    made.add_property(("virtual_ns", case.virtual_ns.to_string().as_str()));
    made.add_property(("trace_sha256", case.trace_sha256.as_str()));
    made
}

fn status(case: &CaseResult) -> TestCaseStatus {
    match case.verdict {
        Verdict::Pass => TestCaseStatus::success(),
        Verdict::KnownFailing => {
            let mut status = TestCaseStatus::skipped();
            status.set_message(format!("known failing: {}", case.known_failing.as_deref().unwrap_or_default()));
            status
        }
        verdict => {
            let kind = if verdict == Verdict::Error { NonSuccessKind::Error } else { NonSuccessKind::Failure };
            let mut status = TestCaseStatus::non_success(kind);
            if let Some(first) = case.failures.first() {
                status.set_type(&first.code);
                status.set_message(format!("{}: {}", first.at, first.message.lines().next().unwrap_or_default()));
            }
            let texts: Vec<_> = case.failures.iter().map(|failure| render_failure(case, failure)).collect();
            status.set_description(texts.join("\n"));
            status
        }
    }
}
