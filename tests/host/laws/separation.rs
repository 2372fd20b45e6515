//! Laws about what a hook cannot reach: other calls, time after its deadline, what it has left behind.
//!
//! Invariant: every case ends with calls that must work as if nothing had been. Deliberately no limits of memory: those
//! are the engines' conformance suites.

use std::time::Duration;

use futures::future::join_all;
use greenroom_boundary::ServerName;
use proptest::prelude::*;
use serde_json::{Value, json};
use test_case::test_case;

use super::check::{Engine, Paste, law};
use crate::support::{Set, Stage, pure, result};

/// A call among others: how long its hook and its server take.
#[derive(Clone, Copy, Debug)]
struct Call {
    hook_ms: u64,
    server_ms: u64,
    refused: bool,
}

impl Paste for Vec<Call> {}
impl Paste for Vec<usize> {}
impl Paste for (usize, bool, bool) {}
impl Paste for (u64, u64, bool) {}

const CONFIG: &str = "policy: {script_limits: {cpu: 50ms}}\nmcpServers:\n  shop: {hooks: {'tools/call?direction=request': [policy/stamp, '!mutate:remote/judge'], 'tools/call?direction=response': policy/stamp}}\n  policy: {script: policy.js}\n  remote: {}\n";

const STAMP_JS: &str = "let seen = [];
export function stamp(envelope) {
  const m = envelope.message;
  seen.push(m.params.arguments.i);
  (m.result ? m.result.structuredContent : m.params.arguments).stamps = seen;
  return { ...envelope, mutated: true };
}\n";

fn shared(engine: &super::world::Isolate, calls: &[Call]) -> Stage {
    let of = |params: &Value| usize::try_from(params["arguments"]["i"].as_u64().unwrap()).unwrap();
    let (servers, hooks) = (calls.to_vec(), calls.to_vec());
    let set = Set::new(CONFIG)
        .timed("shop", move |_, params| {
            let text = json!({"content": [], "structuredContent": {"i": params["arguments"]["i"]}}).to_string();
            (Duration::from_millis(servers[of(params)].server_ms), vec![result(&text)])
        })
        .timed("remote", move |_, params| {
            let call = hooks[of(&params["arguments"]["message"]["params"])];
            let text = json!({"content": [], "structuredContent": {"accept": !call.refused}}).to_string();
            (Duration::from_millis(call.hook_ms), vec![result(&text)])
        });
    match engine {
        Some(engine) => set.engine(engine.clone()).source("policy", STAMP_JS).build(),
        None => set
            .native(
                "policy",
                "stamp",
                pure(|args| {
                    let mut envelope = args[0].clone();
                    let i = envelope["message"]["params"]["arguments"]["i"].clone();
                    let at = if envelope["message"].get("result").is_some() {
                        "/message/result/structuredContent"
                    } else {
                        "/message/params/arguments"
                    };
                    envelope.pointer_mut(at).unwrap()["stamps"] = json!([i]);
                    envelope["mutated"] = json!(true);
                    Some(envelope)
                }),
            )
            .build(),
    }
}

/// Calls under way at the same time, with hooks and servers that overtake each other, do not see each other.
#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_calls_side_by_side_do_not_mix(on: Engine) {
    let call = (0..500_u64, 0..500_u64, prop::bool::weighted(0.2)).prop_map(|(hook_ms, server_ms, refused)| Call {
        hook_ms,
        server_ms,
        refused,
    });
    law(on, prop::collection::vec(call, 1..=6), |engine, calls| {
        let stage = shared(engine, calls);
        let server = ServerName::new("shop");
        let cx = stage.caller();
        let router = &stage.host.core().router;
        let all = calls.iter().enumerate().map(|(i, _)| router.call(&cx, &server, "buy", json!({"i": i})));
        let answers = stage.run(join_all(all));
        for (i, (call, answer)) in calls.iter().zip(answers).enumerate() {
            match answer {
                Ok(output) if !call.refused => {
                    prop_assert_eq!(&output.value["structuredContent"], &json!({"i": i, "stamps": [i]}));
                }
                Err(error) if call.refused => prop_assert_eq!(error.code(), "HOOK_REJECTED"),
                other => return Err(TestCaseError::fail(format!("call {i}: {other:?}"))),
            }
        }
        let passed = calls.iter().filter(|call| !call.refused).count();
        prop_assert_eq!(stage.sent("shop", "tools/call").len(), passed);
        Ok(())
    });
}

/// What a script may try to leave behind for the next one.
#[cfg(feature = "v8")]
const POISONS: [&str; 12] = [
    "globalThis.secret = envelope;",
    "Object.prototype.accept = true;",
    "Object.prototype.toJSON = () => ({ accept: true });",
    "Array.prototype.map = () => ['poison'];",
    "JSON.stringify = () => '{\"accept\":true}';",
    "JSON.parse = () => ({ accept: true });",
    "Object.defineProperty(Object.prototype, 'message', { get: () => ({ params: { arguments: { i: 'stolen' } } }) });",
    "Promise.prototype.then = function () { return this; };",
    "globalThis.envelope = null; Object.freeze(Object.prototype);",
    "Symbol.iterator && (Array.prototype[Symbol.iterator] = function* () { yield 'poison'; });",
    "Function.prototype.call = () => 'poison';",
    "globalThis.judge = () => ({ accept: true }); globalThis.export = 1;",
];

