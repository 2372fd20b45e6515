//! `mock mcp`: a scripted server that a host of anybody's can start or reach.
//!
//! Invariant: what the script says is what the other side sees. Deliberately no second test of the script language.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{ChildStdin, ChildStdout};

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::http::{Session, call_tool, client, initialize, post};
use crate::support::{Running, at, folder, greenroom, root, stderr};

const SHOP: &str = "examples/shop.mcp.yaml";

/// A mock on stdio.
struct Mock {
    running: Running,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Mock {
    fn start(args: &[&str]) -> Self {
        let mut running = Running::start(["mock", "mcp"].into_iter().chain(args.iter().copied()));
        let input = running.child.stdin.take().unwrap();
        let output = BufReader::new(running.child.stdout.take().unwrap()).lines();
        let mut mock = Self { running, input, output };
        mock.say(&initialize());
        mock
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn hear(&mut self) -> Value {
        serde_json::from_str(&self.output.next().unwrap().unwrap()).unwrap()
    }
}

fn number(number: &str) -> Value {
    json!({"number": number})
}

#[tokio::test]
async fn it_answers_on_stdio_as_its_script_says_and_ends_with_its_input() {
    let mut mock = Mock::start(&[SHOP]);
    assert_eq!(mock.hear()["result"]["serverInfo"]["name"], "shop");
    mock.say(&json!({"jsonrpc": "2.0", "id": "t", "method": "tools/list"}));
    assert_eq!(mock.hear()["result"]["tools"][0]["name"], "invoice");
    mock.say(&call_tool(1, "stuck", json!({})));
    mock.say(&call_tool(2, "invoice", number("A-17")));
    let answer = mock.hear();
    assert_eq!((&answer["id"], &answer["result"]["structuredContent"]["cents"]), (&json!(2), &json!(4200)));
    let Mock { mut running, input, mut output } = mock;
    drop(input);
    assert_eq!(running.ended().await.code(), Some(0), "a call that hangs holds nothing up");
    assert!(output.next().is_none());
}

#[test]
fn answers_wait_on_the_real_clock_and_others_overtake_them() {
    let script = "\
tools: [{ name: slow, inputSchema: { type: object } }]
calls:
  - { when: { tool: slow, arguments: { n: 1 } }, after: 200ms, result: {} }
  - { when: { tool: slow }, after: 1ms, result: {} }
";
    let files = folder(&[("slow.yaml", script)]);
    let mut mock = Mock::start(&[&at(&files, "slow.yaml")]);
    mock.hear();
    for n in [1, 2] {
        mock.say(&call_tool(n, "slow", json!({"n": n})));
    }
    assert_eq!([mock.hear()["id"].clone(), mock.hear()["id"].clone()], [json!(2), json!(1)]);
}

#[tokio::test]
async fn a_scripted_crash_ends_the_process() {
    let mut mock = Mock::start(&[SHOP]);
    mock.hear();
    mock.say(&call_tool(1, "fragile", json!({})));
    assert_eq!(mock.running.ended().await.code(), Some(1));
    assert!(mock.running.line_after("greenroom: ").contains("the script crashes it here"));
}

#[test]
fn a_scenarios_server_serves_others_too() {
    let mut mock = Mock::start(&["scenarios/readme/hello.yaml", "--server", "clock"]);
    assert_eq!(mock.hear()["result"]["serverInfo"]["name"], "clock");
    mock.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
    assert_eq!(mock.hear()["result"]["tools"][0]["name"], "now");
}

#[tokio::test]
async fn it_serves_many_over_http_and_a_crash_ends_only_its_session() {
    let mut running = Running::start(["mock", "mcp", SHOP, "--listen", "127.0.0.1:0"]);
    let url = running.line_after("greenroom mocks shop at ");
    let (one, two) = (Session::open(&url).await, Session::open(&url).await);
    for session in [&one, &two] {
        let answer = session.request(&call_tool(2, "invoice", number("B-1"))).await;
        assert_eq!(answer["result"]["isError"], true);
    }
    // However the transport tells it, that request gets no result.
    let crashed = one.call(&call_tool(3, "fragile", json!({}))).await.unwrap().text().await.unwrap_or_default();
    assert!(!crashed.contains("\"result\""), "{crashed}");
    let gone = post(&client(), &url, &call_tool(4, "invoice", number("A-17"))).header("mcp-session-id", &one.id);
    assert_eq!(gone.send().await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(two.request(&call_tool(4, "invoice", number("A-17"))).await["result"]["structuredContent"]["cents"], 4200);
}

#[tokio::test]
async fn a_host_serves_what_a_mock_says() {
    let (mock, script) = (env!("CARGO_BIN_EXE_greenroom"), root().join(SHOP));
    let config = format!("mcpServers:\n  shop: {{ command: {mock}, args: [mock, mcp, {}] }}\n", script.display());
    let files = folder(&[("greenroom.yaml", &config)]);
    let mut host = Running::start(["serve", "-c", &at(&files, "greenroom.yaml"), "--listen", "127.0.0.1:0"]);
    let session = Session::open(&host.line_after("greenroom serves MCP at ")).await;
    assert_eq!(session.tools().await, ["invoice", "report", "stuck", "fragile"]);
    let answer = session.request(&call_tool(2, "invoice", number("A-17"))).await;
    assert_eq!(answer["result"]["structuredContent"]["cents"], 4200);
}

#[test]
fn a_wrong_script_is_refused_with_its_place() {
    let files = folder(&[("shop.yaml", "tools: []\ncals: []\n")]);
    let refused = greenroom(["mock", "mcp", &at(&files, "shop.yaml")]).code(2);
    let said = stderr(&refused);
    assert!(said.contains("shop.yaml:2:1") && said.contains("did you mean `calls`"), "{said}");
    let nobody = greenroom(["mock", "mcp", "scenarios/readme/hello.yaml", "--server", "shop"]).code(2);
    assert!(stderr(&nobody).contains("`drivers` has no `mcp.shop`"));
}
