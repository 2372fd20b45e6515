//! `serve --stdio`: one client on the program's own input and output.
//!
//! Invariant: whatever stands on stdout is a message. Deliberately no framing errors: the wire crate has them.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read, Write as _, pipe, read_to_string};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use test_case::test_case;

use crate::http::{call_tool, initialize};
use crate::support::{Running, at, descendants, folder, gone, program, root, stdout, tool};

const EXAMPLE: [&str; 4] = ["serve", "-c", "examples/greenroom.yaml", "--stdio"];

#[tokio::test]
async fn every_line_of_stdout_is_a_message_and_the_end_of_input_is_the_end() {
    let mut server = Running::start(EXAMPLE);
    let mut input = server.child.stdin.take().unwrap();
    let mut output = BufReader::new(server.child.stdout.take().unwrap()).lines();
    let messages = [
        initialize(),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        call_tool(2, "get_current_time", json!({"timezone": "UTC"})),
        call_tool(3, "chat-with-greeter", json!({"prompt": "Hi, I am Ada"})),
        json!({"jsonrpc": "2.0", "id": 4, "method": "no/such"}),
    ];
    let mut answers = std::collections::BTreeMap::new();
    for message in &messages {
        writeln!(input, "{message}").unwrap();
    }
    while answers.len() < messages.len() - 1 {
        let frame: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
        assert_eq!(frame["jsonrpc"], "2.0");
        if let Some(id) = frame["id"].as_u64() {
            assert!(answers.insert(id, frame).is_none(), "one answer for each request");
        }
    }
    assert_eq!(answers[&0]["result"]["serverInfo"]["name"], "greenroom-example");
    assert_eq!(answers[&1]["result"]["tools"][0]["name"], "chat-with-greeter");
    assert_eq!(answers[&2]["result"]["isError"], false);
    assert_eq!(answers[&3]["result"]["structuredContent"]["greeting"], "Hello, Ada!");
    assert_eq!(answers[&4]["error"]["code"], -32601);
    let children = descendants(server.pid());
    drop(input);
    assert_eq!(server.ended().await.code(), Some(0));
    assert!(output.next().is_none(), "nothing after the last answer");
    gone(&children).await;
}

#[tokio::test]
async fn sigterm_ends_it_while_the_client_is_silent() {
    let mut server = Running::start(EXAMPLE);
    let mut input = server.child.stdin.take().unwrap();
    let mut output = BufReader::new(server.child.stdout.take().unwrap()).lines();
    writeln!(input, "{}", initialize()).unwrap();
    output.next().unwrap().unwrap();
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().await.code(), Some(0));
    drop(input);
}

#[test]
fn the_python_client_starts_it_as_a_server() {
    let client = "\
import asyncio, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main(program, config):
    server = StdioServerParameters(command=program, args=['serve', '-c', config, '--stdio'])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        reply = await session.call_tool('chat-with-greeter', {'prompt': 'Hi, I am Ada'})
        print(reply.structured_content['greeting'])

asyncio.run(main(*sys.argv[1:]))
";
    let files = folder(&[("client.py", client)]);
    let config = root().join("examples/greenroom.yaml").display().to_string();
    let arguments = [at(&files, "client.py"), env!("CARGO_BIN_EXE_greenroom").to_owned(), config];
    let served = program(&tool("python/bin/python"), arguments).success();
    assert_eq!(stdout(&served).trim(), "Hello, Ada!");
}

/// Two requests, of which the second has an answer that no pipe holds at once.
fn two_requests() -> String {
    let long = "x".repeat(300_000);
    format!("{}\n{}\n", initialize(), json!({"jsonrpc": "2.0", "id": 1, "method": long}))
}

#[expect(clippy::disallowed_methods, reason = "what stands on the command's streams is what is tested")]
fn on(input: impl Into<Stdio>, output: impl Into<Stdio>, errors: impl Into<Stdio>) -> std::process::Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.current_dir(root()).args(EXAMPLE).stdin(input).stdout(output).stderr(errors).spawn().unwrap()
}

fn from_files() -> String {
    let files = folder(&[("in", &two_requests()), ("out", "")]);
    let (input, output) = (File::open(at(&files, "in")).unwrap(), File::create(at(&files, "out")).unwrap());
    assert!(on(input, output, Stdio::null()).wait().unwrap().success());
    std::fs::read_to_string(at(&files, "out")).unwrap()
}

/// As Node gives them to its children.
fn on_sockets() -> String {
    let ((mut near, input), (output, far)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
    let mut child = on(OwnedFd::from(input), OwnedFd::from(far), Stdio::null());
    near.write_all(two_requests().as_bytes()).unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let said = read_to_string(output).unwrap();
    assert!(child.wait().unwrap().success());
    said
}

fn on_pipes(mixed: bool) -> String {
    let ((input, mut near), (mut far, output)) = (pipe().unwrap(), pipe().unwrap());
    let errors = if mixed { Stdio::from(output.try_clone().unwrap()) } else { Stdio::null() };
    let mut child = on(input, output, errors);
    near.write_all(two_requests().as_bytes()).unwrap();
    drop(near);
    let mut said = String::new();
    far.read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success());
    said
}

#[test_case(from_files; "files")]
#[test_case(on_sockets; "sockets")]
#[test_case(|| on_pipes(false); "pipes")]
#[test_case(|| on_pipes(true); "one pipe for output and errors")]
fn it_serves_on_whatever_stands_there(serve: fn() -> String) {
    let said = serve();
    let frames: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(frames.iter().map(|frame| frame["id"].as_u64()).collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert_eq!(frames[0]["result"]["serverInfo"]["name"], "greenroom-example");
    assert!(frames[1]["error"]["message"].as_str().unwrap().len() > 300_000);
}
