//! `test --engine`: what differs between the engines is exactly what scenarios/engine-differences.yaml says.
//!
//! Invariant: a difference that vanishes fails like one that appears. Deliberately no look at why: the table says it.

use std::collections::BTreeMap;
use std::path::Path;

use greenroom_harness::load::typed;
use greenroom_harness::model::glob;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use test_case::test_case;

use crate::support::{at, folder, greenroom, root};

const TABLE: &str = "scenarios/engine-differences.yaml";

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Difference {
    because: String,
}

type Table = BTreeMap<String, BTreeMap<String, Difference>>;

/// Each case with its verdict and its trace.
fn run(engine: &str) -> Vec<(String, bool, String)> {
    let files = folder(&[]);
    let (report, traces) = (at(&files, "report.json"), at(&files, "traces"));
    let reporter = format!("json={report}");
    greenroom(["test", "scenarios/context", "--engine", engine, "--reporter", &reporter, "--trace-dir", &traces]);
    let report = std::fs::read_to_string(&report).unwrap();
    let lines = report.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let case = |line: Value| {
        let id = line["id"].as_str()?.to_owned();
        let plain = greenroom_harness::snapshot::plain(&id);
        let trace = std::fs::read_to_string(Path::new(&traces).join(format!("{plain}.jsonl"))).unwrap();
        Some((id, line["verdict"] == "pass", trace))
    };
    lines.filter_map(case).collect()
}

#[test_case("quickjs")]
#[test_case("mock")]
fn an_engine_differs_as_the_table_says(engine: &str) {
    let text = std::fs::read_to_string(root().join(TABLE)).unwrap();
    let mut table: Table = typed(Path::new(TABLE), &text).unwrap();
    let differences = table.remove(engine).unwrap();
    let cases = run(engine);
    assert!(cases.len() >= 80, "only {} cases", cases.len());
    let mut wrong = Vec::new();
    for (id, passes, trace) in &cases {
        let listed =
            differences.get(id).or_else(|| differences.iter().find(|(pattern, _)| glob(pattern, id)).map(|(_, any)| any));
        match (listed, passes) {
            (None, false) => wrong.push(format!("{id} is no pass on {engine}; mend it, or list it in {TABLE}")),
            (Some(_), true) => wrong.push(format!("{id} passes on {engine}; take it out of {TABLE}")),
            (Some(difference), false) if !trace.contains(&difference.because) => {
                wrong.push(format!("{id} on {engine} has no {} in its trace, as {TABLE} says", difference.because));
            }
            _ => {}
        }
    }
    for pattern in differences.keys() {
        if !cases.iter().any(|(id, ..)| glob(pattern, id)) {
            wrong.push(format!("{pattern} in {TABLE} names no case"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
