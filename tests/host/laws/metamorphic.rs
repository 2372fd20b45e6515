//! Laws about two configs: a change that must not be seen, or must be seen as one thing only.
//!
//! Invariant: both hosts are built from scratch and compared by wire and result. Deliberately no model of what is right.

use greenroom::hooks::Side;
use proptest::prelude::*;
use serde_json::json;
use test_case::test_case;

use super::check::{Engine, law};
use super::plan::{Does, Hook, Target, World, hook, peaceful_world, world};
use super::world::{Isolate, run};
use crate::support::{Set, Stage, pure};

#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_an_audit_hook_never_changes_the_wire(on: Engine) {
    law(on, world(8), |engine, world| {
        let enforced = world.hooks.iter().copied().filter(|hook| !hook.audit).collect();
        let (with, without) = (run(engine, world), run(engine, &world.with(enforced)));
        prop_assert_eq!(with.outside(), without.outside());
        Ok(())
    });
}

/// An audit hook's word is in the trace all the same, with the patch that it would have made.
#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_an_audit_hook_says_what_the_same_hook_would_have_done(on: Engine) {
    let alone =
        hook().prop_map(|hook| World { target: Target::External, fails: false, hooks: vec![Hook { audit: true, ..hook }] });
    law(on, alone, |engine, world| {
        let enforced = world.hooks.iter().map(|hook| Hook { audit: false, ..*hook }).collect();
        let (audit, enforce) = (run(engine, world), run(engine, &world.with(enforced)));
        prop_assert_eq!(audit.decisions.first(), enforce.decisions.first());
        Ok(())
    });
}

#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_an_identity_hook_changes_nothing_anywhere(on: Engine) {
    law(on, ((world(7), 0..=7_usize), hook()), |engine, ((world, at), hook)| {
        let mut more = world.hooks.clone();
        let identity = Hook { id: 8, does: Does::Accepts, audit: false, ..*hook };
        more.insert((*at).min(more.len()), identity);
        let (before, after) = (run(engine, world), run(engine, &world.with(more)));
        prop_assert_eq!(before.outside(), after.outside());
        Ok(())
    });
}

/// A hook that changes its copy without saying so is the same as one that accepts.
#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_a_change_in_place_that_is_not_marked_changes_nothing(on: Engine) {
    law(on, world(8), |engine, world| {
        let open = world.hooks.iter().map(|hook| match hook.does {
            Does::ChangesInSecret => Hook { does: Does::Accepts, ..*hook },
            _ => *hook,
        });
        let (secret, open) = (run(engine, world), run(engine, &world.with(open.collect())));
        prop_assert_eq!(secret.outside(), open.outside());
        prop_assert_eq!(secret.decisions, open.decisions);
        Ok(())
    });
}

/// An `async` function is its plain twin: what it returns is awaited, and judged as strictly.
#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_async_results_are_awaited(on: Engine) {
    law(on, world(8), |engine, world| {
        let all = |is_async: bool| {
            // On the mock every function is one; what it waits for takes the twin's place.
            let latency = |hook: &Hook| if is_async { hook.latency_ms } else { 0 };
            let hooks = world.hooks.iter().map(|hook| Hook { is_async, latency_ms: latency(hook), ..*hook });
            run(engine, &world.with(hooks.collect()))
        };
        prop_assert_eq!(all(true), all(false));
        Ok(())
    });
}

/// Where a hook runs, as a script's function or as a tool of another server, is no difference to the call.
#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_a_hook_is_the_same_behind_any_server(on: Engine) {
    law(on, peaceful_world(8), |engine, world| {
        let all = |remote: bool| run(engine, &world.with(world.hooks.iter().map(|hook| Hook { remote, ..*hook }).collect()));
        let (script, remote) = (all(false), all(true));
        prop_assert_eq!((script.left, script.frames), (remote.left, remote.frames));
        prop_assert_eq!(script.decisions, remote.decisions);
        Ok(())
    });
}

