//! `serve --inspect`: a debugger of the DevTools protocol, over a real WebSocket.
//!
//! Invariant: a script that a debugger held goes on and answers, whatever the debugger does.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use greenroom::drivers::SystemClock;
use greenroom_boundary::clock::sleep;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::http::{Session, call_tool, client};
use crate::support::{Running, at, folder, greenroom, stderr};

const SCRIPT: &str = "type Order = { total: number };

export function price(args: Order): { pays: number } {
  const rate: number = 0.5;
  const pays = args.total * rate;
  return { pays };
}
";
/// Of the `return`, from 0.
const LINE: u64 = 5;

struct Rig {
    files: tempfile::TempDir,
    _server: Running,
    debug: String,
    session: Session,
}

impl Rig {
    async fn new() -> Self {
        let config = "mcpServers: { rules: { script: rules.ts } }\npublish: { mcpServers: rules }\n\
                      policy: { script_limits: { wall: 300ms, cpu: 100ms } }\n";
        let files = folder(&[("greenroom.yaml", config), ("rules.ts", SCRIPT)]);
        let config = at(&files, "greenroom.yaml");
        let mut server = Running::start(["serve", "-c", &config, "--listen", "127.0.0.1:0", "--inspect=127.0.0.1:0"]);
        let debug = server.line_after("greenroom waits for debuggers at ");
        let debug = debug.split(';').next().unwrap().to_owned();
        let session = Session::open(&server.line_after("greenroom serves MCP at ")).await;
        Self { files, _server: server, debug, session }
    }

    async fn get(&self, path: &str) -> Value {
        let answer = client().get(format!("http://{}{path}", self.debug)).send().await.unwrap();
        serde_json::from_str(&answer.text().await.unwrap()).unwrap()
    }

    async fn attach(&self) -> Debugger {
        let targets = self.get("/json/list").await;
        let url = targets[0]["webSocketDebuggerUrl"].as_str().unwrap();
        Debugger { socket: connect_async(url).await.unwrap().0, next_id: 1, told: Vec::new() }
    }

    async fn price(&self, total: u32) -> Value {
        self.session.request(&call_tool(9, "price", json!({"total": total}))).await["result"]["structuredContent"].clone()
    }

    fn script_url(&self) -> String {
        let file = std::fs::canonicalize(self.files.path().join("rules.ts")).unwrap();
        format!("file://{}", file.display())
    }
}

struct Debugger {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    next_id: u64,
    told: Vec<Value>,
}

impl Debugger {
    async fn hear(&mut self) -> Value {
        loop {
            if let Message::Text(text) = self.socket.next().await.expect("it is attached").unwrap() {
                return serde_json::from_str(&text).unwrap();
            }
        }
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.next_id;
        self.next_id += 1;
        self.socket.send(Message::text(json!({"id": id, "method": method, "params": params}).to_string())).await.unwrap();
        loop {
            let message = self.hear().await;
            if message["id"] == id {
                assert!(message["error"].is_null(), "{method}: {message}");
                return message["result"].clone();
            }
            self.told.push(message);
        }
    }

    async fn event(&mut self, method: &str) -> Value {
        loop {
            if let Some(place) = self.told.iter().position(|message| message["method"] == method) {
                return self.told.remove(place)["params"].clone();
            }
            let message = self.hear().await;
            self.told.push(message);
        }
    }

    /// The address of a script that it was told of.
    fn url_of(&self, script: &Value) -> &str {
        let mut parsed = self.told.iter().filter(|message| message["method"] == "Debugger.scriptParsed");
        parsed.find(|message| message["params"]["scriptId"] == *script).unwrap()["params"]["url"].as_str().unwrap()
    }

    async fn break_at_return(&mut self, rig: &Rig) {
        self.ask("Runtime.enable", json!({})).await;
        self.ask("Debugger.enable", json!({})).await;
        self.ask("Debugger.setBreakpointByUrl", json!({"lineNumber": LINE, "url": rig.script_url()})).await;
    }
}

#[tokio::test]
async fn a_hook_stops_at_a_breakpoint_in_its_source_and_goes_on() {
    let rig = Rig::new().await;
    assert_eq!(rig.price(10).await, json!({"pays": 5}), "nobody is attached");
    let mut debugger = rig.attach().await;
    debugger.break_at_return(&rig).await;
    for total in [20, 40] {
        let (answer, ()) = tokio::join!(rig.price(total), async {
            let paused = debugger.event("Debugger.paused").await;
            let frame = &paused["callFrames"][0];
            assert_eq!((&frame["functionName"], &frame["location"]["lineNumber"]), (&json!("price"), &json!(LINE)));
            assert_eq!(debugger.url_of(&frame["location"]["scriptId"]), rig.script_url());
            let question = json!({"callFrameId": frame["callFrameId"], "expression": "pays + ' of ' + args.total"});
            let found = debugger.ask("Debugger.evaluateOnCallFrame", question).await;
            assert_eq!(found["result"]["value"], format!("{} of {total}", total / 2));
            // Longer than all limits of the script: that time passes is what is tested.
            sleep(&SystemClock::new(), Duration::from_millis(500)).await;
            let change = json!({"callFrameId": frame["callFrameId"], "scopeNumber": 0, "variableName": "pays",
                                "newValue": {"value": 7}});
            debugger.ask("Debugger.setVariableValue", change).await;
            debugger.ask("Debugger.resume", json!({})).await;
        });
        assert_eq!(answer, json!({"pays": 7}));
    }
}

#[tokio::test]
async fn a_debugger_that_leaves_lets_the_hook_go_on() {
    let rig = Rig::new().await;
    let mut debugger = rig.attach().await;
    let second = rig.get("/json/list").await[0]["webSocketDebuggerUrl"].as_str().unwrap().to_owned();
    assert!(connect_async(second).await.is_err(), "one debugger at a time");
    debugger.break_at_return(&rig).await;
    let (answer, ()) = tokio::join!(rig.price(20), async {
        debugger.event("Debugger.paused").await;
        drop(debugger);
    });
    assert_eq!(answer, json!({"pays": 10}));
    assert_eq!(rig.price(30).await, json!({"pays": 15}));
    let mut again = rig.attach().await;
    again.break_at_return(&rig).await;
    let (answer, ()) = tokio::join!(rig.price(20), async {
        again.event("Debugger.paused").await;
        again.ask("Debugger.resume", json!({})).await;
    });
    assert_eq!(answer, json!({"pays": 10}));
}

#[tokio::test]
async fn only_a_debugger_of_this_machine_is_let_in() {
    let rig = Rig::new().await;
    let version = rig.get("/json/version").await;
    assert_eq!(version["Protocol-Version"], "1.3");
    let rebound = client().get(format!("http://{}/json/list", rig.debug)).header("host", "evil.example:9229");
    assert_eq!(rebound.send().await.unwrap().status(), 403);
    assert!(connect_async(format!("ws://{}/0", rig.debug)).await.is_err(), "a target has a name that nobody can guess");
    let refused = greenroom(["serve", "--inspect", "--engine", "quickjs", "-c", "examples/greenroom.yaml"]).code(2);
    assert!(stderr(&refused).contains("debuggers attach to V8 only"), "{}", stderr(&refused));
}
