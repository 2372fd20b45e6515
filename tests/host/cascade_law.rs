//! The cascade against a reference model: arbitrary chains, arbitrary outcomes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use greenroom_boundary::trace::HookVerdict;
use greenroom_boundary::trace::HookVerdict::{Error, Mutated, Rejected, Skipped, Timeout, Unchanged};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Native, Set, Stage, json_value, thrown};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Nothing,
    Mutates,
    Rejects,
    Throws,
    Hangs,
    WrongType,
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    does: Does,
    priority: i32,
    may_mutate: bool,
    audit: bool,
    fail_open: bool,
    delay_ms: u64,
}

fn plan() -> impl Strategy<Value = Plan> {
    let does = prop_oneof![
        3 => Just(Does::Nothing),
        4 => Just(Does::Mutates),
        1 => Just(Does::Rejects),
        1 => Just(Does::Throws),
        1 => Just(Does::Hangs),
        1 => Just(Does::WrongType),
    ];
    (does, -2..3_i32, any::<bool>(), prop::bool::weighted(0.2), prop::bool::weighted(0.3), 0..900_u64).prop_map(
        |(does, priority, may_mutate, audit, fail_open, delay_ms)| Plan {
            does,
            priority,
            may_mutate,
            audit,
            fail_open,
            delay_ms,
        },
    )
}

/// What the chain should do: the trail that reaches the server (if any) and each hook's verdict, in running order.
fn model(plans: &[Plan]) -> (Option<Vec<usize>>, Vec<(usize, HookVerdict)>) {
    let mut order: Vec<usize> = (0..plans.len()).collect();
    order.sort_by_key(|&i| (!plans[i].may_mutate, plans[i].priority, i));
    let (mut trail, mut verdicts, mut stopped, mut refused) = (Vec::new(), Vec::new(), false, false);
    for i in order {
        let plan = plans[i];
        if stopped {
            verdicts.push((i, Skipped));
            continue;
        }
        let (verdict, may_open) = match plan.does {
            Does::Nothing => (Unchanged, false),
            Does::Mutates if plan.may_mutate => (Mutated, false),
            Does::Mutates | Does::Rejects => (Rejected, false),
            Does::Throws | Does::WrongType => (Error, true),
            Does::Hangs => (Timeout, true),
        };
        verdicts.push((i, verdict));
        if plan.audit {
            continue;
        }
        match verdict {
            Mutated => trail.push(i),
            Unchanged => {}
            _ if may_open && plan.fail_open => {}
            _ => {
                refused = true;
                stopped = plan.may_mutate;
            }
        }
    }
    ((!refused).then_some(trail), verdicts)
}

type Sight = (usize, Vec<usize>);
type Seen = Arc<Mutex<Vec<Sight>>>;

fn native(index: usize, plan: Plan, seen: Seen) -> Native {
    Box::new(move |call| {
        let mut envelope: Value = serde_json::from_str(call.args[0].get()).unwrap();
        let trail = &envelope["message"]["params"]["arguments"]["trail"];
        seen.lock().unwrap().push((index, serde_json::from_value(trail.clone()).unwrap()));
        Box::pin(async move {
            call.ctx.wall_deadline(Duration::from_millis(plan.delay_ms)).await;
            let answer = match plan.does {
                Does::Nothing => json!({"accept": true}),
                Does::Mutates => {
                    envelope["message"]["params"]["arguments"]["trail"].as_array_mut().unwrap().push(json!(index));
                    envelope["mutated"] = json!(true);
                    envelope
                }
                Does::Rejects => json!({"accept": false, "reason": "no"}),
                Does::Throws => return Err(thrown("boom")),
                Does::Hangs => return std::future::pending().await,
                Does::WrongType => json!(index),
            };
            Ok(json_value(&answer))
        })
    })
}

