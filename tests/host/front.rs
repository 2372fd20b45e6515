//! The host as a server: a client's connection over an in-process pipe.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use greenroom::front::serve;
use greenroom_boundary::CancellationToken;
use greenroom_boundary::clock::sleep;
use greenroom_boundary::mcp::Frame;
use greenroom_wire::{
    IncomingRequest, Peer, PeerHandler, PeerOptions, Progress, RawJson, RequestError, RequestOptions, RpcError, pipe,
};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use test_case::test_case;

use crate::support::{Set, Stage, pure, result, throws};

#[derive(Default)]
struct Client {
    heard: Mutex<Vec<Value>>,
}

#[async_trait]
impl PeerHandler for Client {
    async fn request(&self, request: IncomingRequest) -> Result<RawJson, RpcError> {
        Err(RpcError::method_not_found(&request.method))
    }

    fn notification(&self, _: &Peer, method: &str, params: Option<&RawValue>, _: &Frame) {
        self.heard.lock().unwrap().push(json!({"method": method, "params": params}));
    }
}

pub(crate) fn connect(stage: &Stage) -> Peer {
    let (client, server) = pipe("greenroom");
    let host = stage.host.clone();
    stage.run(async move {
        tokio::spawn(async move { serve(&host, server).await });
        let options = PeerOptions { clock: Arc::new(stage.clock.clone()), name: "greenroom".to_owned() };
        Peer::start(client, Arc::new(Client::default()), options)
    })
}

pub(crate) fn ask_with(
    stage: &Stage,
    peer: &Peer,
    method: &str,
    params: &Value,
    options: RequestOptions,
) -> Result<RawJson, RequestError> {
    stage.run(peer.request(method, Some(to_raw_value(params).unwrap()), options))
}

pub(crate) fn ask(stage: &Stage, peer: &Peer, method: &str, params: &Value) -> Value {
    let raw = ask_with(stage, peer, method, params, RequestOptions::within(Duration::from_mins(10))).unwrap();
    serde_json::from_str(raw.get()).unwrap()
}

pub(crate) fn refused(stage: &Stage, peer: &Peer, method: &str, params: &Value) -> (i64, String) {
    match ask_with(stage, peer, method, params, RequestOptions::within(Duration::from_mins(10))) {
        Err(RequestError::Rpc(error)) => (error.code, error.message),
        other => panic!("not an error: {other:?}"),
    }
}

