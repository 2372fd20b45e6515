//! What a host declares of its hooks: order, depth, and what cannot come of them.

use std::path::Path;

use greenroom::rehearsal::InProcess;
use greenroom_boundary::trace::{HookMode, HookPhase};
use greenroom_harness::cover::{DeclaredHook, HookDepth, HookFormName, HookOutcome};
use greenroom_harness::host::HostFactory as _;
use greenroom_harness::model::HostSpec;
use serde_json::{Value, json};
use test_case::test_case;

fn declared(host: Value) -> Vec<DeclaredHook> {
    let spec: HostSpec = serde_json::from_value(host).unwrap();
    InProcess::default().declared_hooks(&spec, Path::new("tests/cover/config")).unwrap()
}

/// A config whose agent calls `shop`; `shop` has these hooks.
fn shop(hooks: &Value) -> Value {
    json!({
        "inline": {"mcpServers": {"h": {"script": "rules.ts"}, "remote": {}, "shop": {"hooks": hooks}}},
        "assistants": {"clerk": {"connector": "main", "mcp": ["shop"]}},
    })
}

fn hook<'a>(hooks: &'a [DeclaredHook], id: &str, phase: HookPhase) -> &'a DeclaredHook {
    hooks.iter().find(|hook| hook.id == id && hook.phase == phase).unwrap()
}

fn depths(hook: &DeclaredHook) -> Vec<&'static str> {
    hook.depths.iter().map(|depth| depth.as_str()).collect()
}

#[test]
fn a_hook_comes_after_those_that_run_before_it_in_some_chain() {
    let hooks = declared(shop(&json!({
        "tools/call?direction=request": ["!mutate:h/judge", "h/cap"],
        "tools/call?direction=request&name=order&priority=-1": ["h/one"],
        "tools/call?direction=request&name=stock": ["h/two"],
        "tools/*?direction=request&name=sto*&priority=9": ["h/wide"],
    })));
    let before = |id: &str| -> Vec<&str> {
        hook(&hooks, id, HookPhase::Request).after.iter().map(|place| hooks[*place].id.as_str()).collect()
    };
    assert_eq!(depths(hook(&hooks, "h/wide", HookPhase::Request)), ["0"], "a pattern of methods and names");
    assert_eq!(before("h/one"), [] as [&str; 0]);
    assert_eq!(before("h/cap"), ["h/one"]);
    assert_eq!(before("h/two"), ["h/cap"], "h/one looks at another tool");
    assert_eq!(before("h/wide"), ["h/cap", "h/two"]);
    assert_eq!(before("h/judge"), ["h/cap", "h/one", "h/two", "h/wide"], "validators run last");
}

#[test_case(&json!({"tools/call": ["h/cap"]}), HookOutcome::Skipped; "the first hook is not skipped")]
#[test_case(&json!({"tools/call": ["!mutate:h/cap"]}), HookOutcome::Mutated; "a validator does not mutate")]
#[test_case(&json!({"tools/call": ["remote/cap"]}), HookOutcome::Heap; "a remote hook has its own memory")]
#[test_case(&json!({"tools/call": ["!mutate:h/judge", "!mutate:h/cap"]}), HookOutcome::Skipped; "a validator is not counted on to end a chain")]
#[test_case(&json!({"tools/call?failOpen=true": ["h/one"], "tools/call": ["h/cap"]}), HookOutcome::Skipped; "a hook that fails open ends nothing")]
#[test_case(&json!({"tools/call?mode=audit": ["h/one"], "tools/call": ["h/cap"]}), HookOutcome::Skipped; "an audit hook ends nothing")]
fn what_cannot_come_of_a_hook_has_its_reason(hooks: &Value, outcome: HookOutcome) {
    let hooks = declared(shop(hooks));
    let last = hooks.iter().find(|hook| hook.id.ends_with("/cap")).unwrap();
    assert!(last.cannot.get(&outcome).is_some_and(|reason| !reason.is_empty()), "{:?}", last.cannot);
}

