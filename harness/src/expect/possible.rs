//! Can an address mean any event of this scenario at all?
//!
//! Invariant: "no" is said only when the scenario itself shows it: a boundary that has no driver and no agent, a hook that
//! no section defines, a phase that the boundary never has. Deliberately silent about parts that a config file names.

use greenroom_boundary::trace::Outcome;

use super::events::phases_of;
use crate::model::{Phase, Scenario, Where, glob};

/// Why no event can be meant, and what was perhaps meant instead.
pub(super) fn why_not(event: &Where, scenario: &Scenario) -> Option<String> {
    phase_problem(event)
        .or_else(|| boundary_problem(event, scenario))
        .or_else(|| assistant_problem(event, scenario))
        .or_else(|| hook_problem(event, scenario))
}

fn phase_problem(event: &Where) -> Option<String> {
    let boundary = event.boundary.as_str();
    if let Some(phase) = event.phase
        && !phases_of(boundary).contains(&phase)
    {
        return Some(format!("no event at {boundary} has the phase {}", super::events::phase_word(phase)));
    }
    if event.outcome.is_some_and(|_: Outcome| !matches!(event.phase, None | Some(Phase::Response | Phase::StimulusEnd))) {
        return Some("only a response or the end of a stimulus has an outcome".to_owned());
    }
    if event.hook.is_some() && !matches!(event.phase, None | Some(Phase::Hook)) {
        return Some("only an event of phase hook has a hook".to_owned());
    }
    None
}

fn boundary_problem(event: &Where, scenario: &Scenario) -> Option<String> {
    let (kind, name) = event.boundary.as_str().split_once('.')?;
    let drivers = &scenario.drivers;
    let known: Vec<&String> = match kind {
        "llm" => drivers.llm.keys().collect(),
        "mcp" => drivers.mcp.keys().collect(),
        "cli" => drivers.cli.keys().collect(),
        "client" => drivers.client.keys().collect(),
        "agent" if assistants_are_known(scenario) => scenario.host.assistants.keys().collect(),
        _ => return None,
    };
    if known.iter().any(|known| glob(known, name) || glob(name, known)) {
        return None;
    }
    Some(format!("{} is not in this scenario{}", event.boundary, list(kind, &known)))
}

fn list(kind: &str, known: &[&String]) -> String {
    if known.is_empty() {
        return format!(", which has no {kind}.*");
    }
    let names: Vec<_> = known.iter().map(|name| format!("{kind}.{name}")).collect();
    format!("; it has {}", names.join(", "))
}

/// Nothing but the `assistants` section can define an agent.
fn assistants_are_known(scenario: &Scenario) -> bool {
    scenario.host.config.is_none() && scenario.host.inline.is_empty()
}

fn assistant_problem(event: &Where, scenario: &Scenario) -> Option<String> {
    let wanted = event.assistant.as_deref().filter(|_| assistants_are_known(scenario))?;
    let known = &scenario.host.assistants;
    if known.keys().any(|name| glob(wanted, name)) {
        return None;
    }
    Some(format!("no assistant is named {wanted}; there are {}", known.keys().cloned().collect::<Vec<_>>().join(", ")))
}

fn hook_problem(event: &Where, scenario: &Scenario) -> Option<String> {
    hook_is_unknown(event.hook.as_deref()?, scenario)
}

/// Why a hook of this id cannot run here.
pub(super) fn hook_is_unknown(wanted: &str, scenario: &Scenario) -> Option<String> {
    if !assistants_are_known(scenario) {
        return None;
    }
    let mut known: Vec<String> = scenario.host.hooks.iter().map(|hook| hook.id.clone()).collect();
    for (name, assistant) in &scenario.host.assistants {
        if assistant.script.is_some() || assistant.script_inline.is_some() {
            known.extend(["Create", "Next"].map(|function| format!("{name}/{function}")));
        }
    }
    if known.iter().any(|name| glob(wanted, name)) {
        return None;
    }
    Some(format!(
        "no hook is named {wanted}; there are {}",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    ))
}
