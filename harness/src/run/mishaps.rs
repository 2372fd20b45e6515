//! The `faults:` section as a plan for the fault wrappers, and the reckoning afterwards.
//!
//! Invariant: a fault that the wrappers cannot do is an error, never left out; one that did not fire is told.
//! Deliberately no striking here.

use super::Verdict;
use super::rig::RigError;
use super::stage::Trouble;
use crate::faults::{FaultAction, FaultPhase, FaultPlan, FaultSpec};
use crate::model::{self, Fault, Located, Phase, Scenario, Unused, Where};

/// The plan of a scenario; none if it has no faults.
pub(super) fn plan(scenario: &Scenario) -> Result<Option<FaultPlan>, RigError> {
    if scenario.faults.is_empty() {
        return Ok(None);
    }
    scenario.faults.iter().map(spec).collect::<Result<Vec<_>, _>>().map(|specs| Some(FaultPlan::new(specs)))
}

fn spec(fault: &Located<Fault>) -> Result<FaultSpec, RigError> {
    let no = |why: &str| Err(RigError::new("FAULT_UNSUPPORTED", format!("fault {}: {why}", fault.id)).at(fault.line));
    let at = &fault.at;
    let boundary = at.boundary.as_str();
    if !(boundary.starts_with("mcp.") || boundary.starts_with("llm.")) || boundary.contains('*') {
        return no("faults strike one `mcp.NAME` or `llm.NAME` so far");
    }
    if let Some(key) = unsupported(at) {
        return no(&format!("`{key}` cannot narrow a fault so far; use `method` and `nth`"));
    }
    let phase = match at.phase {
        None | Some(Phase::Request) => FaultPhase::Request,
        Some(Phase::Response) => FaultPhase::Response,
        Some(_) => return no("faults strike the phases request and response so far"),
    };
    let action = match &fault.action {
        model::FaultAction::Delay(by) => FaultAction::Delay(by.to_std()),
        model::FaultAction::Hang(_) => FaultAction::Hang,
        model::FaultAction::Drop(_) => FaultAction::Drop,
        model::FaultAction::Error(error) => FaultAction::Error { code: error.code, message: error.message.clone() },
        model::FaultAction::Disconnect(_) | model::FaultAction::Crash(_) => FaultAction::Disconnect,
    };
    // `nth` means that event alone; without it a fault strikes `times` times from the first on, or always (0).
    let (nth, times) = match at.nth {
        Some(nth) => (nth.get(), 1),
        None => (1, fault.times.map_or(0, u32::from)),
    };
    Ok(FaultSpec { id: fault.id.clone(), boundary: boundary.to_owned(), method: at.method.clone(), phase, nth, times, action })
}

fn unsupported(at: &Where) -> Option<&'static str> {
    let Where { assistant, hook, body, outcome, .. } = at;
    [("assistant", assistant.is_some()), ("hook", hook.is_some()), ("match", body.is_some()), ("outcome", outcome.is_some())]
        .into_iter()
        .find_map(|(key, given)| given.then_some(key))
}

/// What is to be said about faults that did not fire.
pub(super) fn reckon(scenario: &Scenario, plan: &FaultPlan) -> (Vec<Trouble>, Vec<String>) {
    let unfired = plan.unfired();
    let (mut troubles, mut notes) = (Vec::new(), Vec::new());
    for fault in scenario.faults.iter().filter(|fault| unfired.contains(&fault.id)) {
        match fault.unused {
            Unused::Allow => {}
            Unused::Warn => notes.push(format!("fault {} never fired", fault.id)),
            Unused::Fail => troubles.push(Trouble {
                verdict: Verdict::Vacuous,
                code: "FAULT_UNUSED",
                line: fault.line,
                what: format!("fault {} to fire at {}", fault.id, fault.at.describe()),
                message: "it never fired; correct `at`, or say `unused: allow`".to_owned(),
            }),
        }
    }
    (troubles, notes)
}
