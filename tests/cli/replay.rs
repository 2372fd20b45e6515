//! `replay`: a recorded session again, with nothing of the outside world.
//!
//! Invariant: the programs of the servers are gone before a replay starts. Deliberately real servers in the recordings.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::http::{Session, call_tool};
use crate::questions::{SAMPLING, able_client, converse, everything};
use crate::support::{Running, at, folder, greenroom, program, stderr, stdout, tool};

const SCOUT: &str = r#"
export function Next(ctx: any, payload: any) {
  const note = ctx.mcp.CallTool("files", "read_text_file", { path: "note.txt" });
  const at = ctx.mcp.CallTool("time", "convert_time", { source_timezone: "UTC", time: "12:00", target_timezone: "Asia/Tokyo" });
  return { data: { note: note.content, at: at.target.datetime.slice(11, 16) } };
}
"#;

/// An agent with a hook script, on real servers which live only as long as the folder's `bin`.
fn scout() -> tempfile::TempDir {
    let config = "\
mcpServers:
  time: { command: bin/time, args: [--local-timezone, UTC] }
  files: { command: bin/files, args: [folder] }
agents:
  scout: { script: scout.ts, mcpServers: [time, files] }
";
    let files =
        folder(&[("greenroom.yaml", config), ("scout.ts", SCOUT), ("folder/note.txt", "a rehearsal"), ("bin/.keep", "")]);
    for (name, real) in [("time", "python/bin/mcp-server-time"), ("files", "node/node_modules/.bin/mcp-server-filesystem")] {
        std::os::unix::fs::symlink(tool(real), files.path().join("bin").join(name)).unwrap();
    }
    files
}

/// Records turns of the scout; after that its servers do not exist any more.
fn recorded(turns: &[&str]) -> tempfile::TempDir {
    let files = scout();
    let (config, cassette) = (at(&files, "greenroom.yaml"), at(&files, "s.cas"));
    let turns = turns.iter().flat_map(|turn| ["--turn", turn]);
    let recording = greenroom(["record", "-c", &config, "-o", &cassette].into_iter().chain(turns)).success();
    let told: Value = serde_json::from_str(stdout(&recording).lines().next().unwrap()).unwrap();
    assert_eq!(told["at"], "21:00", "{}", stderr(&recording));
    std::fs::remove_dir_all(files.path().join("bin")).unwrap();
    files
}

fn replay(files: &tempfile::TempDir) -> assert_cmd::assert::Assert {
    greenroom(["replay", &at(files, "s.cas"), "-c", &at(files, "greenroom.yaml")])
}

#[test]
fn a_session_of_real_servers_replays_without_them() {
    let files = recorded(&["scout=go", "scout=again"]);
    for _ in 0..2 {
        let same = replay(&files).success();
        assert!(stdout(&same).contains(" events, 0 differences"), "{}", stdout(&same));
    }
    let json = greenroom(["replay", &at(&files, "s.cas"), "-c", &at(&files, "greenroom.yaml"), "--json"]).success();
    let report: Value = serde_json::from_str(&stdout(&json)).unwrap();
    assert_eq!((&report["differences"], &report["problems"]), (&serde_json::json!([]), &serde_json::json!([])));
}

#[test]
fn another_engine_comes_to_the_same_trace() {
    let files = recorded(&["scout=go"]);
    let (config, cassette) = (at(&files, "greenroom.yaml"), at(&files, "s.cas"));
    let same = greenroom(["replay", &cassette, "-c", &config, "--engine", "quickjs"]).success();
    assert!(stdout(&same).contains(" events, 0 differences"), "{}", stdout(&same));
}

