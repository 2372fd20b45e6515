//! Laws of one chain: what runs, in which order, on which value, and what comes of it.
//!
//! Invariant: each law names one promise of the documentation. Deliberately no pairs of runs: those are metamorphic laws.

use greenroom::hooks::Side;
use greenroom_boundary::trace::HookVerdict::{Mutated, Skipped, Unchanged};
use greenroom_boundary::trace::{HookPhase, HookVerdict};
use proptest::prelude::*;
use serde_json::{Value, json};
use test_case::test_case;

use super::check::{Engine, law};
use super::judge::judge;
use super::plan::{Does, Hook, Key, Target, World, hook, peaceful_world, world};
use super::world::{Seen, run, trail};

/// The trail that a hook was shown.
fn shown(message: &Value) -> Vec<usize> {
    if message.get("result").is_some() {
        trail(&message["result"]["structuredContent"])
    } else if message.get("error").is_some() {
        trail(&message["error"]["data"])
    } else {
        trail(&message["params"]["arguments"])
    }
}

#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_a_chain_does_what_the_model_says(on: Engine) {
    law(on, world(8), |engine, world| {
        let (seen, wanted) = (run(engine, world), judge(world));
        prop_assert_eq!(seen.verdicts(), wanted.verdicts());
        prop_assert_eq!(seen.trail(), wanted.request.against.is_empty().then(|| wanted.request.trail.clone()));
        if wanted.against().is_empty() {
            prop_assert_eq!(seen.result.is_err(), world.fails);
            prop_assert_eq!(seen.answered_trail(), wanted.response.map(|judged| judged.trail).unwrap_or_default());
        } else {
            prop_assert!(seen.result.is_err(), "{:?}", seen.result);
        }
        Ok(())
    });
}

/// Priorities alone decide, then the declaration: who answers sooner does not.
#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_the_order_does_not_depend_on_completion_times(on: Engine) {
    let latencies = prop::collection::vec(0..900_u64, 8);
    law(on, (world(8), latencies), |engine, (world, latencies)| {
        let other: Vec<Hook> =
            world.hooks.iter().zip(latencies).map(|(hook, latency)| Hook { latency_ms: *latency, ..*hook }).collect();
        prop_assert_eq!(run(engine, world), run(engine, &world.with(other)));
        Ok(())
    });
}

#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_validators_see_the_final_value(on: Engine) {
    law(on, world(8), |engine, world| {
        let seen = run(engine, world);
        let validates = |id: usize| world.hooks.iter().any(|hook| hook.id == id && !hook.may_mutate);
        let judged = seen.asked.iter().filter(|(id, _)| validates(*id));
        for (id, message) in judged {
            let is_request = message.get("result").is_none() && message.get("error").is_none();
            if let Some(left) = seen.left.first().filter(|_| is_request) {
                prop_assert_eq!(&message["params"], left, "validator h{} judged what did not leave", id);
            }
            if let Some(Ok(result)) = (!is_request).then_some(&seen.result) {
                prop_assert_eq!(&message["result"]["structuredContent"], &result["structuredContent"]);
            }
        }
        Ok(())
    });
}

/// Each hook is shown what the hooks before it made, and nothing that audit hooks or silent changes made.
#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_each_hook_gets_the_current_message_as_a_copy(on: Engine) {
    law(on, world(8), |engine, world| {
        let (seen, wanted) = (run(engine, world), judge(world));
        let audits = |id: usize| world.hooks.iter().any(|hook| hook.id == id && hook.audit);
        let mut expected = Vec::new();
        for judged in [Some(wanted.request), wanted.response].into_iter().flatten() {
            let mut trail = Vec::new();
            for (id, verdict) in judged.verdicts.into_iter().filter(|(_, verdict)| *verdict != Skipped) {
                expected.push((id, trail.clone()));
                if verdict == Mutated && !audits(id) {
                    trail.push(id);
                }
            }
        }
        let asked: Vec<(usize, Vec<usize>)> = seen.asked.iter().map(|(id, message)| (*id, shown(message))).collect();
        prop_assert_eq!(asked, expected);
        Ok(())
    });
}

