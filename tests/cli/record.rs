//! `record`: what is on disk while a session runs, when it ends, and when it is killed.
//!
//! Invariant: a test kills only when the event it waits for is in the file. Deliberately a server that hangs, so that the
//! moment is always the same.

use std::path::Path;

use greenroom_harness::cassette::{Cassette, Status};
use nix::sys::signal::Signal;

use crate::support::{Running, at, descendants, folder, gone, greenroom, stderr, stdout, tool, until};

const CALLER: &str = r#"
export function Next(ctx: any, payload: any) {
  const heard = ctx.mcp.CallTool("shop", "echo", { item: "lamp" });
  ctx.mcp.CallTool("shop", "hang", {});
  return { data: heard };
}
"#;

/// An agent whose second call is never answered.
fn hanging() -> tempfile::TempDir {
    let python = tool("python/bin/python");
    let config = format!(
        "mcpServers:\n  shop: {{ command: {python}, args: [server.py] }}\n\
         agents:\n  desk: {{ script: desk.ts, mcpServers: [shop] }}\n"
    );
    folder(&[("greenroom.yaml", &config), ("desk.ts", CALLER), ("server.py", include_str!("fixtures/hanging_server.py"))])
}

/// Starts the recording and waits until the hanging call is on disk.
async fn hanging_recording(files: &tempfile::TempDir) -> Running {
    let (config, cassette) = (at(files, "greenroom.yaml"), at(files, "s.cas"));
    let server = Running::start(["record", "-c", &config, "-o", &cassette, "--turn", "desk=go"]);
    let partial = files.path().join("s.cas.partial");
    until("the call that hangs in the cassette", || {
        std::fs::read_to_string(&partial).ok().filter(|text| text.ends_with('\n') && text.contains(r#""name":"hang""#))
    })
    .await;
    server
}

/// Every complete line of the file is in the cassette that the loader makes of it.
fn all_complete_lines_load(cassette: &Path) -> usize {
    let text = std::fs::read_to_string(cassette.with_extension("cas.partial")).unwrap();
    let complete = text.matches('\n').count();
    let loaded = Cassette::load(cassette).unwrap();
    assert_eq!(loaded.status, Status::Aborted);
    assert_eq!(loaded.lines.len() + 1, complete, "the head and every event");
    complete
}

#[tokio::test]
async fn a_killed_recording_keeps_its_complete_events() {
    let files = hanging();
    let mut recording = hanging_recording(&files).await;
    let children = descendants(recording.pid());
    assert!(!children.is_empty(), "the server runs");
    recording.signal(Signal::SIGKILL);
    recording.ended().await;
    let cassette = files.path().join("s.cas");
    let complete = all_complete_lines_load(&cassette);
    assert!(complete > 6, "initialize, tools/list and both calls");
    gone(&children).await;

    // The kernel may also stop in the middle of a line.
    let partial = files.path().join("s.cas.partial");
    let whole = std::fs::read(&partial).unwrap();
    std::fs::write(&partial, &whole[..whole.len() - 9]).unwrap();
    assert_eq!(all_complete_lines_load(&cassette), complete - 1);
    let torn = Cassette::load(&cassette).unwrap();
    assert!(torn.quarantined_bytes > 0);
}

#[tokio::test]
async fn a_killed_recording_replays_up_to_where_it_was_cut() {
    let files = hanging();
    let mut recording = hanging_recording(&files).await;
    recording.signal(Signal::SIGKILL);
    recording.ended().await;
    let replay = || greenroom(["replay", &at(&files, "s.cas"), "-c", &at(&files, "greenroom.yaml")]);
    let same = stdout(&replay().success());
    assert!(same.contains(" 0 differences (the recording was cut short)"), "{same}");
    // What lies before the cut is still compared.
    std::fs::write(files.path().join("desk.ts"), CALLER.replace("lamp", "sofa")).unwrap();
    let other = stdout(&replay().code(3));
    assert!(other.contains("replay miss: mcp.shop tools/call") && other.contains("\"sofa\""), "{other}");
}

#[test]
fn what_cannot_be_recorded_leaves_no_file() {
    let files = hanging();
    let (config, cassette) = (at(&files, "greenroom.yaml"), at(&files, "s.cas"));
    for (arguments, said) in [(vec!["--turn", "desk"], "write AGENT=TEXT"), (vec![], "nothing to record")] {
        let refused = greenroom([&["record", "-c", &config, "-o", &cassette], arguments.as_slice()].concat()).code(2);
        assert!(stderr(&refused).contains(said), "{}", stderr(&refused));
    }
    assert_eq!(std::fs::read_dir(files.path()).unwrap().count(), 3);
}

#[test]
fn a_turn_that_fails_is_recorded_and_told() {
    let files = hanging();
    let (config, cassette) = (at(&files, "greenroom.yaml"), at(&files, "s.cas"));
    let failed = greenroom(["record", "-c", &config, "-o", &cassette, "--turn", "dask=go"]).code(1);
    assert!(stderr(&failed).contains("did you mean \"desk\"?"), "{}", stderr(&failed));
    assert_eq!(Cassette::load(Path::new(&cassette)).unwrap().status, Status::Complete);
}
