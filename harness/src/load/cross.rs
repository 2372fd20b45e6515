//! What must agree between the parts of a scenario.
//!
//! Invariant: a name that refers to something must find it, and every scenario expects something.

use std::collections::BTreeMap;

use greenroom_mocks::pattern::nearest;

use super::node::{Node, Problem};
use crate::model::{Check, Expectation, Scenario, Step};

/// Everything that does not agree.
pub(crate) fn check(scenario: &Scenario, root: &Node) -> Vec<Problem> {
    let mut problems = Vec::new();
    problems.extend(turns(scenario, root));
    problems.extend(clients(scenario, root));
    problems.extend(faults(scenario, root));
    let expects = !scenario.expect.is_empty() || scenario.run.iter().any(|step| matches!(step.value, Step::Expect(_)));
    if !expects {
        problems.push(
            Problem::new(root.span, "the scenario expects nothing, so it cannot fail")
                .help("add `expect:` with at least one expectation, such as `- invariant: every-request-answered`"),
        );
    }
    problems
}

fn turns(scenario: &Scenario, root: &Node) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut seen: Vec<String> = Vec::new();
    let all = scenario.turn_names();
    for (index, step) in scenario.run.iter().enumerate() {
        let index_text = index.to_string();
        let at = |key: &str| root.nearest(["run", &index_text, key]).span;
        match &step.value {
            Step::Send { .. } | Step::Call { .. } => {
                let Some(name) = scenario.turn_name(index) else { continue };
                if seen.contains(&name) {
                    problems.push(Problem::new(at("as"), format!("two turns are called `{name}`")));
                }
                seen.push(name);
            }
            Step::Cancel(turn) if !seen.contains(turn) => {
                let problem = Problem::new(at("cancel"), format!("no turn called `{turn}` was sent before this step"));
                problems.push(problem.maybe_help(meant(turn, &seen)));
            }
            Step::Expect(expect) => {
                problems.extend(reply_of(expect, &seen, root.nearest(["run", &index_text, "expect", "reply", "of"])));
            }
            _ => {}
        }
    }
    for (index, expect) in scenario.expect.iter().enumerate() {
        problems.extend(reply_of(&expect.value, &all, root.nearest(["expect", &index.to_string(), "reply", "of"])));
    }
    problems
}

fn reply_of(expect: &Expectation, turns: &[String], node: &Node) -> Option<Problem> {
    let Check::Reply(reply) = &expect.check else { return None };
    match &reply.of {
        Some(turn) if !turns.contains(turn) => {
            Some(Problem::new(node.span, format!("no turn is called `{turn}`")).maybe_help(meant(turn, turns)))
        }
        None if turns.is_empty() => Some(Problem::new(node.span, "`reply` has no turn to look at")),
        _ => None,
    }
}

fn meant(turn: &str, turns: &[String]) -> Option<String> {
    let near = nearest(turn, turns.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?"));
    let all = || format!("the turns are `{}`", turns.join("`, `"));
    near.or_else(|| (!turns.is_empty()).then(all))
}

fn clients(scenario: &Scenario, root: &Node) -> Vec<Problem> {
    let known: Vec<&str> = scenario.drivers.client.keys().map(String::as_str).collect();
    let mut problems = Vec::new();
    for (index, step) in scenario.run.iter().enumerate() {
        let Some(client) = step.value.client().filter(|client| !known.contains(client)) else { continue };
        let index = index.to_string();
        let key = if matches!(step.value, Step::Tell(_)) { "tell" } else { "call" };
        let node = match &step.value {
            Step::HangUp(_) => root.nearest(["run", &index, "hang_up"]),
            _ => root.nearest(["run", &index, key, "client"]),
        };
        let problem =
            Problem::new(node.span, format!("no client is called `{client}`: list `client.{client}` under `drivers`"));
        problems.push(problem.maybe_help(nearest(client, known.iter().copied()).map(|near| format!("did you mean `{near}`?"))));
    }
    problems
}

fn faults(scenario: &Scenario, root: &Node) -> Vec<Problem> {
    let mut first: BTreeMap<&str, usize> = BTreeMap::new();
    let mut problems = Vec::new();
    for (index, fault) in scenario.faults.iter().enumerate() {
        if first.insert(&fault.id, index).is_some() {
            let span = root.nearest(["faults", &index.to_string(), "id"]).span;
            problems.push(Problem::new(span, format!("two faults are called `{}`", fault.id)));
        }
    }
    problems
}