#[test]
fn a_changed_hook_is_told_by_what_it_asked() {
    let files = recorded(&["scout=go", "scout=again"]);
    std::fs::write(files.path().join("scout.ts"), SCOUT.replace("Asia/Tokyo", "Asia/Seoul")).unwrap();
    let other = replay(&files).code(3);
    let said = stdout(&other);
    let parts = [
        "replay miss: mcp.time tools/call",
        "/params/arguments/target_timezone",
        "recorded \"Asia/Tokyo\"",
        "now      \"Asia/Seoul\"",
        "the replay came to a stop: it gave 1 of 2 recorded inputs",
    ];
    for part in parts {
        assert!(said.contains(part), "{part:?} in {said}");
    }
}

#[test]
fn a_changed_answer_is_a_difference() {
    let files = recorded(&["scout=go"]);
    std::fs::write(files.path().join("scout.ts"), SCOUT.replace("slice(11, 16)", "slice(11, 13)")).unwrap();
    let other = replay(&files).code(3);
    let said = stdout(&other);
    assert!(said.contains("recorded ") && said.contains("replayed ") && !said.contains("replay miss"), "{said}");
}

#[tokio::test]
async fn a_session_of_an_outside_client_replays() {
    let files = folder(&[]);
    let cassette = at(&files, "s.cas");
    let arguments = ["record", "-c", "examples/greenroom.yaml", "-o", &cassette, "--listen", "127.0.0.1:0"];
    let mut recording = Running::start(arguments);
    let said = recording.line_after("MCP at ");
    let url = said.split(';').next().unwrap();
    program(&tool("python/bin/python"), ["examples/outside_client.py", url]).success();
    recording.signal(Signal::SIGTERM);
    assert_eq!(recording.ended().await.code(), Some(0));
    let same = greenroom(["replay", &cassette, "-c", "examples/greenroom.yaml"]).success();
    assert!(stdout(&same).contains(" events, 0 differences"), "{}", stdout(&same));
}

/// The client is asked, hears progress and says that its roots have changed.
#[tokio::test]
async fn what_a_client_answers_and_tells_replays() {
    let files = everything();
    let (config, cassette) = (at(&files, "greenroom.yaml"), at(&files, "s.cas"));
    let mut recording = Running::start(["record", "-c", &config, "-o", &cassette, "--listen", "127.0.0.1:0"]);
    let said = recording.line_after("MCP at ");
    let session = Session::introduce(said.split(';').next().unwrap(), &able_client()).await;
    let mut long = call_tool(5, "trigger-long-running-operation", json!({"duration": 0.3, "steps": 3}));
    long["params"]["_meta"] = json!({"progressToken": "p"});
    converse(&session, &long).await;
    converse(&session, &call_tool(6, "trigger-elicitation-request", json!({}))).await;
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"});
    assert_eq!(session.send(&changed).await.status(), 202);
    let text = converse(&session, &call_tool(7, SAMPLING, json!({"prompt": "two words"}))).await;
    assert!(text.contains("good day"), "{text}");
    recording.signal(Signal::SIGTERM);
    assert_eq!(recording.ended().await.code(), Some(0));
    let trace = std::fs::read_to_string(at(&files, "s.cas.trace.jsonl")).unwrap();
    for told in ["notifications/progress", "elicitation/create", "sampling/createMessage", "notifications/roots/list_changed"] {
        assert!(trace.lines().any(|line| line.contains(told) && line.contains("client.s1")), "{told} in {trace}");
    }
    let same = greenroom(["replay", &cassette, "-c", &config]).success();
    assert!(stdout(&same).contains(" events, 0 differences"), "{}", stdout(&same));
}

#[test]
fn what_is_no_cassette() {
    let refused = greenroom(["replay", "examples/greenroom.yaml", "-c", "examples/greenroom.yaml"]).code(2);
    assert!(stderr(&refused).contains("not a cassette"), "{}", stderr(&refused));
    let missing = greenroom(["replay", "no-such.cas", "-c", "examples/greenroom.yaml"]).code(2);
    assert!(stderr(&missing).contains("no-such.cas"), "{}", stderr(&missing));
}
