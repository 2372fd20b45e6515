//! Running a scenario text on the fake host.

use std::path::Path;
use std::sync::Arc;

use greenroom_harness::host::HostFactory;
use greenroom_harness::load::{ScenarioCase, load_scenario};
use greenroom_harness::run::{CaseResult, RunOptions, run_case};
use greenroom_mocks::isolate::MockIsolate;

use crate::fake_host::FakeFactory;

pub(crate) fn options() -> RunOptions {
    RunOptions::new(Arc::new(MockIsolate::new(&[])))
}

pub(crate) fn factory() -> Arc<dyn HostFactory> {
    Arc::new(FakeFactory::default())
}

/// The cases of a scenario without its first lines: format, id and host are put before it.
pub(crate) fn cases(id: &str, turn: &str, rest: &str) -> Vec<Arc<ScenarioCase>> {
    let text = format!("scenario: 1\nid: {id}\nhost:\n  inline:\n    turn: {turn}\n{rest}");
    load(Path::new("suite/fake.yaml"), &text)
}

pub(crate) fn load(path: &Path, text: &str) -> Vec<Arc<ScenarioCase>> {
    match load_scenario(path, text) {
        Ok(cases) => cases.into_iter().map(Arc::new).collect(),
        Err(error) => panic!("{}", error.render(false)),
    }
}

/// One turn of the fake host, then the given expectations.
pub(crate) fn run(turn: &str, rest: &str) -> CaseResult {
    let run = if rest.contains("run:") { "" } else { "run:\n  - send: { assistant: desk, user: hi }\n" };
    let cases = cases("fake/case", turn, &format!("{run}{rest}"));
    run_case(&cases[0], &factory(), &options())
}

/// `VERDICT CODE` of each failure.
pub(crate) fn codes(result: &CaseResult) -> Vec<String> {
    result.failures.iter().map(|failure| format!("{} {}", failure.verdict, failure.code)).collect()
}