fn names(list: &Value, key: &str) -> Vec<String> {
    list[key].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[test_case("2025-11-25", "2025-11-25")]
#[test_case("2025-06-18", "2025-06-18")]
#[test_case("2025-03-26", "2025-03-26")]
#[test_case("2099-01-01", "2025-11-25")]
#[test_case("nonsense", "2025-11-25")]
fn the_revision_is_negotiated(asked: &str, given: &str) {
    let stage = Set::new("publish: {name: my host, version: '9', instructions: be kind}\nprompts: {p: {template: x}}").build();
    let peer = connect(&stage);
    let hello = ask(
        &stage,
        &peer,
        "initialize",
        &json!({"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}),
    );
    assert_eq!(hello["protocolVersion"], given);
    assert_eq!(hello["serverInfo"], json!({"name": "my host", "version": "9"}));
    assert_eq!(hello["instructions"], "be kind");
    let capabilities = json!({"tools": {"listChanged": true}, "prompts": {"listChanged": true}, "completions": {}});
    assert_eq!(hello["capabilities"], capabilities);
}

#[test]
fn a_broken_handshake_is_invalid_params() {
    let stage = Set::new("{}").build();
    let peer = connect(&stage);
    assert_eq!(refused(&stage, &peer, "initialize", &json!({"capabilities": {}})).0, -32602);
    assert_eq!(ask(&stage, &peer, "ping", &json!({})), json!({}));
}

const TOOLS: &str = "tools: [{name: buy, x-note: kept}, {name: look}]\ncalls: [{when: {tool: {$re: '.*'}}, repeat: 9, result: {content: [{type: text, text: done}]}}]";

#[test]
fn the_exact_name_that_is_listed_can_be_called() {
    let stage = Set::new("publish: {mcpServers: [one, two], tools: ['one/buy:get it']}\nmcpServers: {one: {}, two: {}}")
        .mcp("one", TOOLS)
        .mcp("two", TOOLS)
        .build();
    let peer = connect(&stage);
    let list = ask(&stage, &peer, "tools/list", &json!({}));
    let names = names(&list, "tools");
    assert_eq!(names, ["buy", "look", "buy_2", "look_2", "get_it"]);
    assert_eq!(list["tools"][0], json!({"name": "buy", "x-note": "kept", "inputSchema": {"type": "object"}}));
    for name in &names {
        assert_eq!(ask(&stage, &peer, "tools/call", &json!({"name": name}))["content"][0]["text"], "done");
    }
    assert_eq!((stage.sent("one", "tools/call").len(), stage.sent("two", "tools/call").len()), (3, 2));
    let (code, message) = refused(&stage, &peer, "tools/call", &json!({"name": "get it"}));
    assert_eq!((code, message.as_str()), (-32602, "unknown tool: get it; did you mean get_it?"));
}

#[test_case(json!({}), "`name` is missing or no string"; "no name")]
#[test_case(json!({"name": 7}), "`name` is missing or no string"; "name is a number")]
#[test_case(json!({"name": "buy", "arguments": []}), "`arguments` must be an object"; "arguments are a list")]
fn a_malformed_call_is_invalid_params(params: Value, message: &str) {
    let stage = Set::new("mcpServers: {one: {}}").mcp("one", TOOLS).build();
    let peer = connect(&stage);
    assert_eq!(refused(&stage, &peer, "tools/call", &params), (-32602, message.to_owned()));
}

#[test]
fn an_agent_is_a_tool() {
    let stage = Set::new("agents: {desk: {connector: main, description: Helps}}")
        .model("main", "- {id: a, reply: {text: hello}}")
        .build();
    let peer = connect(&stage);
    let list = ask(&stage, &peer, "tools/list", &json!({}));
    assert_eq!(
        (list["tools"][0]["name"].as_str(), list["tools"][0]["description"].as_str()),
        (Some("chat-with-desk"), Some("Helps"))
    );
    let answer = ask(&stage, &peer, "tools/call", &json!({"name": "chat-with-desk", "arguments": {"prompt": "hi"}}));
    assert_eq!(answer, json!({"content": [{"type": "text", "text": "hello"}], "isError": false}));
    let (code, message) = refused(&stage, &peer, "tools/call", &json!({"name": "chat-with-desk", "arguments": {}}));
    assert_eq!((code, message.as_str()), (-32602, "`prompt` is missing or no string"));
}

#[test]
fn a_result_passes_through_byte_for_byte_and_meta_goes_up() {
    let text = r#"{"content":[],"n":[1.0,1e400,9007199254740993],"_meta":{"a/b":1},"later":{"z":1,"a":2}}"#;
    let stage = Set::new("mcpServers: {one: {}}")
        .raw("one", move |method, _| match method {
            "tools/list" => vec![result(r#"{"tools":[{"name":"buy"}]}"#)],
            "tools/call" => vec![result(text)],
            _ => vec![],
        })
        .build();
    let peer = connect(&stage);
    let params = json!({"name": "buy", "arguments": {"n": 1.0}, "_meta": {"trace/id": "x"}, "task": {"ttl": 5}});
    let raw = ask_with(&stage, &peer, "tools/call", &params, RequestOptions::within(Duration::from_mins(1))).unwrap();
    assert_eq!(raw.get(), text);
    let sent = &stage.sent("one", "tools/call")[0]["params"];
    assert_eq!(
        (&sent["name"], &sent["arguments"], &sent["_meta"]["trace/id"], &sent["task"]),
        (&json!("buy"), &json!({"n": 1.0}), &json!("x"), &json!({"ttl": 5}))
    );
}

#[test]
fn an_upstream_error_reaches_the_client_whole() {
    let stage = Set::new("mcpServers: {one: {}}")
        .mcp("one", "tools: [{name: buy}]\ncalls: [{when: {tool: buy}, error: {code: -32042, message: 'no', data: {url: x}}}]")
        .build();
    let peer = connect(&stage);
    let error = ask_with(&stage, &peer, "tools/call", &json!({"name": "buy"}), RequestOptions::within(Duration::from_mins(1)));
    let Err(RequestError::Rpc(error)) = error else { panic!("{error:?}") };
    assert_eq!((error.code, error.message.as_str(), error.data.unwrap().get()), (-32042, "no", r#"{"url":"x"}"#));
}

/// Value, total, message.
type Step = (f64, Option<f64>, Option<String>);

#[test]
fn progress_reaches_the_client_and_grows() {
    let stage = Set::new("mcpServers: {one: {}}")
        .mcp(
            "one",
            "tools: [{name: buy}]\ncalls: [{when: {tool: buy}, after: 10s, progress: [{after: 1s, progress: 1, total: 4, message: one}, {after: 2s, progress: 3, total: 4}], result: {content: []}}]",
        )
        .build();
    let peer = connect(&stage);
    let heard: Arc<Mutex<Vec<Step>>> = Arc::default();
    let listener = heard.clone();
    let mut options = RequestOptions::within(Duration::from_mins(1));
    options.attach_progress_token = true;
    options.progress = Some(Box::new(move |p: Progress| listener.lock().unwrap().push((p.progress, p.total, p.message))));
    ask_with(&stage, &peer, "tools/call", &json!({"name": "buy"}), options).unwrap();
    assert_eq!(*heard.lock().unwrap(), [(1.0, Some(4.0), Some("one".to_owned())), (3.0, Some(4.0), None)]);
}

#[test]
fn a_client_that_gives_up_stops_the_work_upstream() {
    let stage = Set::new("mcpServers: {one: {}}")
        .mcp("one", "tools: [{name: buy}]\non_cancel: stop\ncalls: [{when: {tool: buy}, hang: true}]")
        .build();
    let peer = connect(&stage);
    let cancel = CancellationToken::new();
    let options = RequestOptions { cancel: cancel.clone(), ..RequestOptions::within(Duration::from_mins(1)) };
    let error = stage.run(async {
        let wait = sleep(&stage.clock, Duration::from_secs(5));
        tokio::spawn(async move {
            wait.await;
            cancel.cancel();
        });
        peer.request("tools/call", Some(to_raw_value(&json!({"name": "buy"})).unwrap()), options).await.unwrap_err()
    });
    assert_eq!(error, RequestError::Cancelled);
    stage.run(stage.clock.settle());
    assert_eq!(stage.sent("one", "notifications/cancelled").len(), 1);
    assert_eq!(stage.unanswered(), Vec::<String>::new());
}

#[test]
fn a_client_that_goes_away_leaves_nothing() {
    let stage = Set::new("agents: {desk: {connector: main}}")
        .model("main", "- {id: slow, reply: {text: late, stream: {ttft: 1h}}}")
        .build();
    let peer = connect(&stage);
    stage.run(async {
        let params = to_raw_value(&json!({"name": "chat-with-desk", "arguments": {"prompt": "hi"}})).unwrap();
        let asked = peer.clone();
        let waiting = tokio::spawn(async move { asked.request("tools/call", Some(params), RequestOptions::default()).await });
        sleep(&stage.clock, Duration::from_secs(5)).await;
        peer.close().await;
        assert!(waiting.await.unwrap().is_err());
    });
    // A client may close its half and still read: what it asked for goes on to its end.
    stage.run(sleep(&stage.clock, Duration::from_hours(1)));
    assert_eq!(stage.end(), greenroom_harness::host::Leftovers::default());
    assert_eq!(stage.unanswered(), Vec::<String>::new());
}

const PROMPTS: &str = r"
prompts:
  greet:
    description: Says hello
    template: Hello ${who}, ${tone}!
    input: {who: who it is, tone: {description: how, required: false}}
";

#[test]
fn prompts_are_listed_and_rendered() {
    let stage = Set::new(PROMPTS).build();
    let peer = connect(&stage);
    let list = ask(&stage, &peer, "prompts/list", &json!({}));
    assert_eq!(
        list["prompts"][0],
        json!({"name": "greet", "description": "Says hello", "arguments": [
            {"name": "tone", "description": "how", "required": false}, {"name": "who", "description": "who it is", "required": true}]})
    );
    let prompt = ask(&stage, &peer, "prompts/get", &json!({"name": "greet", "arguments": {"who": "${tone} $who"}}));
    assert_eq!(prompt["messages"], json!([{"role": "user", "content": {"type": "text", "text": "Hello ${tone} $who, !"}}]));
    assert_eq!(
        refused(&stage, &peer, "prompts/get", &json!({"name": "greet"})),
        (-32602, "prompt greet needs the argument who".to_owned())
    );
    assert_eq!(refused(&stage, &peer, "prompts/get", &json!({"name": "x"})), (-32602, "unknown prompt: x".to_owned()));
}

#[test]
fn resources_are_listed_and_read() {
    let stage = Set::new("mcpServers: {one: {}, two: {}}")
        .mcp("one", "tools: [{name: buy}]")
        .mcp("two", "resources: [{uri: 'x://a', name: a}]\ncalls: [{when: {resource: 'x://a'}, result: {contents: [{uri: 'x://a', text: hi}]}}]")
        .build();
    let peer = connect(&stage);
    assert_eq!(names(&ask(&stage, &peer, "resources/list", &json!({})), "resources"), ["a"]);
    assert_eq!(ask(&stage, &peer, "resources/templates/list", &json!({})), json!({"resourceTemplates": []}));
    let read = ask(&stage, &peer, "resources/read", &json!({"uri": "x://a"}));
    assert_eq!(read["contents"][0]["text"], "hi");
    assert_eq!(refused(&stage, &peer, "resources/read", &json!({})).0, -32602);
    let none = Set::new("agents: {desk: {}}").build();
    let peer = connect(&none);
    assert_eq!(
        refused(&none, &peer, "resources/read", &json!({"uri": "x://a"})),
        (-32002, "no published server has the resource x://a".to_owned())
    );
}

#[test]
fn an_unknown_method_is_said_to_be_unknown() {
    let stage = Set::new("{}").build();
    let peer = connect(&stage);
    assert_eq!(refused(&stage, &peer, "tools/eat", &json!({})), (-32601, "method not found: tools/eat".to_owned()));
}

/// Clients are shown every name that the protocol allows as it is.
#[test_case("files.read-all_1", "files.read-all_1"; "every character that is allowed")]
#[test_case("files/read", "files_read"; "a slash is not")]
#[test_case(&"x".repeat(128), &"x".repeat(128); "as long as is allowed")]
#[test_case(&"x".repeat(129), &"x".repeat(128); "longer")]
fn names_that_are_allowed_stay(name: &str, shown: &str) {
    let stage = Set::new("mcpServers: {one: {}}")
        .mcp("one", &format!("tools: [{{name: {name}}}]\ncalls: [{{when: {{tool: {name}}}, result: {{content: []}}}}]"))
        .build();
    let peer = connect(&stage);
    assert_eq!(names(&ask(&stage, &peer, "tools/list", &json!({})), "tools"), [shown]);
    assert_eq!(ask(&stage, &peer, "tools/call", &json!({"name": shown})), json!({"content": []}));
}

/// C06: a token of 0 is a token, and a number; without one there is no progress.
#[test_case(Some(json!(0)), &[json!(0), json!(0)]; "zero")]
#[test_case(Some(json!("0")), &[json!("0"), json!("0")]; "text")]
#[test_case(None, &[]; "none")]
fn c06_progress_carries_the_clients_own_token(token: Option<Value>, heard: &[Value]) {
    let stage = Set::new("mcpServers: {one: {}}")
        .mcp("one", "tools: [{name: buy}]\ncalls: [{when: {tool: buy}, after: 5s, progress: [{after: 1s, progress: 1}, {after: 2s, progress: 1}, {after: 3s, progress: 2}], result: {content: []}}]")
        .build();
    let host = stage.host.clone();
    let (client, server) = pipe("greenroom");
    let frames = stage.run(async move {
        tokio::spawn(async move { serve(&host, server).await });
        let greenroom_wire::FrameDuplex { mut sink, mut source } = client;
        let mut params = json!({"name": "buy"});
        if let Some(token) = token {
            params["_meta"] = json!({"progressToken": token});
        }
        let request = json!({"jsonrpc": "2.0", "id": "r", "method": "tools/call", "params": params});
        sink.send(Frame::from(request.to_string())).await.unwrap();
        let mut frames: Vec<Value> = Vec::new();
        while frames.last().is_none_or(|frame| frame.get("id").is_none()) {
            let frame = source.next().await.unwrap().unwrap();
            frames.push(serde_json::from_slice(&frame.0).unwrap());
        }
        frames
    });
    let (answer, notes) = frames.split_last().unwrap();
    assert_eq!(*answer, json!({"jsonrpc": "2.0", "id": "r", "result": {"content": []}}));
    let tokens: Vec<Value> = notes.iter().map(|note| note["params"]["progressToken"].clone()).collect();
    assert_eq!(tokens, heard);
    let values: Vec<f64> = notes.iter().map(|note| note["params"]["progress"].as_f64().unwrap()).collect();
    assert!(values.windows(2).all(|pair| pair[0] < pair[1]), "{values:?}");
}

/// A client's connection and its session hold each other while it lasts, and no longer.
#[test_case(true; "that introduced itself")]
#[test_case(false; "that did not")]
fn a_session_that_has_ended_is_forgotten(introduced: bool) {
    let stage = Set::new("mcpServers: {one: {}}")
        .mcp("one", "tools: [{name: buy}]\ncalls: [{when: {tool: buy}, repeat: 9, result: {content: []}}]")
        .build();
    let core = stage.host.core();
    for _ in 0..3 {
        let peer = connect(&stage);
        if introduced {
            let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"sampling": {}}, "clientInfo": {"name": "c", "version": "1"}});
            ask(&stage, &peer, "initialize", &hello);
        }
        ask(&stage, &peer, "tools/call", &json!({"name": "buy"}));
        assert_eq!(core.state.living_roots(), 1);
        // Virtual time: what ends with the connection has ended by then.
        stage.run(async {
            peer.close().await;
            sleep(&stage.clock, Duration::from_mins(1)).await;
        });
        drop(peer);
        assert_eq!(core.state.living_roots(), 0);
    }
}

fn hello(meta: &Value) -> Value {
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}, "_meta": meta})
}

/// A host that leads back to itself passes on how deep it stands, so that the loop has an end.
#[test_case(&json!({}), Some(1); "a client that is no host")]
#[test_case(&json!({"greenroom/depth": 3}), Some(4); "a host behind three")]
#[test_case(&json!({"greenroom/depth": 8}), Some(9); "the deepest")]
#[test_case(&json!({"greenroom/depth": 9}), None; "too deep")]
#[test_case(&json!({"greenroom/depth": "no number"}), None; "no number")]
#[test_case(&json!({"greenroom/depth": -1}), None; "a number of nothing")]
fn a_session_knows_how_many_hosts_it_stands_behind(meta: &Value, passed_on: Option<u64>) {
    let stage = Set::new("mcpServers: {one: {}}")
        .mcp("one", "tools: [{name: buy}]\ncalls: [{when: {tool: buy}, result: {content: []}}]")
        .build();
    let peer = connect(&stage);
    match passed_on {
        Some(depth) => {
            ask(&stage, &peer, "initialize", &hello(meta));
            ask(&stage, &peer, "tools/call", &json!({"name": "buy"}));
            assert_eq!(stage.sent("one", "initialize")[0]["params"]["_meta"]["greenroom/depth"], depth);
        }
        None => {
            let (code, message) = refused(&stage, &peer, "initialize", &hello(meta));
            assert_eq!(code, -32600);
            assert!(message.contains("stands behind more than 8 hosts"), "{message}");
            // And nothing else is served either.
            assert_eq!(refused(&stage, &peer, "tools/list", &json!({})).0, -32600);
        }
    }
}

/// Where hooks look at sessions nothing is served before one has begun; elsewhere a client may leave the handshake out.
#[test_case("", true, true; "no hooks, no handshake")]
#[test_case("hooks: {session: policy/admit}\n", true, false; "hooks, no handshake")]
#[test_case("hooks: {session: policy/admit}\n", false, false; "hooks that refuse")]
fn the_handshake_is_the_gate(hooks: &str, admits: bool, is_served: bool) {
    let stage =
        Set::new(&format!("{hooks}mcpServers: {{one: {{}}, policy: {{script: policy.js}}}}\npublish: {{mcpServers: one}}"))
            .mcp("one", "tools: [{name: buy}]")
            .native("policy", "admit", if admits { pure(|_| Some(json!({"_meta": {}}))) } else { throws("not today") })
            .build();
    let peer = connect(&stage);
    let listed = |peer: &Peer| ask_with(&stage, peer, "tools/list", &json!({}), RequestOptions::within(Duration::from_mins(1)));
    assert_eq!(listed(&peer).is_ok(), is_served);
    if hooks.is_empty() {
        return;
    }
    let begun = ask_with(&stage, &peer, "initialize", &hello(&json!({})), RequestOptions::within(Duration::from_mins(1)));
    assert_eq!((begun.is_ok(), listed(&peer).is_ok()), (admits, admits));
}
