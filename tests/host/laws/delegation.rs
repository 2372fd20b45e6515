//! Laws of delegation: its limits, its tools, its hooks, its end.
//!
//! Invariant: agents are whole agents of a config, asked by a turn. Deliberately nothing of batches: those have their own.

use std::collections::BTreeSet;
use std::time::Duration;

use greenroom_boundary::trace::{EventKind, Outcome, TraceEvent};
use proptest::prelude::*;
use serde_json::{Value, json};
use test_case::test_case;

use super::agents::{Deed, entries, source, with_agents, with_slow};
use super::check::{Engine, Paste, law};
use super::plan::{Does, Hook, Target, World, world};
use super::world::{Isolate, builder, decisions_at};
use crate::support::{Set, Stage};

/// Agents by number, and what they do.
#[derive(Clone, Debug)]
struct Agents {
    deeds: Vec<(String, Deed)>,
    policy: String,
}

impl Paste for Agents {
    fn paste(&self) -> String {
        let scripts = self.deeds.iter().map(|(name, deed)| format!("// {name}.js\n{}", source(deed)));
        format!("# greenroom.yaml\n{}{}", self.yaml(), scripts.collect::<Vec<_>>().concat())
    }
}

impl Agents {
    fn yaml(&self) -> String {
        format!("{}agents:\n{}mcpServers:\n  slow: {{}}\n", self.policy, entries(&self.deeds))
    }

    fn stage(&self, engine: &Isolate) -> Stage {
        with_agents(with_slow(Set::new(&self.yaml())), engine, &self.deeds).build()
    }
}

fn name(i: usize) -> String {
    format!("a{i}")
}

/// A walk over agents that each hand on to one other, or end it.
fn walks() -> impl Strategy<Value = (Agents, (u32, bool))> {
    let next = prop::collection::vec((prop::option::weighted(0.8, 0..5_usize), any::<bool>()), 5);
    (next, 1..7_u32, any::<bool>()).prop_map(|(next, max_depth, cycles)| {
        let deed = |(to, before): (Option<usize>, bool)| match to {
            Some(to) if before => Deed::Hands(name(to)),
            Some(to) => Deed::HandsAfter(name(to)),
            None => Deed::Nothing,
        };
        let deeds = next.into_iter().enumerate().map(|(i, next)| (name(i), deed(next))).collect();
        let word = if cycles { "allow" } else { "reject" };
        let policy = format!("policy: {{delegation: {{max_depth: {max_depth}, cycles: {word}}}}}\n");
        (Agents { deeds, policy }, (max_depth, cycles))
    })
}

/// Where the walk from `a0` goes, and why it ends early.
fn walk(agents: &Agents, max_depth: u32, cycles: bool) -> (Vec<String>, Option<&'static str>) {
    let mut path = vec![name(0)];
    loop {
        let (_, deed) = agents.deeds.iter().find(|(name, _)| Some(name) == path.last()).unwrap();
        let (Deed::Hands(to) | Deed::HandsAfter(to)) = deed else { return (path, None) };
        let is_circle = path.contains(to);
        path.push(to.clone());
        if is_circle && !cycles {
            return (path, Some("DELEGATION_CYCLE"));
        }
        if path.len() - 1 > max_depth as usize {
            return (path, Some("DELEGATION_DEPTH"));
        }
    }
}

#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_depth_and_circles_are_refused_with_the_path(on: Engine) {
    law(on, walks(), |engine, (agents, (max_depth, cycles))| {
        let stage = agents.stage(engine);
        let reply = stage.turn("a0", "go");
        let (path, refusal) = walk(agents, *max_depth, *cycles);
        prop_assert_eq!(reply.error.as_ref().map(|error| error.code.as_str()), refusal);
        if let Some(error) = reply.error {
            prop_assert!(error.message.ends_with(&path.join(" > ")), "{} does not show {path:?}", error.message);
        }
        let reached: Vec<String> = stage
            .events()
            .into_iter()
            .filter_map(|event| match event.kind {
                EventKind::Request { boundary, method, .. } if method == "turn" => Some(boundary.replace("agent.", "")),
                _ => None,
            })
            .collect();
        let turns = path.len() - usize::from(refusal.is_some());
        prop_assert_eq!(reached, &path[..turns]);
        Ok(())
    });
}

