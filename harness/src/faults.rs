//! Injected faults: wrappers over the LLM and MCP drivers that misbehave on demand.
//!
//! Invariant: a fault fires at the nth exchange that matches, at most `times` times, and says so in the trace; one that did
//! not fire is listed. Frames that no fault touches keep their order. Deliberately no randomness: which faults there are is
//! decided before the run.

mod llm;
mod mcp;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_boundary::trace::EventKind;
use greenroom_boundary::{Scope, Tracer};
use serde_json::{Value, json};

pub use llm::FaultyLlm;
pub use mcp::FaultyMcp;

/// Which side of an exchange a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultPhase {
    /// The request on its way out.
    Request,
    /// The answer on its way in.
    Response,
}

/// What a fault does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultAction {
    /// The message arrives that much later; others overtake it.
    Delay(Duration),
    /// The peer takes the request and never answers.
    Hang,
    /// The message is lost: a request never leaves, an answer never arrives.
    Drop,
    /// An error takes the answer's place. As a request fault, the request never leaves.
    Error {
        /// JSON-RPC error code, or HTTP status of an LLM.
        code: i64,
        /// Its message.
        message: String,
    },
    /// The connection breaks instead of the message.
    Disconnect,
}

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultSpec {
    /// Its name in the trace.
    pub id: String,
    /// `mcp.NAME` or `llm.NAME`.
    pub boundary: String,
    /// `tools/call`, `chat`, …; absent means every request.
    pub method: Option<String>,
    /// Which side.
    pub phase: FaultPhase,
    /// The matching exchange at which it fires first, from 1.
    pub nth: u32,
    /// How many matching exchanges in a row it strikes; 0 means all from `nth` on.
    pub times: u32,
    /// What it does.
    pub action: FaultAction,
}

/// The faults of a run. Clones share the counters.
#[derive(Clone, Debug)]
pub struct FaultPlan(Arc<Mutex<Vec<Armed>>>);

#[derive(Debug)]
struct Armed {
    spec: FaultSpec,
    seen: u32,
    fired: u32,
}

/// What an exchange has to suffer.
#[derive(Clone, Debug)]
struct Strike {
    id: String,
    phase: FaultPhase,
    action: FaultAction,
}

impl FaultPlan {
    /// Arms these faults.
    pub fn new(faults: Vec<FaultSpec>) -> Self {
        let armed = faults.into_iter().map(|spec| Armed { spec, seen: 0, fired: 0 }).collect();
        Self(Arc::new(Mutex::new(armed)))
    }

    /// The faults that never fired, by id.
    pub fn unfired(&self) -> Vec<String> {
        self.armed().iter().filter(|armed| armed.fired == 0).map(|armed| armed.spec.id.clone()).collect()
    }

    fn touches(&self, boundary: &str) -> bool {
        self.armed().iter().any(|armed| armed.spec.boundary == boundary)
    }

    /// Counts an exchange; the first fault in the plan's order whose turn it is strikes it.
    fn exchange(&self, boundary: &str, method: &str) -> Option<Strike> {
        let mut strike = None;
        for armed in self.armed().iter_mut() {
            let Armed { spec, seen, .. } = armed;
            if spec.boundary != boundary || spec.method.as_deref().is_some_and(|wanted| wanted != method) {
                continue;
            }
            *seen += 1;
            let first = spec.nth.max(1);
            let in_turn = *seen >= first && (spec.times == 0 || *seen - first < spec.times);
            if in_turn && strike.is_none() {
                strike = Some(Strike { id: spec.id.clone(), phase: spec.phase, action: spec.action.clone() });
            }
        }
        strike
    }

    /// A fault takes effect now.
    fn fired(&self, tracer: &Tracer, boundary: &str, method: &str, strike: &Strike) {
        for armed in self.armed().iter_mut().filter(|armed| armed.spec.id == strike.id) {
            armed.fired += 1;
        }
        let phase = match strike.phase {
            FaultPhase::Request => "request",
            FaultPhase::Response => "response",
        };
        let body = json!({ "method": method, "phase": phase, "do": strike.action.body() });
        let kind = EventKind::Fault { id: strike.id.clone(), boundary: boundary.to_owned(), body };
        tracer.emit(&Scope::default(), None, kind);
    }

    fn armed(&self) -> MutexGuard<'_, Vec<Armed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FaultAction {
    fn body(&self) -> Value {
        match self {
            Self::Delay(by) => json!({ "delay_ms": u64::try_from(by.as_millis()).unwrap_or(u64::MAX) }),
            Self::Hang => json!({ "hang": true }),
            Self::Drop => json!({ "drop": true }),
            Self::Error { code, message } => json!({ "error": { "code": code, "message": message } }),
            Self::Disconnect => json!({ "disconnect": true }),
        }
    }
}
