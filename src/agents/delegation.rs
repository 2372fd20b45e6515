//! Limits of delegation: depth and cycles.
//!
//! Invariant: a refused delegation names the whole path. Deliberately pure.

use greenroom_boundary::AgentId;

use crate::config::DelegationPolicy;

/// A delegation that the policy forbids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DelegationError {
    /// The chain would be too long.
    #[error("delegation is limited to {limit} levels: {path}")]
    Depth {
        /// The limit.
        limit: u32,
        /// `desk > billing > ledger`.
        path: String,
    },
    /// The chain would come back to an agent in it.
    #[error("delegation goes in a circle: {path}")]
    Cycle {
        /// `desk > billing > desk`.
        path: String,
    },
    /// No such agent.
    #[error("no agent is named {name:?}{hint}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// `; did you mean …?`, or empty.
        hint: String,
    },
}

impl DelegationError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Depth { .. } => "DELEGATION_DEPTH",
            Self::Cycle { .. } => "DELEGATION_CYCLE",
            Self::Unknown { .. } => "DELEGATION_UNKNOWN_AGENT",
        }
    }
}

/// Checks that the chain `path` may go on to `next`; the new depth counts from 1.
pub(super) fn check(policy: DelegationPolicy, path: &[AgentId], next: &AgentId) -> Result<u32, DelegationError> {
    let shown = || path.iter().chain([next]).map(AgentId::as_str).collect::<Vec<_>>().join(" > ");
    let depth = u32::try_from(path.len()).unwrap_or(u32::MAX);
    if !policy.allow_cycles && path.contains(next) {
        return Err(DelegationError::Cycle { path: shown() });
    }
    if depth > policy.max_depth {
        return Err(DelegationError::Depth { limit: policy.max_depth, path: shown() });
    }
    Ok(depth)
}
