//! Agents: the turn, its model loop, and delegation.
//!
//! Invariant: `Create` -> model or nothing -> tools -> `Next`, each step traced, and `Next` is told of failures. Tool
//! results reach the model in call order. Deliberately no compaction yet.

mod call;
mod delegation;
mod hook_event;
mod model;
mod permissions;
mod sampling;
mod scripts;
mod server;
mod session;
mod toolset;
mod turn;
mod turn_hooks;

pub(crate) use call::VIA_KEY;
pub use call::{AgentCall, call_agent};
pub use delegation::DelegationError;
pub use model::{Answer, NobodyListens, TextListener, stream_completion};
pub use permissions::{PermissionError, Permissions};
pub(crate) use sampling::SAMPLE;
pub use sampling::{SampleSettings, choose};
pub(crate) use scripts::check_returned;
pub use scripts::{CreateResponse, DelegateRequest, NextResponse};
pub use server::{AgentServer, tool_name};
pub use session::{Session, TurnTree};
pub use toolset::Toolset;
pub use turn::{TurnFailure, TurnInput, TurnResult, run_turn};
