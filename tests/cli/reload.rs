//! `serve` while its config is edited.
//!
//! Invariant: what a person saves counts from the next call on, or is refused whole.

use std::collections::BTreeSet;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::http::{Session, call_tool};
use crate::support::{Running, at, descendants, folder, gone, tool};

const HOOKS: &str = "export function shout(args) { return {said: `${args.text}!`} }\n";

fn config(published: &str) -> String {
    let time = tool("python/bin/mcp-server-time");
    format!(
        "mcpServers:\n  words: {{ script: words.ts }}\n  time: {{ command: {time}, args: [--local-timezone, UTC] }}\n\
         publish: {{ mcpServers: [{published}] }}\n"
    )
}

fn serve(files: &tempfile::TempDir, extra: &[&str]) -> Running {
    let config = at(files, "greenroom.yaml");
    Running::start(["serve", "-c", &config, "--listen", "127.0.0.1:0"].iter().chain(extra))
}

async fn said(session: &Session, text: &str) -> Value {
    session.request(&call_tool(9, "shout", json!({"text": text}))).await["result"]["structuredContent"]["said"].clone()
}

#[tokio::test]
async fn a_saved_config_counts_for_sessions_that_are_open() {
    let files = folder(&[("greenroom.yaml", &config("words, time")), ("words.ts", HOOKS)]);
    let mut server = serve(&files, &[]);
    let session = Session::open(&server.line_after("greenroom serves MCP at ")).await;
    assert_eq!(session.tools().await, ["shout", "get_current_time", "convert_time"]);
    let children: BTreeSet<i32> = descendants(server.pid());
    assert!(!children.is_empty(), "the time server runs");
    std::fs::write(
        files.path().join("greenroom.yaml"),
        "mcpServers: {words: {script: words.ts}}\npublish: {mcpServers: words}\n",
    )
    .unwrap();
    assert_eq!(server.line_after("taken over"), "; gone: time");
    assert_eq!(session.tools().await, ["shout"]);
    gone(&children).await;
}

#[tokio::test]
async fn a_saved_script_counts_from_the_next_call_on() {
    let files = folder(&[("greenroom.yaml", &config("words")), ("words.ts", HOOKS)]);
    let mut server = serve(&files, &[]);
    let session = Session::open(&server.line_after("greenroom serves MCP at ")).await;
    assert_eq!(said(&session, "hey").await, "hey!");
    std::fs::write(files.path().join("words.ts"), HOOKS.replace('!', "?")).unwrap();
    server.line_after("taken over");
    assert_eq!(said(&session, "hey").await, "hey?");
}

#[tokio::test]
async fn a_saved_import_counts_and_a_broken_one_is_mended() {
    let words = "import { end } from './end.ts';\nexport const shout = (args: any) => ({ said: args.text + end });\n";
    let end = |text: &str| format!("export const end = {text:?};\n");
    let files = folder(&[("greenroom.yaml", &config("words")), ("words.ts", words), ("end.ts", &end("!"))]);
    let mut server = serve(&files, &[]);
    let session = Session::open(&server.line_after("greenroom serves MCP at ")).await;
    assert_eq!(said(&session, "hey").await, "hey!");
    std::fs::write(files.path().join("end.ts"), end("?")).unwrap();
    server.line_after("taken over");
    assert_eq!(said(&session, "hey").await, "hey?");
    std::fs::write(files.path().join("words.ts"), words.replace("./end.ts", "./new.ts")).unwrap();
    server.line_after("not taken over, the host goes on as before: ");
    assert_eq!(said(&session, "hey").await, "hey?");
    std::fs::write(files.path().join("new.ts"), end(".")).unwrap();
    server.line_after("taken over");
    assert_eq!(said(&session, "hey").await, "hey.");
}

#[tokio::test]
async fn a_config_that_is_not_usable_changes_nothing() {
    let files = folder(&[("greenroom.yaml", &config("words")), ("words.ts", HOOKS)]);
    let mut server = serve(&files, &[]);
    let session = Session::open(&server.line_after("greenroom serves MCP at ")).await;
    std::fs::write(files.path().join("greenroom.yaml"), "mcpServers: {words: {scrpt: words.ts}}\n").unwrap();
    server.line_after("not taken over, the host goes on as before: ");
    assert_eq!(said(&session, "hey").await, "hey!");
    std::fs::write(files.path().join("words.ts"), "export function shout(args { return 1 }\n").unwrap();
    std::fs::write(files.path().join("greenroom.yaml"), config("words")).unwrap();
    server.line_after("a script of it is not usable");
    assert_eq!(said(&session, "hey").await, "hey!");
}

#[tokio::test]
async fn without_reloading_nothing_is_taken_over_and_sighup_ends_it() {
    let files = folder(&[("greenroom.yaml", &config("words")), ("words.ts", HOOKS)]);
    let mut server = serve(&files, &["--no-reload"]);
    let session = Session::open(&server.line_after("greenroom serves MCP at ")).await;
    assert_eq!(said(&session, "hey").await, "hey!");
    std::fs::write(files.path().join("words.ts"), HOOKS.replace('!', "?")).unwrap();
    assert_eq!(said(&session, "hey").await, "hey!");
    server.signal(Signal::SIGHUP);
    assert_eq!(server.ended().await.code(), None, "nobody listens to the signal");
}