fn stage(plans: &[Plan], seen: &Seen) -> Stage {
    let keys: Vec<String> = plans
        .iter()
        .enumerate()
        .map(|(i, plan)| {
            // The limit differs by hook only so that no two keys are the same.
            let (mark, mode) = (if plan.may_mutate { "" } else { "!mutate:" }, if plan.audit { "audit" } else { "enforce" });
            let (priority, fail_open, limit) = (plan.priority, plan.fail_open, 1_000 + i);
            format!(
                "      'tools/call?direction=request&priority={priority}&mode={mode}&failOpen={fail_open}&timeout={limit}ms': '{mark}policy/h{i}'\n"
            )
        })
        .collect();
    let hooks = if keys.is_empty() { "    hooks: {}\n".to_owned() } else { format!("    hooks:\n{}", keys.concat()) };
    let set = Set::new(&format!("mcpServers:\n  shop:\n{hooks}  policy: {{script: policy.js}}\n"))
        .mcp("shop", "tools: [{name: buy}]\ncalls: [{when: {tool: buy}, result: {content: [{type: text, text: sold}]}}]");
    let natives = plans.iter().enumerate();
    natives.fold(set, |set, (i, plan)| set.native("policy", &format!("h{i}"), native(i, *plan, seen.clone()))).build()
}

/// The stage, the call's result, and which hook saw which trail.
fn run(plans: &[Plan]) -> (Stage, Option<Value>, Vec<Sight>) {
    let seen = Seen::default();
    let stage = stage(plans, &seen);
    let result = stage.call("shop", "buy", json!({"trail": []})).ok().map(|output| output.value);
    let seen = seen.lock().unwrap().clone();
    (stage, result, seen)
}

fn trail_on_the_wire(stage: &Stage) -> Option<Vec<usize>> {
    let sent = stage.sent("shop", "tools/call");
    assert!(sent.len() <= 1);
    sent.first().map(|frame| serde_json::from_value(frame["params"]["arguments"]["trail"].clone()).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_chain_does_what_the_model_says(plans in prop::collection::vec(plan(), 0..=8)) {
        let (wanted, verdicts) = model(&plans);
        let (stage, result, seen) = run(&plans);
        prop_assert_eq!(&trail_on_the_wire(&stage), &wanted);
        prop_assert_eq!(result.is_some(), wanted.is_some());
        let named: Vec<(String, HookVerdict)> = verdicts.iter().map(|(i, verdict)| (format!("policy/h{i}"), *verdict)).collect();
        prop_assert_eq!(stage.verdicts(), named);
        let mut trail = Vec::new();
        let mut expected = Vec::new();
        for (i, verdict) in verdicts.iter().filter(|(_, verdict)| *verdict != Skipped) {
            expected.push((*i, trail.clone()));
            if *verdict == Mutated && !plans[*i].audit {
                trail.push(*i);
            }
        }
        prop_assert_eq!(seen, expected, "each hook sees the current message");
        prop_assert!(stage.unanswered().is_empty());
    }

    #[test]
    fn a_hook_that_says_yes_can_stand_anywhere(plans in prop::collection::vec(plan(), 0..=6), at in 0..=6_usize, may_mutate: bool, priority in -3..4_i32) {
        let identity = Plan { does: Does::Nothing, priority, may_mutate, audit: false, fail_open: false, delay_ms: 3 };
        let mut more = plans.clone();
        let at = at.min(more.len());
        more.insert(at, identity);
        // Trails name hooks by position, so those behind the new one move by one.
        let shifted = |trail: Vec<usize>| trail.into_iter().map(|i| if i >= at { i + 1 } else { i }).collect::<Vec<_>>();
        let (before, result_before, _) = run(&plans);
        let (after, result_after, _) = run(&more);
        prop_assert_eq!(trail_on_the_wire(&before).map(shifted), trail_on_the_wire(&after));
        prop_assert_eq!(result_before.map(|r| r["content"].clone()), result_after.map(|r| r["content"].clone()));
    }
}
