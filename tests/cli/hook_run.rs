//! `hook run`: one hook alone.
//!
//! Invariant: what it prints is what the hook did, whatever its peers are. Deliberately no second test of `ctx` itself.

use serde_json::{Value, json};
use test_case::test_case;

use crate::support::{at, folder, greenroom, stderr, stdout};

const HOOK: &str = r#"import type { Ctx } from "greenroom";

export function Create(ctx: Ctx, messages: { content: string }[], options: object) {
  const seen: number = ctx.memory.chat.Incr("seen");
  ctx.memory.user.Set("last", messages[0].content, 5000);
  const id = ctx.SendStream("Looking ");
  ctx.Append(id, "it up");
  ctx.End(id);
  console.log("seen", seen);
  const order = ctx.mcp.CallTool("shop", "order", { count: seen });
  const said = ctx.llm.Stream("main", messages, { onChunk: () => 0 });
  ctx.Send({ type: "card", props: { order, said: said.content } });
  return { temperature: 0.5, metadata: { locale: ctx.locale, of: ctx.assistant_id } };
}

export async function Next(ctx: Ctx, payload: { error: string }) {
  if (payload.error) {
    throw new TypeError("cannot go on: " + payload.error);
  }
  const all = await ctx.mcp.AllAsync([{ mcp: "far", tool: "x" }, { mcp: "wide", tool: "y" }]);
  const other = await ctx.agent.CallAsync("billing", [{ role: "user", content: "pay" }]);
  return { data: { all: all.map((one) => one.result.mock), other: other.content } };
}
"#;

const MOCKS: &str = "llm:
  main:
    - { id: hello, reply: { text: Hi, stream: { ttft: 20ms } } }
    - { id: never, reply: { text: Nope } }
mcp:
  shop:
    tools: [{ name: order }]
    calls:
      - { when: { tool: order }, after: 30ms, result: { structuredContent: { ok: true }, content: [] } }
";

const CTX: &str = r#"{"locale": "de-de", "authorized": {"user_id": "u1"}, "memory": {"chat": {"seen": 4}}}"#;

