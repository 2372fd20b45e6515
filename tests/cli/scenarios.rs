//! `test`: what a scenario that is wrong, fails or misses says and returns.
//!
//! Invariant: each exit code has a case. Deliberately small scenarios of its own, so that shipped ones may change.

use serde_json::Value;

use crate::support::{at, folder, greenroom, root, stderr, stdout};

const NOON: &str = "\
scenario: 1
id: noon
title: A model tells the time
host:
  assistants:
    guide: { connector: main }
drivers:
  llm.main:
    script:
      - { id: tell, reply: { text: It is noon. } }
run:
  - send: { assistant: guide, user: What time is it? }
expect:
  - reply: { text: It is noon. }
";

#[test]
fn a_misspelt_key_is_shown_with_its_place_and_the_nearest_key() {
    let files = folder(&[("noon.yaml", &NOON.replace("\nexpect:", "\nexpext:"))]);
    let refused = greenroom(["test", &at(&files, "noon.yaml")]).code(2);
    let said = format!("{}{}", stdout(&refused), stderr(&refused));
    assert!(said.lines().count() <= 12, "{said}");
    for part in ["noon.yaml:13:1", "13 | expext:", "^^^^^^", "did you mean `expect`?"] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
}

#[test]
fn an_invalid_file_keeps_every_other_from_running() {
    let files = folder(&[("a.yaml", NOON), ("b.yaml", "scenario: 1\nid: [")]);
    let refused = greenroom(["test", &at(&files, ""), "--reporter", "tap"]).code(2);
    assert_eq!(stdout(&refused), "");
    assert!(stderr(&refused).contains("b.yaml:2:"), "{}", stderr(&refused));
}

#[test]
fn a_scenario_that_passes() {
    let files = folder(&[("noon.yaml", NOON)]);
    let passed = greenroom(["test", &at(&files, "noon.yaml")]).success();
    assert!(stdout(&passed).contains("1 passed of 1 scenario"), "{}", stdout(&passed));
}

#[test]
fn nothing_selected() {
    let none = greenroom(["test", "scenarios", "-E", "id(no/such)"]).code(4);
    assert!(stderr(&none).contains("no scenarios that fit id(no/such) in scenarios"), "{}", stderr(&none));
}

#[test]
fn a_failing_expectation_says_what_was_found_and_how_to_run_it_again() {
    let files = folder(&[("noon.yaml", &NOON.replace("- reply: { text: It is noon. }", "- reply: { text: It is midnight. }"))]);
    let file = at(&files, "noon.yaml");
    let failed = greenroom(["test", &file]).code(1);
    let said = stdout(&failed);
    for part in ["EXPECT_REPLY", "noon.yaml:14", "It is midnight.", "It is noon."] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
    let line = format!("rerun greenroom test {file} -E 'id(noon)' --seed 0");
    assert!(said.contains(&line), "{line:?} in {said}");
    // The line for programs says the same.
    let last = stderr(&failed);
    let machine: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
    assert_eq!(machine["code"], "EXPECT_REPLY");
    assert_eq!(format!("rerun {}", machine["rerun"].as_str().unwrap()), line);
    let again = greenroom(["test", &file, "-E", "id(noon)", "--seed", "0"]).code(1);
    assert!(stdout(&again).contains("EXPECT_REPLY"));
}

#[test]
fn a_known_failure_fails_nothing_until_it_passes() {
    let known = NOON.replace("\nhost:", "\nknown_failing: { reason: the clock is slow, issue: \"7\" }\nhost:");
    let failing = known.replace("- reply: { text: It is noon. }", "- reply: { text: It is midnight. }");
    let files = folder(&[("failing.yaml", &failing), ("passing.yaml", &known)]);
    let tolerated = greenroom(["test", &at(&files, "failing.yaml")]).success();
    let said = stdout(&tolerated);
    assert!(said.contains("KNOWN-FAILING") && said.contains("the clock is slow"), "{said}");
    let surprising = greenroom(["test", &at(&files, "passing.yaml")]).code(1);
    assert!(stdout(&surprising).contains("noon"), "{}", stdout(&surprising));
}

#[test]
fn a_replay_that_misses_names_the_nearest_recorded_request() {
    let shipped = std::fs::read_to_string(root().join("scenarios/real/servers.yaml")).unwrap();
    let cassette = std::fs::read_to_string(root().join("scenarios/real/servers.cas")).unwrap();
    let asking_else = shipped.replace("path: note.txt", "path: other.txt");
    let files = folder(&[("servers.yaml", &asking_else), ("servers.cas", &cassette)]);
    let missed = greenroom(["test", &at(&files, "servers.yaml")]).code(3);
    let said = stdout(&missed);
    for part in ["REPLAY_MISS", "mcp.files tools/call", "/params/arguments/path", "\"note.txt\"", "\"other.txt\""] {
        assert!(said.contains(part), "{part:?} in {said}");
    }
}