/// A change of one path of the arguments.
#[derive(Clone, Copy, Debug)]
struct Change {
    path: usize,
    value: i64,
    latency_ms: u64,
    side: Side,
}

impl super::check::Paste for Vec<Change> {}
impl super::check::Paste for (Change, Change) {}

fn change() -> impl Strategy<Value = Change> {
    let side = prop_oneof![Just(Side::Request), Just(Side::Response)];
    (0..6_usize, -9..9_i64, 0..900_u64, side).prop_map(|(path, value, latency_ms, side)| Change {
        path,
        value,
        latency_ms,
        side,
    })
}

/// Some paths lie inside others' objects; none is a part of another.
const PATHS: [&str; 6] = ["a", "b", "c/x", "c/y", "d/e/f", "d/e/g"];

fn changing(engine: &Isolate, changes: &[Change]) -> Stage {
    let key = |(i, change): (usize, &Change)| {
        let side = if change.side == Side::Request { "request" } else { "response" };
        format!("      'tools/call?direction={side}&timeout={}ms': policy/h{i}\n", 1_000 + i)
    };
    let keys: String = changes.iter().enumerate().map(key).collect();
    let config = format!("mcpServers:\n  policy: {{script: policy.js}}\n  shop:\n    hooks:\n{keys}");
    let answer = r#"{"content":[],"structuredContent":{"c":{},"d":{"e":{}}}}"#;
    let set = Set::new(&config).raw("shop", move |_, _| vec![crate::support::result(answer)]);
    let Some(engine) = engine else {
        let natives = changes.iter().copied().enumerate();
        return natives.fold(set, |set, (i, change)| set.native("policy", &format!("h{i}"), set_path(change))).build();
    };
    let functions = changes.iter().enumerate().map(|(i, change)| {
        let path = PATHS[change.path].replace('/', ".");
        format!("export function h{i}(envelope) {{ const m = envelope.message; const at = m.result ? m.result.structuredContent : m.params.arguments;\n  at.{path} = {}; return {{ ...envelope, mutated: true }}; }}\n", change.value)
    });
    set.engine(engine.clone()).source("policy", &functions.collect::<String>()).build()
}

fn set_path(change: Change) -> crate::support::Native {
    let set = pure(move |args| {
        let mut envelope = args[0].clone();
        let at = if change.side == Side::Request { "/message/params/arguments" } else { "/message/result/structuredContent" };
        let mut part = envelope.pointer_mut(at).unwrap();
        for name in PATHS[change.path].split('/') {
            part = &mut part[name];
        }
        *part = json!(change.value);
        envelope["mutated"] = json!(true);
        Some(envelope)
    });
    Box::new(move |call| {
        let (ctx, work) = (call.ctx.clone(), set(call));
        Box::pin(async move {
            ctx.wall_deadline(std::time::Duration::from_millis(change.latency_ms)).await;
            work.await
        })
    })
}

/// What left, and the structured part of the answer.
fn changed(engine: &Isolate, changes: &[Change]) -> (Vec<serde_json::Value>, serde_json::Value) {
    let stage = changing(engine, changes);
    let output = stage.call("shop", "buy", json!({"c": {}, "d": {"e": {}}})).unwrap();
    // Objects compare by their members, whatever their order.
    (stage.sent("shop", "tools/call"), output.value["structuredContent"].clone())
}

#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_changes_of_different_paths_commute(on: Engine) {
    let pairs = (change(), change()).prop_filter("two paths", |(a, b)| a.path != b.path);
    law(on, pairs, |engine, (a, b)| {
        prop_assert_eq!(changed(engine, &[*a, *b]), changed(engine, &[*b, *a]));
        Ok(())
    });
}

#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_a_change_that_is_made_twice_is_made_once(on: Engine) {
    law(on, prop::collection::vec(change(), 1..=4), |engine, changes| {
        let twice: Vec<Change> = changes.iter().flat_map(|change| [*change, *change]).collect();
        prop_assert_eq!(changed(engine, changes), changed(engine, &twice));
        Ok(())
    });
}
