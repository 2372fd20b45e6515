//! What a hook did, as plain data.
//!
//! Invariant: all but the fields named `wall_…` follows from the inputs. Deliberately no judging.

use greenroom_boundary::isolate::StackFrame;
use serde::Serialize;
use serde_json::Value;

/// What a hook did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effects {
    /// The function.
    pub hook: &'static str,
    /// The script, as it was named.
    pub script: String,
    /// The engine.
    pub engine: &'static str,
    /// The seed of what is random.
    pub seed: u64,
    /// Every operation of `ctx` and every line of `console`, in order.
    pub steps: Vec<Step>,
    /// The messages as a client shows them at the end.
    pub messages: Vec<Shown>,
    /// Events on the client's stream that are no part of a message.
    pub events: Vec<Value>,
    /// What changed in the memories.
    pub memory: Vec<MemoryChange>,
    /// What it returned; absent if that was `undefined`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<Value>,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// Peers that answered by default, since no mock was given for them.
    pub by_default: Vec<String>,
    /// Scripted answers that nobody asked for.
    pub unused: Vec<String>,
    /// How long it took on the virtual clock.
    pub virtual_ms: f64,
    /// How long it really took.
    pub wall_us: u64,
}

/// One operation, or one line of `console`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// The operation's path below `ctx`, or `console.LEVEL`.
    pub op: String,
    /// Its arguments.
    pub args: Vec<Value>,
    /// What it gave; absent if that was `undefined`, or if it did not end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// What it threw: code and message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<(String, String)>,
    /// Whether it ended before the hook did.
    pub ended: bool,
    /// How often its callback was called.
    #[serde(skip_serializing_if = "is_zero")]
    pub callbacks: u64,
    /// When it began on the virtual clock, from the hook's start.
    pub at_ms: f64,
    /// How long it took on the virtual clock.
    pub virtual_ms: f64,
    /// How long it really took.
    pub wall_us: u64,
}

// serde's `skip_serializing_if` passes a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde fixes the signature")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A message as a client shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shown {
    /// Its id.
    pub id: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its props, every delta applied.
    pub props: Value,
    /// Its block.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block: Option<String>,
    /// Whether it was closed.
    pub ended: bool,
}

/// A key of a memory that is not as it was.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MemoryChange {
    /// `context`, `chat`, `user` or `team`.
    pub space: &'static str,
    /// The key.
    pub key: String,
    /// What it held; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What it holds; absent if it is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
    /// How long it will stay from now on; absent if it stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// Why a hook failed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// Stable code.
    pub code: String,
    /// What happened.
    pub message: String,
    /// Where, innermost first.
    pub frames: Vec<StackFrame>,
    /// The line of the innermost place, with a caret below it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
}