fn files() -> tempfile::TempDir {
    folder(&[
        ("shop/index.ts", HOOK),
        ("mocks.yaml", MOCKS),
        ("ctx.json", CTX),
        ("messages.json", r#"[{"role": "user", "content": "Where?"}]"#),
        ("payload.json", r#"{"error": "no model"}"#),
        ("wrong.json", "[{\"role\": \"usr\",\n  \"content\": \"x\"}]"),
        ("torn.json", "[{\"role\": \"user\""),
        ("ctx-wrong.json", r#"{"lokale": "de"}"#),
        ("broken.ts", "export function Create(ctx) {\n  return {{;\n}\n"),
        ("wrong-type.ts", "export function Create() { return { temperature: 'hot' } }"),
        ("endless.ts", "export function Create() { while (true) {} }"),
        ("empty.ts", "export function Other() {}"),
    ])
}

/// The effects as JSON, real times taken out.
fn effects(files: &tempfile::TempDir, script: &str, args: &[&str]) -> (Value, i32) {
    let script = at(files, script);
    let args = ["hook", "run", &script, "--json"].into_iter().chain(args.iter().copied());
    let ended = greenroom(args);
    let mut value: Value = serde_json::from_str(&stdout(&ended)).unwrap();
    value["wall_us"].take();
    for step in value["steps"].as_array_mut().unwrap() {
        step["wall_us"].take();
    }
    (value, ended.get_output().status.code().unwrap())
}

#[test_case("v8"; "on v8")]
#[test_case("quickjs"; "on quickjs")]
fn every_effect_is_told(engine: &str) {
    let files = files();
    let (mocks, ctx) = (at(&files, "mocks.yaml"), at(&files, "ctx.json"));
    let args = ["--engine", engine, "--messages", &at(&files, "messages.json"), "--mocks", &mocks, "--ctx", &ctx];
    let (told, code) = effects(&files, "shop/index.ts", &args);
    assert_eq!(code, 0, "{told:#}");
    let step = |index: usize, key: &str| told["steps"][index][key].clone();
    let ops: Vec<&str> = told["steps"].as_array().unwrap().iter().map(|step| step["op"].as_str().unwrap()).collect();
    let wanted = [
        "memory.chat.Incr",
        "memory.user.Set",
        "SendStream",
        "Append",
        "End",
        "console.log",
        "mcp.CallTool",
        "llm.Stream",
        "Send",
    ];
    assert_eq!(ops, wanted);
    assert_eq!((step(6, "args"), step(6, "result")), (json!(["shop", "order", {"count": 5}]), json!({"ok": true})));
    assert_eq!((step(6, "virtual_ms"), step(7, "at_ms"), step(7, "callbacks")), (json!(30.0), json!(30.0), json!(1)));
    let first = json!({"id": "M1", "type": "text", "props": {"content": "Looking it up"}, "ended": true});
    assert_eq!(told["messages"][0], first, "as a client shows it, deltas applied");
    assert_eq!(told["messages"][2]["props"], json!({"order": {"ok": true}, "said": "Hi"}));
    let seen = json!({"space": "chat", "key": "seen", "before": 4, "after": 5});
    let last = json!({"space": "user", "key": "last", "after": "Where?", "ttl_ms": 4950});
    assert_eq!(told["memory"], json!([seen, last]));
    assert_eq!(told["returned"], json!({"temperature": 0.5, "metadata": {"locale": "de-de", "of": "shop"}}));
    assert_eq!((&told["by_default"], &told["virtual_ms"]), (&json!([]), &json!(50.0)));
    assert_eq!(told["unused"].as_array().unwrap().len(), 1, "{}", told["unused"]);
    assert_eq!(effects(&files, "shop/index.ts", &args).0, told, "the same again");
}

#[test]
fn a_person_reads_the_same() {
    let files = files();
    let script = at(&files, "shop/index.ts");
    let ended = greenroom(["hook", "run", &script, "--say", "Where?", "--ctx", &at(&files, "ctx.json")]);
    let said = stdout(&ended.success());
    for part in [
        "memory.chat.Incr(\"seen\") -> 5",
        "console.log(\"seen 5\")",
        "M1 text  \"Looking it up\"",
        "chat.seen: 4 -> 5",
        "user.last: nothing -> \"Where?\" for 5000 ms",
        "answered by default (--mocks FILE scripts them): mcp.shop, llm.main",
        "\"said\":\"mock answer of main\"",
        "\"temperature\": 0.5",
    ] {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
}

#[test]
fn peers_without_a_mock_answer_by_default_in_batches_too() {
    let files = files();
    let (told, code) = effects(&files, "shop/index.ts", &["--hook", "Next", "--say", "x"]);
    assert_eq!(code, 0, "{told:#}");
    assert_eq!(told["returned"]["data"], json!({"all": ["far", "wide"], "other": "mock answer of agent billing"}));
    assert_eq!(told["by_default"], json!(["mcp.far", "mcp.wide", "agents.billing"]));
}

#[test_case("shop/index.ts", &["--payload", "payload.json"], 1, &["HOOK_THREW", "index.ts:18:11: TypeError: cannot go on: no model", "18 |     throw new TypeError", "   |           ^"]; "a hook that throws")]
#[test_case("wrong-type.ts", &[], 1, &["HOOK_MALFORMED", "field `temperature`", "\"temperature\": \"hot\""]; "a wrong type")]
#[test_case("endless.ts", &[], 1, &["HOOK_CPU_LIMIT"]; "a loop without end")]
fn a_failed_hook_is_exit_1(script: &str, args: &[&str], code: i32, parts: &[&str]) {
    check(script, args, code, stdout, parts);
}

#[test_case("broken.ts", &[], 2, &["broken.ts:2:", "2 |   return {{;", "^"]; "a script that does not parse")]
#[test_case("none.ts", &[], 2, &["cannot read the script", "none.ts"]; "no script")]
#[test_case("empty.ts", &[], 4, &["has no function Create; it has Other"]; "no such function")]
#[test_case("shop/index.ts", &["--messages", "wrong.json"], 2, &["wrong.json:1:11: `usr` is not known here", "^^^^^", "did you mean `user`?"]; "a wrong role")]
#[test_case("shop/index.ts", &["--messages", "torn.json"], 2, &["torn.json:1:"]; "half a file")]
#[test_case("shop/index.ts", &["--ctx", "ctx-wrong.json"], 2, &["ctx-wrong.json:1:2", "lokale", "locale"]; "a misspelt key")]
#[test_case("shop/index.ts", &["--isolation", "steel"], 2, &["one of frozen, context, isolate, process"]; "no such level")]
fn what_cannot_be_run_is_told(script: &str, args: &[&str], code: i32, parts: &[&str]) {
    check(script, args, code, stderr, parts);
}

fn check(script: &str, args: &[&str], code: i32, text: impl Fn(&assert_cmd::assert::Assert) -> String, parts: &[&str]) {
    let files = files();
    let paths = |arg: &&str| if arg.contains(".json") { at(&files, arg) } else { (*arg).to_owned() };
    let mut all = vec!["hook".to_owned(), "run".to_owned(), at(&files, script)];
    all.extend(args.iter().map(paths));
    let ended = greenroom(all).code(code);
    let said = text(&ended);
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in\n{said}");
    }
}

#[test]
fn shells_complete_it() {
    let script = stdout(&greenroom(["completions", "bash"]).success());
    for word in ["greenroom__hook__run", "--messages", "--payload", "Create Next"] {
        assert!(script.contains(word) || script.contains(&word.replace("__", "__subcmd__")), "{word} is not completed");
    }
}