/// A call passes if and only if every enforced hook let it, or failed with `failOpen`.
#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_failures_close_unless_they_say_open(on: Engine) {
    let alone = (hook(), any::<bool>(), any::<bool>()).prop_map(|(hook, audit, fail_open)| World {
        target: Target::External,
        fails: false,
        hooks: vec![Hook { audit, fail_open, side: Some(Side::Request), method: Key::Any, name: Key::Any, ..hook }],
    });
    law(on, alone, |engine, world| {
        let (hook, seen) = (world.hooks[0], run(engine, world));
        let refuses = hook.does == Does::Rejects || hook.does == Does::Mutates && !hook.may_mutate;
        let fails = matches!(hook.does, Does::Throws | Does::Hangs | Does::Answers(_))
            || hook.does == Does::SaysEmpty && !hook.may_mutate;
        let stopped = !hook.audit && (refuses || fails && !hook.fail_open);
        prop_assert_eq!(seen.left.len(), usize::from(!stopped), "{:?}", seen);
        prop_assert_eq!(seen.frames.len(), usize::from(!stopped), "{:?}", seen);
        prop_assert_eq!(seen.result.is_err(), stopped);
        Ok(())
    });
}

fn recorded(seen: &Seen, side: &str) -> Vec<Value> {
    let Ok(result) = &seen.result else { return Vec::new() };
    result["_meta"]["ai.nanobot.hooks/mutations"][side]["hooks"].as_array().cloned().unwrap_or_default()
}

/// What a hook says comes out somewhere: as a change that left and is recorded, or as an error that the caller has.
#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_every_answer_is_delivered_or_reported(on: Engine) {
    law(on, world(8), |engine, world| {
        let (seen, wanted) = (run(engine, world), judge(world));
        prop_assert_eq!(seen.decisions.len(), wanted.verdicts().len(), "one decision for each hook that was due");
        if let Err(refusal) = &seen.result
            && let Some((first, others)) = wanted.against().split_first()
        {
            let is_named = |text: &str, id: usize| text.contains(&format!("/h{id} ")) || text.contains(&format!("/h{id}:"));
            prop_assert!(is_named(&refusal.message, *first), "{} does not name h{}", refusal.message, first);
            let told = refusal.rpc["data"]["others"].as_array().cloned().unwrap_or_default();
            let all_named = told.iter().zip(others).all(|(told, id)| is_named(told["message"].as_str().unwrap(), *id));
            prop_assert!(told.len() == others.len() && all_named, "{told:?} are not {others:?}");
        }
        if seen.result.is_ok() {
            for (side, phase) in [("request", HookPhase::Request), ("response", HookPhase::Response)] {
                let audits = |id: usize| world.hooks.iter().any(|hook| hook.id == id && hook.audit);
                let changed = seen.decisions.iter().filter(|d| d.phase == phase && d.verdict == Mutated && !audits(d.hook));
                let traced: Vec<&Value> = changed.filter_map(|decision| decision.patch.as_ref()).collect();
                let told = recorded(&seen, side);
                prop_assert_eq!(told.iter().map(|hook| &hook["patch"]).collect::<Vec<_>>(), traced);
            }
        }
        Ok(())
    });
}

/// Texts that other hosts matched on, and any other.
fn texts() -> impl Strategy<Value = String> {
    let known = ["x is not defined", "timeout", "hook rejected message", "HOOK_REJECTED", "not found", "a\nb", "{}", "accept"];
    prop_oneof![prop::sample::select(known.to_vec()).prop_map(str::to_owned), "[a-z ]{1,12}"]
}