/// References of agents to servers and tools.
#[derive(Clone, Debug)]
struct Tools(Vec<BTreeSet<&'static str>>);

impl Paste for Tools {
    fn paste(&self) -> String {
        self.yaml()
    }
}

impl Tools {
    fn yaml(&self) -> String {
        let last = self.0.len() - 1;
        let agents = self.0.iter().enumerate().map(|(i, tools)| {
            let script = if i == last { String::new() } else { format!("script: a{i}.js, ") };
            let tools: Vec<&str> = tools.iter().copied().collect();
            format!("  a{i}: {{{script}connector: main, tools: [{}]}}\n", tools.join(", "))
        });
        format!("agents:\n{}mcpServers:\n  s0: {{}}\n  s1: {{}}\n", agents.collect::<String>())
    }

    /// The tools of an agent, as its model should see them.
    fn shown(&self, agent: usize) -> BTreeSet<String> {
        let all = |reference: &&str| match reference.split_once('/') {
            Some((server, tool)) => vec![format!("{server}__{tool}")],
            None => vec![format!("{reference}__x"), format!("{reference}__y")],
        };
        self.0[agent].iter().flat_map(all).collect()
    }
}

/// Neither a delegator's tools nor a sibling's: what an agent was given, no more and no less.
#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_a_delegate_sees_exactly_its_own_tools(on: Engine) {
    let references = ["s0/x", "s0/y", "s1/x", "s1/y", "s1"];
    let sets = prop::sample::subsequence(references.to_vec(), 0..=4).prop_map(|list| {
        let mut set: BTreeSet<&str> = list.into_iter().collect();
        if set.contains("s1") {
            set.retain(|reference| !reference.starts_with("s1/"));
        }
        set
    });
    law(on, prop::collection::vec(sets, 1..=4).prop_map(Tools), |engine, tools| {
        let last = tools.0.len() - 1;
        let deeds: Vec<(String, Deed)> = (0..last).map(|i| (name(i), Deed::HandsAfter(name(i + 1)))).collect();
        let server = "tools: [{name: x, inputSchema: {type: object}}, {name: y, inputSchema: {type: object}}]";
        let model = format!("- {{id: any, repeat: {}, reply: {{text: hello}}}}", last + 1);
        let set = Set::new(&tools.yaml()).mcp("s0", server).mcp("s1", server).model("main", &model);
        let stage = with_agents(set, engine, &deeds).build();
        let reply = stage.turn("a0", "go");
        prop_assert_eq!(reply.outcome, Outcome::Ok, "{:?}", reply.error);
        let asked = stage.requests("llm.main", "chat");
        prop_assert_eq!(asked.len(), last + 1);
        for (i, body) in asked.iter().enumerate() {
            let seen = body["tools"].as_array().into_iter().flatten().map(|tool| tool["name"].as_str().unwrap().to_owned());
            prop_assert_eq!(seen.collect::<BTreeSet<_>>(), tools.shown(i), "agent a{}: {}", i, body);
        }
        Ok(())
    });
}

/// A chain of agents above the one that calls, by their way of handing on.
fn ways() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0..3_u8, 0..=4)
}

/// A world whose call is made by the agent `leaf`, below these.
fn below(engine: &Isolate, world: &World, ways: &[u8]) -> (Stage, Value) {
    let mut agents = String::from("  leaf: {script: leaf.js}\n");
    let mut deeds = vec![("leaf".to_owned(), Deed::Calls("shop", "buy", json!({"trail": []})))];
    for (i, way) in ways.iter().enumerate() {
        let next = if i + 1 == ways.len() { "leaf".to_owned() } else { name(i + 1) };
        let deed = match way {
            0 => Deed::Hands(next),
            1 => Deed::HandsAfter(next),
            _ => Deed::Asks("All", vec![next]),
        };
        agents.push_str(&format!("  {}: {{script: {0}.js}}\n", name(i)));
        deeds.push((name(i), deed));
    }
    let set = builder(engine, world, &agents);
    let stage = with_agents(set, engine, &deeds).build();
    let first = if ways.is_empty() { "leaf".to_owned() } else { name(0) };
    let mut data = stage.turn(&first, "go").data;
    while let Some(inner) = data.pointer("/results/0/response/next") {
        data = inner.clone();
    }
    (stage, data)
}

