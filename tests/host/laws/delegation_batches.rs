//! Laws of `ctx.agent.All`, `Any` and `Race`: results in request order, one winner, ids of their own.
//!
//! Invariant: delegates end at times that differ, so that who is first is a matter of the case alone. Deliberately no ties:
//! those are pinned by scenarios.

use std::collections::BTreeSet;

use greenroom_boundary::trace::EventKind;
use proptest::prelude::*;
use serde_json::{Value, json};
use test_case::test_case;

use super::agents::{Deed, entries, with_agents, with_slow};
use super::check::{Engine, Paste, law};
use super::world::Isolate;
use crate::support::{Set, Stage};

/// A delegate: when it ends, and whether well.
#[derive(Clone, Copy, Debug)]
struct Delegate {
    ms: u64,
    fails: bool,
}

impl Paste for Vec<Delegate> {}
impl Paste for Vec<(u32, u64)> {}

fn delegates() -> impl Strategy<Value = Vec<Delegate>> {
    let times = prop::sample::subsequence((1..=40_u64).map(|n| n * 50).collect::<Vec<_>>(), 1..=8).prop_shuffle();
    (times, prop::collection::vec(prop::bool::weighted(0.4), 8))
        .prop_map(|(times, fails)| times.into_iter().zip(fails).map(|(ms, fails)| Delegate { ms, fails }).collect())
}

fn stage(engine: &Isolate, how: &'static str, deeds: Vec<Deed>) -> Stage {
    let names: Vec<String> = (0..deeds.len()).map(|i| format!("d{i}")).collect();
    let mut agents: Vec<(String, Deed)> = names.iter().cloned().zip(deeds).collect();
    agents.push(("desk".to_owned(), Deed::Asks(how, names)));
    let config = format!("agents:\n{}mcpServers:\n  slow: {{}}\n", entries(&agents));
    with_agents(with_slow(Set::new(&config)), engine, &agents).build()
}

/// The results of the batch, and when it ended.
fn batch(engine: &Isolate, how: &'static str, delegates: &[Delegate]) -> (Vec<Value>, u64) {
    let deed = |d: &Delegate| Deed::Needs("slow", "wait", json!({"ms": d.ms, "fails": d.fails}));
    let stage = stage(engine, how, delegates.iter().map(deed).collect());
    let reply = stage.turn("desk", "go");
    assert!(reply.error.is_none(), "{reply:?}");
    (reply.data["results"].as_array().unwrap().clone(), stage.clock_ms())
}

fn is_in_order(results: &[Value]) -> bool {
    results.iter().enumerate().all(|(i, result)| result["agent_id"] == json!(format!("d{i}")))
}

#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_all_gives_every_result_in_request_order(on: Engine) {
    law(on, delegates(), |engine, delegates| {
        let (results, took) = batch(engine, "All", delegates);
        prop_assert!(results.len() == delegates.len() && is_in_order(&results), "{results:?}");
        for (delegate, result) in delegates.iter().zip(&results) {
            prop_assert_eq!(result.get("error").is_some(), delegate.fails, "{}", result);
        }
        prop_assert_eq!(took, delegates.iter().map(|delegate| delegate.ms).max().unwrap());
        Ok(())
    });
}

/// `Any`: the first success; `Race`: the first end. The others are cancelled, and nobody waits for them.
#[test_case("Any", Engine::Mock; "any on the mock")]
#[test_case("Race", Engine::Mock; "race on the mock")]
#[cfg_attr(feature = "v8", test_case("Any", Engine::V8; "any on v8"))]
#[cfg_attr(feature = "v8", test_case("Race", Engine::V8; "race on v8"))]
fn law_the_first_one_wins_and_the_others_are_cancelled(how: &'static str, on: Engine) {
    law(on, delegates(), |engine, delegates| {
        let (results, took) = batch(engine, how, delegates);
        prop_assert!(results.len() == delegates.len() && is_in_order(&results), "{results:?}");
        let counts = |delegate: &&Delegate| how == "Race" || !delegate.fails;
        let winner = delegates.iter().filter(counts).map(|delegate| delegate.ms).min();
        let end = winner.unwrap_or_else(|| delegates.iter().map(|delegate| delegate.ms).max().unwrap());
        prop_assert_eq!(took, end);
        for (delegate, result) in delegates.iter().zip(&results) {
            prop_assert_eq!(result.get("winner").is_some(), Some(delegate.ms) == winner, "{}", result);
            prop_assert_eq!(result["code"] == json!("CANCELLED"), delegate.ms > end, "{}", result);
            prop_assert_eq!(result.get("error").is_some(), delegate.fails || delegate.ms > end, "{}", result);
        }
        Ok(())
    });
}

/// No two messages, spans or scopes of delegates that run side by side are the same.
#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_ids_of_delegates_side_by_side_differ(on: Engine) {
    law(on, prop::collection::vec((1..4_u32, 0..300_u64), 2..=5), |engine, speakers| {
        let stage = stage(engine, "All", speakers.iter().map(|(times, ms)| Deed::Speaks(*times, *ms)).collect());
        let reply = stage.turn("desk", "go");
        prop_assert!(reply.error.is_none(), "{reply:?}");
        let output = stage.output();
        let starts = output.iter().filter(|message| message["props"]["event"] == "message_start");
        let ids: Vec<&str> = starts.map(|message| message["props"]["data"]["message_id"].as_str().unwrap()).collect();
        let said: u32 = speakers.iter().map(|(times, _)| times).sum();
        prop_assert_eq!(ids.len(), said as usize);
        prop_assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{:?}", ids);
        let spans: Vec<u64> = stage
            .events()
            .into_iter()
            .filter_map(|event| match event.kind {
                EventKind::Request { span, .. } => Some(span.0),
                _ => None,
            })
            .collect();
        prop_assert_eq!(spans.iter().collect::<BTreeSet<_>>().len(), spans.len());
        let turns = stage.events().into_iter().filter_map(|event| match event.kind {
            EventKind::Request { method, .. } if method == "turn" => Some(event.scope.to_string()),
            _ => None,
        });
        let scopes: Vec<String> = turns.collect();
        prop_assert_eq!(scopes.iter().collect::<BTreeSet<_>>().len(), speakers.len() + 1, "{:?}", scopes);
        Ok(())
    });
}
