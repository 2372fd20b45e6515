//! `test --watch`: what a person saves is run, and nothing else.
//!
//! Invariant: every wait is for a line of the program, with a deadline. Deliberately no clearing of screens: this is no
//! terminal.

use nix::sys::signal::Signal;

use crate::support::{Running, at, folder};

const HOOK: &str = "export function Next(ctx) { return { data: { said: 'hi' } } }\n";

fn scenario(id: &str, script: &str, said: &str) -> String {
    format!(
        "scenario: 1\nid: {id}\nhost: {{ assistants: {{ a: {{ {script} }} }} }}\n\
         run: [{{ as: t, send: {{ assistant: a, user: Hello }} }}]\n\
         expect: [{{ reply: {{ of: t, data: {{ said: {said} }} }} }}]\n"
    )
}

fn files() -> tempfile::TempDir {
    let inline = format!("script_inline: {:?}", HOOK.trim());
    folder(&[
        ("one.yaml", &scenario("one", &inline, "hi")),
        ("two.yaml", &scenario("two", "script: two.ts", "hi")),
        ("two.ts", HOOK),
    ])
}

fn watch(files: &tempfile::TempDir) -> Running {
    Running::start(["test", &files.path().display().to_string(), "--watch"])
}

#[tokio::test]
async fn a_save_runs_the_cases_it_belongs_to() {
    let files = files();
    let mut watch = watch(&files);
    assert_eq!(watch.line_after("watching "), "3 files of 2 cases; Ctrl-C ends");
    std::fs::write(files.path().join("two.ts"), HOOK.replace("'hi'", "'ho'")).unwrap();
    assert_eq!(watch.line_after("saved: "), "two.ts; cases to run: 1");
    assert!(watch.line_after("{\"code\":").contains("\"two\""), "it fails now");
    watch.line_after("watching ");
    std::fs::write(at(&files, "three.yaml"), scenario("three", "script: two.ts", "ho")).unwrap();
    assert_eq!(watch.line_after("saved: "), "three.yaml; cases to run: 1");
    assert_eq!(watch.line_after("watching "), "4 files of 3 cases; Ctrl-C ends");
    watch.signal(Signal::SIGINT);
    assert_eq!(watch.ended().await.code(), Some(1), "one case failed when it was last run");
}

#[tokio::test]
async fn a_file_that_cannot_be_loaded_is_told_and_the_watch_goes_on() {
    let files = files();
    let mut watch = watch(&files);
    watch.line_after("watching ");
    let good = std::fs::read_to_string(files.path().join("one.yaml")).unwrap();
    std::fs::write(files.path().join("one.yaml"), good.replace("run:", "runs:")).unwrap();
    watch.line_after("SCENARIO_INVALID ");
    assert_eq!(watch.line_after("saved: "), "one.yaml; cases to run: 0");
    watch.line_after("watching ");
    std::fs::write(files.path().join("one.yaml"), good).unwrap();
    assert_eq!(watch.line_after("saved: "), "one.yaml; cases to run: 1");
    watch.line_after("watching ");
    watch.signal(Signal::SIGINT);
    assert_eq!(watch.ended().await.code(), Some(0));
}
