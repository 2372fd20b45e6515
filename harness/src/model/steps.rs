//! The `run:` section: what happens to the host, in order.
//!
//! Invariant: a step is exactly one thing. Deliberately no loops and no conditions.

use greenroom_mocks::duration::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Expectation, Where};

/// One step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "StepParts", into = "StepParts")]
#[schemars(with = "StepParts")]
pub enum Step {
    /// A person says something.
    Send {
        /// Its name, `as`; without it turns are called `t1`, `t2`, … by their place.
        name: Option<String>,
        /// What is said, and to whom.
        send: Send,
    },
    /// An outside client asks the host something; the client introduces itself first if it has not yet.
    Call {
        /// Its name, `as`; it counts among the turns.
        name: Option<String>,
        /// Who asks what.
        call: Call,
    },
    /// An outside client sends a notification.
    Tell(Tell),
    /// An outside client hangs up.
    HangUp(String),
    /// Wait until such an event has happened since the run began.
    Await {
        /// The event.
        event: Where,
        /// Longest wait, on the scenario's clock; else the scenario's own limit.
        within: Option<Duration>,
    },
    /// Let time pass.
    Advance(Duration),
    /// Cancel a turn or call by its name.
    Cancel(String),
    /// Hold the trace so far against an expectation.
    Expect(Box<Expectation>),
}

/// A turn to start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Send {
    /// The agent asked.
    pub assistant: String,
    /// What the person says.
    pub user: String,
    /// Whether the next step waits for the turn's end.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub wait: bool,
    /// Request metadata, seen by hooks.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The conversation that it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<String>,
}

/// A request of an outside client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The client: `client.NAME` in `drivers`.
    pub client: String,
    /// `tools/call`, `resources/subscribe`, …
    pub method: String,
    /// Its params.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
    /// Whether the next step waits for the answer.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub wait: bool,
}

/// A notification of an outside client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tell {
    /// The client: `client.NAME` in `drivers`.
    pub client: String,
    /// `notifications/roots/list_changed`, …
    pub method: String,
    /// Its params.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
}

impl Step {
    /// The outside client that acts.
    pub fn client(&self) -> Option<&str> {
        match self {
            Self::Call { call, .. } => Some(&call.client),
            Self::Tell(tell) => Some(&tell.client),
            Self::HangUp(client) => Some(client),
            _ => None,
        }
    }
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for this signature")]
fn is_yes(wait: &bool) -> bool {
    *wait
}

/// A step: one of `send` or `call` (with `as`), `tell`, `hang_up`, `await` (with `within`), `advance`, `cancel`, `expect`.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Step", extend("minProperties" = 1))]
struct StepParts {
    /// Name of the turn or call that `send` or `call` starts.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// A person says something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    send: Option<Send>,
    /// An outside client asks the host something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    call: Option<Call>,
    /// An outside client sends a notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tell: Option<Tell>,
    /// An outside client hangs up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hang_up: Option<String>,
    /// Wait until such an event has happened.
    #[serde(default, rename = "await", skip_serializing_if = "Option::is_none")]
    event: Option<Where>,
    /// Longest wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    within: Option<Duration>,
    /// Let time pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    advance: Option<Duration>,
    /// Cancel a turn or call by its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cancel: Option<String>,
    /// Hold the trace so far against an expectation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expect: Option<Expectation>,
}

impl TryFrom<StepParts> for Step {
    type Error = String;

    fn try_from(parts: StepParts) -> Result<Self, Self::Error> {
        let given = [
            ("send", parts.send.is_some()),
            ("call", parts.call.is_some()),
            ("tell", parts.tell.is_some()),
            ("hang_up", parts.hang_up.is_some()),
            ("await", parts.event.is_some()),
            ("advance", parts.advance.is_some()),
            ("cancel", parts.cancel.is_some()),
            ("expect", parts.expect.is_some()),
        ];
        super::exactly_one("a step", &given)?;
        if parts.name.is_some() && parts.send.is_none() && parts.call.is_none() {
            return Err("`as` names a turn: it goes with `send` or `call`".to_owned());
        }
        if parts.within.is_some() && parts.event.is_none() {
            return Err("`within` bounds a wait: it goes with `await`".to_owned());
        }
        Ok(match parts {
            StepParts { name, send: Some(send), .. } => Self::Send { name, send },
            StepParts { name, call: Some(call), .. } => Self::Call { name, call },
            StepParts { tell: Some(tell), .. } => Self::Tell(tell),
            StepParts { hang_up: Some(client), .. } => Self::HangUp(client),
            StepParts { event: Some(event), within, .. } => Self::Await { event, within },
            StepParts { advance: Some(advance), .. } => Self::Advance(advance),
            StepParts { cancel: Some(turn), .. } => Self::Cancel(turn),
            StepParts { expect: Some(expect), .. } => Self::Expect(Box::new(expect)),
            _ => return Err("a step needs one thing to do".to_owned()),
        })
    }
}

impl From<Step> for StepParts {
    fn from(step: Step) -> Self {
        let none = Self::default();
        match step {
            Step::Send { name, send } => Self { name, send: Some(send), ..none },
            Step::Call { name, call } => Self { name, call: Some(call), ..none },
            Step::Tell(tell) => Self { tell: Some(tell), ..none },
            Step::HangUp(client) => Self { hang_up: Some(client), ..none },
            Step::Await { event, within } => Self { event: Some(event), within, ..none },
            Step::Advance(advance) => Self { advance: Some(advance), ..none },
            Step::Cancel(turn) => Self { cancel: Some(turn), ..none },
            Step::Expect(expect) => Self { expect: Some(*expect), ..none },
        }
    }
}
