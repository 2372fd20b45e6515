//! Scripted commands: the conformance suite's simulated arm, and what scripts can say.

use std::sync::Arc;

use greenroom_boundary::cli::CliExit;
use greenroom_boundary::clock::UnixNanos;
use greenroom_boundary::conformance::cli::{all, collect, command, commands};
use greenroom_boundary::{CancellationToken, CliRunner, Clock};
use greenroom_mocks::VirtualClock;
use greenroom_mocks::cli::{CliScript, DenyCli, ScriptedCli};
use serde_json::{Value, json};
use test_case::test_case;

fn rig(script: Value) -> (VirtualClock, ScriptedCli) {
    let clock = VirtualClock::new(UnixNanos(0), 0);
    let script: CliScript = serde_json::from_value(script).unwrap();
    (clock.clone(), ScriptedCli::new(script, Arc::new(clock)))
}

#[test]
fn conforms() {
    let (clock, runner) = rig(json!([
        { "when": { "argv": commands::BOTH_OUTPUTS }, "events": [{ "stdout": "out" }, { "stderr": "err" }], "exit": 3 },
        { "when": { "argv": commands::COPY_STDIN, "stdin": "hello" }, "events": [{ "stdout": "hello" }], "exit": 0 },
        { "when": { "argv": commands::SIGNAL }, "signal": 15 },
        { "when": { "argv": commands::ENDLESS }, "repeat": 2, "hang": true },
        { "when": { "argv": commands::CHATTY }, "events": [{ "stdout": "x".repeat(100_000) }], "exit": 0 },
        { "when": { "argv": commands::ABSENT }, "error": { "start": "not found" } },
    ]));
    clock.runtime().unwrap().block_on(all(&runner));
    assert_eq!(runner.unused(), Vec::<String>::new());
    assert_eq!(clock.pending_timers(), 0);
}

#[test]
fn events_come_at_their_time() {
    let events = json!([{ "after": "2s", "stdout": "a" }, { "after": "90s", "stdout": "b" }]);
    let (clock, runner) = rig(json!([{ "when": { "argv": ["job"] }, "events": events, "exit": 0 }]));
    let told = clock
        .runtime()
        .unwrap()
        .block_on(async { collect(runner.run(command(&["job"]), &CancellationToken::new()).await.unwrap()).await });
    assert_eq!((told.stdout.as_str(), told.end, clock.now().0), ("ab", Ok(CliExit::Code(0)), 90_000_000_000));
}

#[test]
fn an_unscripted_command_says_what_would_have_matched() {
    let (clock, runner) = rig(json!([{ "when": { "argv": ["git", "status"] }, "exit": 0 }]));
    let argv = ["git", "push"];
    let refused = clock.runtime().unwrap().block_on(runner.run(command(&argv), &CancellationToken::new())).err().unwrap();
    assert_eq!(refused.code(), "CLI_DENIED");
    insta::assert_snapshot!(refused.to_string(), @r#"unscripted command ["git","push"]; runs[0]: argv: /1: expected "status", found "push""#);
    insta::assert_snapshot!(runner.unused().join("\n"), @r#"runs[0] (argv ["git","status"]) came 0 of 1 times"#);
}

#[test]
fn a_denied_command_says_how_to_allow_it() {
    let runtime = VirtualClock::new(UnixNanos(0), 0).runtime().unwrap();
    let refused = runtime.block_on(DenyCli.run(command(&["git"]), &CancellationToken::new())).err().unwrap();
    assert_eq!(refused.to_string(), "running git is denied here: list `cli.NAME` under `drivers`");
}

#[test_case(json!([{ "when": { "argv": ["a"] } }]), "exactly one of `exit`"; "no end")]
#[test_case(json!([{ "when": { "argv": ["a"] }, "exit": 0, "signal": 9 }]), "exactly one of `exit`"; "two ends")]
#[test_case(json!([{ "when": { "argv": ["a"] }, "events": [{}], "exit": 0 }]), "exactly one of `stdout`"; "an empty event")]
#[test_case(json!([{ "when": { "arg": ["a"] }, "exit": 0 }]), "unknown field `arg`"; "a misspelt key")]
fn a_wrong_script_is_refused(value: Value, reason: &str) {
    let error = serde_json::from_value::<CliScript>(value).unwrap_err().to_string();
    assert!(error.contains(reason), "{error}");
}

#[test]
fn a_script_is_written_as_it_is_read() {
    let text = json!([
        { "when": { "argv": ["a"], "env": { "A": "b" } }, "events": [{ "after": "1s", "stdout": "x" }], "exit": 0 },
        { "when": { "argv": { "$contains": "b" } }, "repeat": 3, "error": { "start": "no" } },
        { "when": { "argv": ["c"] }, "hang": true },
    ]);
    let script: CliScript = serde_json::from_value(text.clone()).unwrap();
    assert_eq!(serde_json::to_value(script).unwrap(), text);
}