#[test]
fn an_audit_hooks_refusal_is_a_cell() {
    let hooks = declared(shop(&json!({"tools/call?mode=audit": ["!mutate:h/judge"]})));
    assert_eq!(hooks[0].mode, HookMode::Audit);
    assert!(hooks[0].outcomes().any(|outcome| outcome == HookOutcome::Rejected));
}

#[test]
fn a_hook_on_a_target_of_hooks_runs_deeper() {
    let hooks = declared(json!({
        "inline": {"mcpServers": {
            "a": {"script": "rules.ts", "hooks": {"tools/call?direction=request": ["b/cap"]}},
            "b": {"script": "rules.ts", "hooks": {"tools/call?direction=request": ["c/cap"]}},
            "c": {"script": "rules.ts", "hooks": {"tools/call?direction=request": ["a/cap"]}},
        }},
        "assistants": {"clerk": {"connector": "main", "mcp": ["a", "b"]}},
    }));
    let at = |id: &str| depths(hook(&hooks, id, HookPhase::Request));
    assert_eq!(at("b/cap"), ["0", "2+"], "through c's hook, which calls a again");
    assert_eq!(at("c/cap"), ["0", "1"]);
    assert_eq!(at("a/cap"), ["1", "2+"], "nobody calls c but a hook");
}

#[test]
fn a_hook_does_not_run_inside_itself() {
    let hooks = declared(json!({
        "inline": {"mcpServers": {"a": {"script": "rules.ts", "hooks": {"*": ["a/cap"]}}}},
        "assistants": {"clerk": {"connector": "main", "mcp": ["a"]}},
    }));
    assert_eq!(depths(&hooks[0]), ["0"]);
}

#[test]
fn a_hook_on_what_nobody_calls_cannot_run() {
    let host = json!({
        "inline": {"mcpServers": {"h": {"script": "rules.ts"}, "shop": {"hooks": {"tools/call": ["h/cap"]}}}},
        "assistants": {"clerk": {"connector": "main"}},
    });
    let hooks = declared(host);
    assert!(hooks.iter().all(|hook| hook.depths.is_empty() && !hook.not_deeper.is_empty()), "{hooks:?}");
}

#[test_case("export function Next(ctx) { return ctx.mcp.CallTool('shop', 'stock', {}); }", &["0"]; "a name in quotes")]
#[test_case("export function Next(ctx) { return ctx.shopkeeper; }", &[]; "no such name")]
fn a_script_calls_what_it_names(code: &str, expected: &[&str]) {
    let hooks = declared(json!({
        "inline": {"mcpServers": {"h": {"script": "rules.ts"}, "shop": {"hooks": {"tools/call": ["h/cap"]}}}},
        "assistants": {"clerk": {"script_inline": code}},
    }));
    assert_eq!(depths(hook(&hooks, "h/cap", HookPhase::Request)), expected);
}

#[test]
fn only_functions_that_a_script_has_are_hooks() {
    let hooks = declared(json!({"assistants": {"clerk": {"script_inline": "export function Next() { /* no CreateX */ }"}}}));
    let forms: Vec<HookFormName> = hooks.iter().map(|hook| hook.form).collect();
    assert_eq!(forms, [HookFormName::Next]);
}

#[test]
fn hooks_of_an_agent_without_a_model_see_no_request() {
    let hooks = declared(json!({
        "inline": {
            "mcpServers": {"h": {"script": "rules.ts"}},
            "agents": {"clerk": {"hooks": {"config": ["h/cap"], "request": ["h/cap"]}}},
        },
    }));
    assert!(hook(&hooks, "h/cap", HookPhase::Config).depths.contains(&HookDepth::Zero));
    assert!(hook(&hooks, "h/cap", HookPhase::Request).depths.is_empty());
}
