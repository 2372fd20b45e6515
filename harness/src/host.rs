//! The host under test: what the harness asks of any host, ours in process or a foreign one.
//!
//! Invariant: the harness knows a host only through these traits and through the trace that it writes. Deliberately no
//! Greenroom internals: the in-process host implements them in the `greenroom` crate.

use std::path::Path;

use async_trait::async_trait;
use greenroom_boundary::mcp::FrameDuplex;
use greenroom_boundary::trace::Outcome;
use greenroom_boundary::{CancellationToken, Drivers};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::cover::DeclaredHook;
use crate::model::HostSpec;

/// A turn that a person (or an outside client) asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnRequest {
    /// Its name: `as` in the scenario, else `t1`, `t2`, …; the root of its scope.
    pub id: String,
    /// The agent asked.
    pub agent: String,
    /// What the person says.
    pub user: String,
    /// Request metadata, seen by hooks as `ctx.metadata`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The conversation that it continues; turns of one scenario share `default` unless they say otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<String>,
}

/// How a turn failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TurnError {
    /// Stable code.
    pub code: String,
    /// Message for the person who asked.
    pub message: String,
}

/// What a turn gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TurnReply {
    /// How it ended.
    pub outcome: Outcome,
    /// Final text; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What `Next` returned as `data`.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    /// The failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<TurnError>,
}

/// A host that could not be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HostError {
    /// Stable code.
    pub code: String,
    /// What is wrong and what to do.
    pub message: String,
}

/// What a host still had when it was shut down; all zero in a host that leaks nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftovers {
    /// Turns, calls and model streams still under way.
    pub tasks: usize,
    /// Open connections to external servers.
    pub connections: usize,
    /// Live script handles.
    pub handles: usize,
}

/// Makes hosts.
#[async_trait]
pub trait HostFactory: Send + Sync {
    /// Sets a host up on these drivers. `base` is the folder of the scenario file: relative paths start there.
    async fn start(&self, spec: &HostSpec, base: &Path, drivers: Drivers) -> Result<Box<dyn HostUnderTest>, HostError>;

    /// The hooks that such a host declares, for coverage. A host that cannot tell says none.
    fn declared_hooks(&self, _spec: &HostSpec, _base: &Path) -> Result<Vec<DeclaredHook>, HostError> {
        Ok(Vec::new())
    }
}

/// A running host.
#[async_trait]
pub trait HostUnderTest: Send + Sync {
    /// Runs one turn to its end. Cancelling the token cancels the turn and everything below it.
    async fn turn(&self, turn: TurnRequest, cancel: &CancellationToken) -> TurnReply;

    /// Serves an outside client, called `name` in the trace (`client.NAME`), until its connection ends.
    async fn serve(&self, name: &str, duplex: FrameDuplex) -> Result<(), HostError> {
        drop(duplex);
        let message = format!("this host cannot serve the outside client {name}");
        Err(HostError { code: "CLIENTS_UNSUPPORTED".to_owned(), message })
    }

    /// Ends everything and says what was still there.
    async fn shutdown(&self) -> Leftovers;
}