/// The same call has the same hooks with the same outcome, however many agents are above whoever makes it.
#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_the_same_hooks_hold_at_any_depth(on: Engine) {
    law(on, (world(6), ways()), |engine, (world, ways)| {
        let world = World { target: Target::External, ..world.clone() };
        let ((direct, data), (deep, deep_data)) = (below(engine, &world, &[]), below(engine, &world, ways));
        prop_assert_eq!(decisions_at(&direct, "mcp.shop"), decisions_at(&deep, "mcp.shop"));
        prop_assert_eq!(direct.sent("shop", "tools/call"), deep.sent("shop", "tools/call"));
        prop_assert_eq!(data, deep_data);
        Ok(())
    });
}

/// A hook that says no says it to every delegate.
#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_a_refusal_holds_at_every_depth(on: Engine) {
    law(on, (world(5), ways(), 0..=5_usize), |engine, (world, ways, at)| {
        let mut hooks = world.hooks.clone();
        hooks.insert((*at).min(hooks.len()), Hook::plain(8, Does::Rejects));
        let world = World { target: Target::External, fails: false, hooks };
        let (stage, data) = below(engine, &world, ways);
        prop_assert!(stage.sent("shop", "tools/call").is_empty());
        prop_assert!(data["code"].as_str().is_some_and(|code| code.starts_with("HOOK_")), "{data}");
        Ok(())
    });
}

impl Paste for (World, Vec<u8>, usize) {
    fn paste(&self) -> String {
        format!("{}\n// below {:?}, a refusal at {}", self.0.paste(), self.1, self.2)
    }
}

/// A tree of agents, each of which asks several others or waits in a tool.
fn trees() -> impl Strategy<Value = Agents> {
    let nodes = prop::collection::vec((prop::collection::vec(1..4_usize, 0..=3), 1..3_000_u64), 6);
    let how = prop::sample::select(vec!["All", "Race", "Any"]);
    (nodes, how).prop_map(|(nodes, how)| {
        let count = nodes.len();
        let deeds = nodes.into_iter().enumerate().map(|(i, (steps, ms))| {
            let below: Vec<String> = steps.iter().map(|step| i + step).filter(|j| *j < count).map(name).collect();
            let deed = if below.is_empty() { Deed::Calls("slow", "wait", json!({"ms": ms})) } else { Deed::Asks(how, below) };
            (name(i), deed)
        });
        Agents { deeds: deeds.collect(), policy: String::new() }
    })
}

/// Something that begins, or reaches the client. That a hook was cancelled is told at the end.
fn is_progress(event: &TraceEvent) -> bool {
    matches!(event.kind, EventKind::Request { .. } | EventKind::Delegate { .. } | EventKind::Output { .. })
}

/// When a turn is cancelled, all that was begun for it ends in that very instant, as cancelled, and nothing begins.
#[test_case(Engine::Mock; "on the mock")]
#[cfg_attr(feature = "v8", test_case(Engine::V8; "on v8"))]
fn law_a_cancelled_turn_takes_its_descendants_along(on: Engine) {
    law(on, (trees(), 1..3_000_u64), |engine, (agents, cancel_ms)| {
        let stage = agents.stage(engine);
        let reply = stage.turn_until("a0", "go", Some(Duration::from_millis(*cancel_ms)));
        if reply.outcome == Outcome::Ok {
            prop_assert!(stage.clock_ms() <= *cancel_ms);
            return Ok(());
        }
        prop_assert_eq!(reply.outcome, Outcome::Cancelled);
        prop_assert_eq!(stage.clock_ms(), *cancel_ms);
        prop_assert_eq!(stage.unanswered(), Vec::<String>::new(), "all has ended with the turn");
        let now = cancel_ms * 1_000_000;
        for event in stage.events() {
            if let EventKind::Response { boundary, outcome: Outcome::Ok, .. } = &event.kind {
                prop_assert!(event.vt < now || boundary != "agent.a0", "{event:?}");
            }
            prop_assert!(event.vt < now || !is_progress(&event), "begun at the end: {event:?}");
        }
        stage.run(stage.clock.settle());
        prop_assert!(stage.events().iter().all(|event| event.vt <= now || !is_progress(event)), "something began later");
        Ok(())
    });
}
