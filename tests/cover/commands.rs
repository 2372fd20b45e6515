//! The commands themselves.

use assert_cmd::Command;
use serde_json::{Value, json};
use test_case::test_case;

const CONFIG: &str = "tests/cover/config/greenroom.yaml";

pub(crate) fn greenroom(args: &[&str]) -> (i32, String) {
    let output = Command::cargo_bin("greenroom").unwrap().args(args).output().unwrap();
    (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
}

pub(crate) fn parsed(args: &[&str]) -> (i32, Value) {
    let (code, stdout) = greenroom(args);
    (code, serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}")))
}

#[test]
fn a_suite_with_gaps_is_told_of_them_and_fails_only_when_strict() {
    let one = "scenarios/host/config-hooks.yaml";
    let (code, report) = parsed(&["cover", "--hooks", one, "--json"]);
    assert_eq!(code, 0);
    assert_eq!((&report["undeclared"], &report["v"]), (&json!({}), &json!(1)));
    let totals = &report["totals"]["cells"];
    assert!(totals["covered"].as_u64() >= Some(2) && totals["covered"].as_u64() < totals["reachable"].as_u64(), "{totals}");
    let (code, text) = greenroom(&["cover", "--hooks", one, "--strict"]);
    assert_eq!(code, 1);
    assert!(text.contains("envelope request mcp enforce: threw at depth 0"), "{text}");
}

#[test]
fn every_hook_event_of_a_suite_is_declared_and_was_thought_possible() {
    let (code, report) = parsed(&["cover", "--hooks", "scenarios/hooks", "-E", "!tag(coverage)", "--json"]);
    assert_eq!((code, &report["undeclared"]), (0, &json!({})));
    let cells = report["kinds"].as_array().unwrap().iter().flat_map(|kind| kind["cells"].as_array().unwrap());
    let wrong: Vec<&Value> = cells.filter(|cell| cell["state"] == "unexpected").collect();
    assert_eq!(wrong, [] as [&Value; 0]);
}

#[test]
fn the_heat_map_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hooks.html");
    let (code, _) = greenroom(&["cover", "--hooks", "scenarios/host/config-hooks.yaml", "--html", file.to_str().unwrap()]);
    let page = std::fs::read_to_string(file).unwrap();
    assert!(code == 0 && page.starts_with("<!doctype html>") && page.contains("policy/cap"), "{page}");
}

#[test_case("500", 0, &json!({"name": "order", "arguments": {"count": 10}}); "a change is shown")]
#[test_case("0", 1, &Value::Null; "a refusal is the exit code")]
fn a_dry_run_runs_own_hooks_and_names_the_others(count: &str, code: i32, params: &Value) {
    let sample = format!("{{\"count\":{count}}}");
    let (found, report) = parsed(&["hooks", "explain", CONFIG, "--call", "shop/buy", "--args", &sample, "--dry-run", "--json"]);
    assert_eq!(found, code, "{report}");
    assert_eq!(report["dry_run"]["not_run"], json!(["audit/log"]));
    assert_eq!(&report["dry_run"]["params"], params);
    let hooks: Vec<&Value> = report["dry_run"]["steps"].as_array().unwrap().iter().map(|step| &step["hook"]).collect();
    assert_eq!(hooks, ["rules/cap", "rules/log", "rules/judge"]);
}

#[test]
fn live_needs_a_dry_run() {
    assert_eq!(greenroom(&["hooks", "explain", CONFIG, "--call", "shop/buy", "--live"]).0, 2);
}