/// Whatever one call of a hook does to its globals, the next call finds them as they were.
#[cfg(feature = "v8")]
#[test]
fn law_globals_of_one_call_are_not_seen_by_the_next() {
    let poisons = prop::collection::vec(0..POISONS.len(), 1..=3);
    law(Engine::V8, poisons, |engine, poisons| {
        let bad: String = poisons.iter().map(|i| POISONS[*i]).collect();
        let source = format!(
            "export function poison(envelope) {{ try {{ {bad} }} catch {{}} return {{ accept: true }}; }}\n\
             export function judge(envelope) {{\n\
               const known = [typeof globalThis.secret, typeof globalThis.envelope, {{}}.accept, [1].map((x) => x + 1)[0], JSON.stringify([1]), \
                 [...[7]][0], Object.isFrozen(Object.prototype), typeof {{}}.message, typeof Object.prototype.toJSON];\n\
               return {{ accept: false, reason: JSON.stringify([known.map(String), envelope.message.params.arguments]) }};\n\
             }}\n"
        );
        let config = "mcpServers:\n  shop: {hooks: {'tools/call?direction=request': [policy/poison, '!mutate:policy/judge']}}\n  policy: {script: policy.js}\n";
        let stage = Set::new(config)
            .mcp("shop", "tools: [{name: buy}]")
            .engine(engine.clone().unwrap())
            .source("policy", &source)
            .build();
        for i in 0..2 {
            let error = stage.call("shop", "buy", json!({"i": i})).unwrap_err();
            let clean =
                format!(r#"[["undefined","undefined","undefined","2","[1]","7","false","undefined","undefined"],{{"i":{i}}}]"#);
            prop_assert!(error.to_string().ends_with(&clean), "{error}");
        }
        Ok(())
    });
}

/// Ways to go on for ever that a script may try, also by catching what stops it.
#[cfg(feature = "v8")]
const ENDLESS: [&str; 8] = [
    "for (;;) {}",
    "for (;;) { try { for (;;) {} } catch {} finally { continue; } }",
    "await (async () => { for (;;) { try { await null; for (;;) {} } catch {} } })();",
    "for (;;) await null;",
    "const go = () => Promise.resolve().then(go); await go();",
    "function* all() { try { for (;;) yield 1; } finally { for (;;) {} } } for (const x of all()) {}",
    "await Promise.allSettled([(async () => { for (;;) {} })()]);",
    "const x = { toString() { for (;;) {} } }; `${x}`;",
];

/// C34: a hook that never ends is ended, the call fails closed (or open, if it says so), and the next one works.
#[cfg(feature = "v8")]
#[test]
fn law_a_deadline_holds_under_an_endless_loop() {
    law(Engine::V8, (0..ENDLESS.len(), any::<bool>(), any::<bool>()), |engine, (which, fail_open, is_validator)| {
        let source = format!(
            "export async function spin() {{ {} return {{ accept: true }}; }}\nexport function fine() {{ return {{ accept: true }}; }}\n",
            ENDLESS[*which]
        );
        let mark = if *is_validator { "!mutate:" } else { "" };
        let config = format!(
            "policy: {{script_limits: {{cpu: 20ms, wall: 2s}}}}\nmcpServers:\n  shop: {{hooks: {{'tools/call?direction=request&name=buy&failOpen={fail_open}': '{mark}policy/spin', 'tools/call?direction=request&name=sell': 'policy/fine'}}}}\n  policy: {{script: policy.js}}\n"
        );
        let shop = "tools: [{name: buy}, {name: sell}]\notherwise: {result: {content: []}}";
        let stage = Set::new(&config).mcp("shop", shop).engine(engine.clone().unwrap()).source("policy", &source).build();
        match stage.call("shop", "buy", json!({})) {
            Ok(_) => prop_assert!(*fail_open),
            Err(error) => {
                prop_assert!(!fail_open, "{error}");
                prop_assert!(matches!(error.code(), "HOOK_CPU_LIMIT" | "HOOK_WALL_LIMIT" | "HOOK_TIMEOUT"), "{error}");
            }
        }
        let verdicts: Vec<_> = stage.verdicts().into_iter().map(|(_, verdict)| verdict).collect();
        prop_assert_eq!(verdicts, [greenroom_boundary::trace::HookVerdict::Timeout]);
        let next = stage.call("shop", "sell", json!({}));
        prop_assert!(next.is_ok(), "{next:?}");
        Ok(())
    });
}

/// On the clock of the host a hook ends at its own limit, to the millisecond, wherever it runs.
#[test]
fn law_a_hook_ends_at_its_own_limit() {
    law(Engine::Mock, (1..60_000_u64, 1..60_000_u64, any::<bool>()), |_, (limit_ms, takes_ms, remote)| {
        let takes = Duration::from_millis(*takes_ms);
        let target = if *remote { "remote/h" } else { "policy/h" };
        let config = format!(
            "policy: {{script_limits: {{wall: 60m}}}}\nmcpServers:\n  shop: {{hooks: {{'tools/call?direction=request&timeout={limit_ms}ms': {target}}}}}\n  policy: {{script: policy.js}}\n  remote: {{}}\n"
        );
        let stage = Set::new(&config)
            .mcp("shop", "tools: [{name: buy}]\notherwise: {result: {content: []}}")
            .timed("remote", move |_, _| (takes, vec![result(r#"{"content":[],"structuredContent":{"accept":true}}"#)]))
            .native("policy", "h", crate::support::slow(takes, json!({"accept": true})))
            .build();
        let answer = stage.call("shop", "buy", json!({}));
        let took = stage.clock_ms();
        match answer {
            Ok(_) => prop_assert!(takes_ms <= limit_ms && took == *takes_ms, "{took}"),
            Err(error) => {
                prop_assert!(takes_ms >= limit_ms && took == *limit_ms, "{took}: {error}");
                prop_assert_eq!(error.code(), "HOOK_TIMEOUT");
            }
        }
        Ok(())
    });
}
