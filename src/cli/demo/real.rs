//! Real servers: recorded afresh, then replayed with no process and no network, traces compared byte by byte.
//!
//! Invariant: the fresh cassette lies in a folder of its own; the shipped one is not touched. Deliberately the same
//! scenario for both runs.

use std::path::Path;
use std::sync::Arc;

use greenroom_harness::host::HostFactory;
use greenroom_harness::load::ScenarioCase;
use greenroom_harness::model::{CliDriver, LlmDriver, McpDriver, Scenario};
use greenroom_harness::run::RunOptions;

use super::{Row, one};

/// A live and a replay row for each case that records.
pub(super) fn rows(cases: &[Arc<ScenarioCase>], factory: &Arc<dyn HostFactory>, options: &RunOptions) -> Vec<Row> {
    cases.iter().filter(|case| records(&case.scenario)).flat_map(|case| pair(case, factory, options)).collect()
}

fn records(scenario: &Scenario) -> bool {
    let drivers = &scenario.drivers;
    drivers.mcp.values().any(|driver| matches!(driver, McpDriver::Record(_)))
        || drivers.llm.values().any(|driver| matches!(driver, LlmDriver::Record(_)))
        || drivers.cli.values().any(|driver| matches!(driver, CliDriver::Record(_)))
}

/// The case with its cassettes in `folder`.
fn moved(case: &ScenarioCase, folder: &Path) -> ScenarioCase {
    let mut case = case.clone();
    let place = |cassette: &mut String| {
        let name = Path::new(cassette.as_str()).file_name().map_or_else(|| "demo.cas".into(), |name| name.to_owned());
        *cassette = folder.join(name).display().to_string();
    };
    for driver in case.scenario.drivers.mcp.values_mut() {
        if let McpDriver::Record(record) = driver {
            place(&mut record.cassette);
        }
    }
    for driver in case.scenario.drivers.llm.values_mut() {
        if let LlmDriver::Record(record) = driver {
            place(&mut record.cassette);
        }
    }
    for driver in case.scenario.drivers.cli.values_mut() {
        if let CliDriver::Record(record) = driver {
            place(&mut record.cassette);
        }
    }
    case
}

fn pair(case: &Arc<ScenarioCase>, factory: &Arc<dyn HostFactory>, options: &RunOptions) -> Vec<Row> {
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(error) => return vec![failed(case, "live", &format!("no temporary folder: {error}"))],
    };
    let case = Arc::new(moved(case, folder.path()));
    let live = one(&case, factory, &RunOptions { record: true, ..options.clone() });
    let mut rows = vec![Row {
        part: format!("{} (live)", live.id),
        what: "the real servers as child processes, recorded".to_owned(),
        ..Row::of(&live)
    }];
    if !live.verdict.is_ok() {
        rows.push(failed(&case, "replay", "nothing was recorded"));
        return rows;
    }
    let replay = one(&case, factory, &RunOptions { record: false, live: None, ..options.clone() });
    let differing = differing_lines(&live.trace, &replay.trace);
    let row = Row::of(&replay);
    rows.push(Row {
        part: format!("{} (replay)", replay.id),
        what: "the same session with no process and no network".to_owned(),
        good: row.good && differing == 0,
        detail: format!("{}; {differing} differences", row.detail),
        wall: row.wall,
    });
    rows
}

/// Lines in which two traces differ.
fn differing_lines(left: &str, right: &str) -> usize {
    let (left, right): (Vec<&str>, Vec<&str>) = (left.lines().collect(), right.lines().collect());
    let paired = left.iter().zip(&right).filter(|(left, right)| left != right).count();
    paired + left.len().abs_diff(right.len())
}

fn failed(case: &ScenarioCase, part: &str, detail: &str) -> Row {
    Row {
        part: format!("{} ({part})", case.id),
        what: "real servers".to_owned(),
        good: false,
        detail: detail.to_owned(),
        wall: std::time::Duration::ZERO,
    }
}
