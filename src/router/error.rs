//! Why a call gave no result.
//!
//! Invariant: an upstream error keeps its code and data end to end. Deliberately no tool errors (`isError`): those are
//! results.

use greenroom_boundary::mcp::McpError;
use greenroom_wire::RpcError;

use crate::hooks::HookFailure;

/// Why a call gave no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// No server or agent of that name.
    #[error("no server or agent is named {name:?}{hint}")]
    UnknownServer {
        /// The name asked for.
        name: String,
        /// ` (did you mean …?)`, or empty.
        hint: String,
    },
    /// The server has no such tool, or hides it.
    #[error("{server} has no tool named {tool:?}{hint}")]
    UnknownTool {
        /// The server.
        server: String,
        /// The name asked for.
        tool: String,
        /// ` (did you mean …?)`, or empty.
        hint: String,
    },
    /// The server answered with an error.
    #[error("{server}: {error}")]
    Rpc {
        /// The server.
        server: String,
        /// Its error, whole.
        error: RpcError,
    },
    /// The server answered with something else than the protocol allows.
    #[error("{server} answered {method} with {what}; it does not keep to the protocol, so its answer is not passed on")]
    BadResult {
        /// The server.
        server: String,
        /// The method.
        method: String,
        /// What is wrong with it.
        what: String,
    },
    /// No answer in time.
    #[error("{server} did not answer {method} within {limit_ms} ms")]
    Timeout {
        /// The server.
        server: String,
        /// The method.
        method: String,
        /// The limit.
        limit_ms: u64,
    },
    /// The server failed lately, and is not started again yet.
    #[error("{server} failed {failures} times in a row, last with {last}; it is tried again in {retry_ms} ms")]
    Backoff {
        /// The server.
        server: String,
        /// How often, without a success between.
        failures: u32,
        /// When it may be tried again.
        retry_ms: u64,
        /// Code of the last failure.
        last: String,
    },
    /// The caller cancelled.
    #[error("the call to {server} was cancelled")]
    Cancelled {
        /// The server.
        server: String,
    },
    /// The server cannot be reached.
    #[error(transparent)]
    Unavailable(#[from] McpError),
    /// A hook refused the call, or failed.
    #[error("{0}")]
    Hook(HookFailure),
    /// A hook chain that calls itself without end.
    #[error("hooks call each other {depth} deep: {path}; remove the loop")]
    HookDepth {
        /// How deep.
        depth: usize,
        /// The hooks, outermost first.
        path: String,
    },
    /// Scripts and expressions that call each other without end.
    #[error("scripts and expressions call each other {depth} deep: {path}; remove the loop")]
    CodeDepth {
        /// How deep.
        depth: usize,
        /// What runs, outermost first.
        path: String,
    },
    /// The agent's permissions forbid it.
    #[error("the permissions of {agent} deny {target} (rule `{rule}: deny`)")]
    Denied {
        /// The agent.
        agent: String,
        /// `server/tool` as the caller wrote it.
        target: String,
        /// The rule's pattern.
        rule: String,
    },
    /// Work failed inside the host: an agent's turn, a script.
    #[error("{message}")]
    Inner {
        /// Stable code of what failed.
        code: String,
        /// What happened.
        message: String,
    },
}

impl CallError {
    /// Stable code.
    pub fn code(&self) -> &str {
        match self {
            Self::UnknownServer { .. } => "CALL_UNKNOWN_SERVER",
            Self::UnknownTool { .. } => "CALL_UNKNOWN_TOOL",
            Self::Rpc { .. } => "CALL_RPC",
            Self::BadResult { .. } => "CALL_BAD_RESULT",
            Self::Timeout { .. } => "CALL_TIMEOUT",
            Self::Backoff { .. } => "MCP_BACKOFF",
            Self::Cancelled { .. } => "CALL_CANCELLED",
            Self::Unavailable(error) => error.code(),
            Self::Hook(failure) => &failure.code,
            Self::HookDepth { .. } => "HOOK_DEPTH",
            Self::CodeDepth { .. } => "CALL_DEPTH",
            Self::Denied { .. } => "CALL_DENIED",
            Self::Inner { code, .. } => code,
        }
    }

    /// As the JSON-RPC error that a caller over the wire gets: an upstream error whole, others with their code in `data`.
    pub fn to_rpc(&self) -> RpcError {
        let number = match self {
            Self::Rpc { error, .. } => return error.clone(),
            Self::UnknownServer { .. } | Self::UnknownTool { .. } | Self::Denied { .. } => RpcError::INVALID_PARAMS,
            Self::Timeout { .. } => RpcError::TIMEOUT,
            Self::Cancelled { .. } => RpcError::CANCELLED,
            _ => RpcError::INTERNAL,
        };
        let mut data = serde_json::json!({"code": self.code()});
        if let Self::Hook(failure) = self
            && !failure.others.is_empty()
        {
            let others = failure.others.iter().map(|other| serde_json::json!({"code": other.code, "message": other.message}));
            data["others"] = others.collect();
        }
        RpcError::new(number, self.to_string()).with_data(&data)
    }
}
