//! The `faults:` section: what is made to go wrong.
//!
//! Invariant: a fault that never fired fails the scenario unless it says otherwise. Deliberately no firing here.

use std::num::NonZeroU32;

use greenroom_mocks::duration::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::drivers::{Unused, is_default};
use super::{True, Where};

/// One fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// Its name in the trace.
    pub id: String,
    /// Which messages it strikes.
    pub at: Where,
    /// What happens to them.
    #[serde(rename = "do")]
    pub action: FaultAction,
    /// At most so many times (default: every time).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times: Option<NonZeroU32>,
    /// What to do if it never fired.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unused: Unused,
}

/// What a fault does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FaultAction {
    /// The message comes so much later.
    Delay(Duration),
    /// The message never comes; the connection stays.
    Hang(True),
    /// The message is thrown away; what follows it comes.
    Drop(True),
    /// An error comes in its place.
    Error(FaultError),
    /// The connection is cut.
    Disconnect(True),
    /// The peer dies.
    Crash(True),
}

/// The error that comes instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FaultError {
    /// A JSON-RPC error code, or the HTTP status of a model.
    pub code: i64,
    /// The message.
    pub message: String,
}