impl super::check::Paste for (String, &'static str, bool) {}

/// No text that a hook throws is taken for anything but that text.
#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_a_hook_error_keeps_its_class_and_text(on: Engine) {
    let classes = prop::sample::select(vec!["Error", "TypeError", "RangeError", "SyntaxError"]);
    law(on, (texts(), classes, any::<bool>()), |engine, (text, class, is_async)| {
        let config =
            "mcpServers:\n  shop: {hooks: {'tools/call?direction=request': policy/h}}\n  policy: {script: policy.js}\n";
        let set = crate::support::Set::new(config).mcp("shop", "tools: [{name: buy}]");
        let stage = match engine {
            Some(engine) => {
                let word = if *is_async { "export async function" } else { "export function" };
                let source = format!("{word} h() {{ throw new {class}({}); }}", json!(text));
                set.engine(engine.clone()).source("policy", &source).build()
            }
            None => {
                let (class, text) = (*class, text.clone());
                let throws = move |_| -> greenroom_boundary::BoxFuture<'static, _> {
                    let thrown = super::twins::exception(class, &text);
                    Box::pin(async { Err(thrown) })
                };
                set.native("policy", "h", Box::new(throws)).build()
            }
        };
        let error = stage.call("shop", "buy", json!({})).unwrap_err();
        prop_assert_eq!(error.code(), "HOOK_THREW");
        prop_assert!(error.to_string().contains(&format!("{class}: {text}")), "{error}");
        prop_assert!(stage.sent("shop", "tools/call").is_empty());
        Ok(())
    });
}

/// The hooks of both sides are those of the call as it was made, whatever a hook makes of its name.
#[test]
fn law_the_chain_is_captured_when_the_call_is_made() {
    law(Engine::Mock, (peaceful_world(6), any::<bool>()), |_, (world, renames)| {
        let hooks = world.hooks.iter().map(|hook| Hook { remote: false, ..*hook }).collect();
        let world = World { target: Target::External, fails: false, ..world.with(hooks) };
        let expected = judge(&world).verdicts();
        let mut more = world.hooks.clone();
        let renaming = Hook { priority: -9, ..Hook::plain(7, Does::Accepts) };
        more.push(renaming);
        let renames = *renames;
        let stage = super::world::stage_with(&world.with(more), move |set| {
            set.native(
                "policy",
                "h7",
                crate::support::pure(move |args| {
                    let mut envelope = args[0].clone();
                    envelope["message"]["params"]["name"] = json!(if renames { "sell" } else { "buy" });
                    envelope["mutated"] = json!(true);
                    Some(envelope)
                }),
            )
        });
        stage.call("shop", "buy", json!({"trail": []})).unwrap();
        let sent = stage.sent("shop", "tools/call");
        prop_assert_eq!(&sent[0]["params"]["name"], if renames { "sell" } else { "buy" });
        let ran: Vec<(usize, HookVerdict)> = stage
            .verdicts()
            .into_iter()
            .filter(|(hook, _)| hook != "policy/h7")
            .map(|(hook, verdict)| (hook.trim_start_matches("policy/h").parse().unwrap(), verdict))
            .collect();
        prop_assert_eq!(ran, expected);
        Ok(())
    });
}

impl super::check::Paste for (Vec<Hook>, Vec<usize>) {}

/// The position of a key, the form of a target, its server and its name decide nothing but ties.
#[test]
fn law_the_order_is_priority_then_declaration() {
    let names = Just((0..8_usize).collect::<Vec<_>>()).prop_shuffle();
    law(Engine::Mock, (prop::collection::vec(hook(), 1..=8), names), |engine, (hooks, names)| {
        let plain = |(hook, id): (&Hook, &usize)| Hook {
            id: *id,
            does: Does::Accepts,
            side: Some(Side::Request),
            method: if hook.method == Key::Other { Key::Any } else { hook.method },
            name: if hook.name == Key::Other { Key::Any } else { hook.name },
            ..*hook
        };
        let hooks: Vec<Hook> = hooks.iter().zip(names).map(plain).collect();
        let world = World { target: Target::External, fails: false, hooks };
        let mut order: Vec<&Hook> = world.hooks.iter().collect();
        order.sort_by_key(|hook| (!hook.may_mutate, hook.priority));
        let expected: Vec<(usize, HookVerdict)> = order.into_iter().map(|hook| (hook.id, Unchanged)).collect();
        prop_assert_eq!(run(engine, &world).verdicts(), expected);
        Ok(())
    });
}
