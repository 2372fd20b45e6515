//! The confined process runner: the conformance suite's real arm, and what only a real process can show.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use greenroom::drivers::SystemClock;
use greenroom::drivers::sandbox::{ChildEnvironment, ConfinedCli};
use greenroom_boundary::cli::{CliEvent, CliExit, CommandSpec};
use greenroom_boundary::conformance::cli::{all, collect, command};
use greenroom_boundary::{CancellationToken, CliRunner};

use crate::processes::gone;

fn runner() -> ConfinedCli {
    ConfinedCli::new(Arc::new(SystemClock::new()), ChildEnvironment::of_this_process())
}

async fn run(command: CommandSpec) -> String {
    let told = collect(runner().run(command, &CancellationToken::new()).await.unwrap()).await;
    assert_eq!(told.end, Ok(CliExit::Code(0)), "{}", told.stderr);
    told.stdout
}

#[tokio::test]
async fn conforms() {
    all(&runner()).await;
}

#[tokio::test]
async fn a_command_inherits_nothing() {
    let mut spec = command(&["env"]);
    spec.env.insert("GIVEN".to_owned(), "yes".to_owned());
    let stdout = run(spec).await;
    let mut names: Vec<_> = stdout.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    names.sort_unstable();
    assert_eq!(names, ["GIVEN", "HOME", "PATH", "TMPDIR"]);
}

#[tokio::test]
async fn a_command_has_a_folder_of_its_own_that_is_removed() {
    let stdout = run(command(&["sh", "-c", "touch kept; pwd; echo $HOME; echo $TMPDIR"])).await;
    let folders: Vec<_> = stdout.lines().collect();
    assert!(folders.iter().all(|folder| *folder == folders[0]), "{folders:?}");
    assert!(!Path::new(folders[0]).exists(), "{} is still there", folders[0]);
}

/// Starts a command that leaves a child in the background and says its process id.
async fn with_background_child(last: &str) -> (i32, greenroom_boundary::cli::CliStream, CancellationToken) {
    let cancel = CancellationToken::new();
    let script = format!("sleep 86400 & echo $!; {last}");
    let mut stream = runner().run(command(&["sh", "-c", &script]), &cancel).await.unwrap();
    let Some(Ok(CliEvent::Stdout(line))) = stream.next().await else { panic!("no process id") };
    let pid = String::from_utf8_lossy(&line).trim().parse().unwrap();
    (pid, stream, cancel)
}

#[tokio::test]
async fn nothing_of_the_group_outlives_the_command() {
    let (pid, stream, _) = with_background_child("exit 0").await;
    assert_eq!(collect(stream).await.end, Ok(CliExit::Code(0)), "a child that holds the outputs must not hold the run");
    assert!(gone(pid).await);
}

#[tokio::test]
async fn cancelling_kills_the_whole_group() {
    let (pid, stream, cancel) = with_background_child("wait").await;
    cancel.cancel();
    assert_eq!(collect(stream).await.end.map_err(|error| error.code()), Err("CLI_CANCELLED"));
    assert!(gone(pid).await);
}

#[tokio::test]
async fn dropping_the_stream_kills_the_whole_group() {
    let (pid, stream, _) = with_background_child("wait").await;
    drop(stream);
    assert!(gone(pid).await);
}

#[tokio::test]
async fn a_stubborn_command_is_stopped_at_its_time() {
    let mut spec = command(&["sh", "-c", "trap '' TERM; while :; do :; done"]);
    spec.limits.wall = Duration::from_millis(100);
    let told = collect(runner().run(spec, &CancellationToken::new()).await.unwrap()).await;
    assert_eq!(told.end.map_err(|error| error.code()), Err("CLI_TIMEOUT"));
}

#[tokio::test]
async fn input_that_nobody_reads_does_not_block() {
    let spec = CommandSpec { stdin: "x".repeat(1 << 20), ..command(&["true"]) };
    assert_eq!(run(spec).await, "");
}

#[tokio::test]
async fn much_input_and_much_output_pass_each_other() {
    let text = "0123456789abcdef".repeat(1 << 14);
    let mut spec = CommandSpec { stdin: text.clone(), ..command(&["cat"]) };
    spec.limits.output_bytes = text.len();
    assert_eq!(run(spec).await, text);
}
