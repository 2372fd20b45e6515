//! The errors of boundaries as bodies of `close` lines, and back.
//!
//! Invariant: an error that was recorded is given back equal in a replay. Deliberately tied to the errors' stable codes, not
//! to their texts.

use greenroom_boundary::cli::CliError;
use greenroom_boundary::llm::LlmError;
use greenroom_boundary::mcp::McpError;
use serde_json::{Value, json};

/// When an exchange failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The call itself failed.
    Start,
    /// It failed later, while its answer came.
    Stream,
}

/// Reads where an error belongs.
pub fn at(body: &Value) -> At {
    if body["at"] == "start" { At::Start } else { At::Stream }
}

fn place(at: At, mut body: Value) -> Value {
    body["at"] = Value::from(match at {
        At::Start => "start",
        At::Stream => "stream",
    });
    body
}

/// An LLM error as a body.
pub fn from_llm(at: At, error: &LlmError) -> Value {
    let code = error.code();
    place(
        at,
        match error {
            LlmError::Status { connector, status, message, retry_after_ms } => {
                json!({ "code": code, "of": connector, "status": status, "message": message, "retry_after_ms": retry_after_ms })
            }
            LlmError::Transport { connector, message }
            | LlmError::Malformed { connector, message }
            | LlmError::Unavailable { connector, message } => json!({ "code": code, "of": connector, "message": message }),
            LlmError::Truncated { connector } | LlmError::Cancelled { connector } => json!({ "code": code, "of": connector }),
        },
    )
}

/// The LLM error that a body stands for.
pub fn to_llm(body: &Value) -> LlmError {
    let connector = text(body, "of");
    let message = text(body, "message");
    match body["code"].as_str().unwrap_or_default() {
        "LLM_STATUS" => LlmError::Status {
            connector,
            status: u16::try_from(number(body, "status")).unwrap_or(500),
            message,
            retry_after_ms: body["retry_after_ms"].as_u64(),
        },
        "LLM_MALFORMED" => LlmError::Malformed { connector, message },
        "LLM_TRUNCATED" => LlmError::Truncated { connector },
        "LLM_CANCELLED" => LlmError::Cancelled { connector },
        "LLM_UNAVAILABLE" => LlmError::Unavailable { connector, message },
        _ => LlmError::Transport { connector, message },
    }
}

/// An MCP error as a body.
pub fn from_mcp(at: At, error: &McpError) -> Value {
    let code = error.code();
    place(
        at,
        match error {
            McpError::Unreachable { server, message }
            | McpError::Closed { server, message }
            | McpError::Denied { server, message } => {
                json!({ "code": code, "of": server, "message": message })
            }
            McpError::TooLarge { server, limit_bytes } => json!({ "code": code, "of": server, "limit_bytes": limit_bytes }),
            McpError::Status { server, status, message } => {
                json!({ "code": code, "of": server, "status": status, "message": message })
            }
            McpError::Cancelled { server } => json!({ "code": code, "of": server }),
        },
    )
}

/// The MCP error that a body stands for.
pub fn to_mcp(body: &Value) -> McpError {
    let server = text(body, "of");
    let message = text(body, "message");
    match body["code"].as_str().unwrap_or_default() {
        "MCP_UNREACHABLE" => McpError::Unreachable { server, message },
        "MCP_DENIED" => McpError::Denied { server, message },
        "MCP_TOO_LARGE" => McpError::TooLarge { server, limit_bytes: number(body, "limit_bytes") as usize },
        "MCP_STATUS" => McpError::Status { server, status: u16::try_from(number(body, "status")).unwrap_or(500), message },
        "MCP_CANCELLED" => McpError::Cancelled { server },
        _ => McpError::Closed { server, message },
    }
}

/// A CLI error as a body.
pub fn from_cli(at: At, error: &CliError) -> Value {
    let code = error.code();
    place(
        at,
        match error {
            CliError::Start { program, message } | CliError::Denied { program, message } => {
                json!({ "code": code, "of": program, "message": message })
            }
            CliError::Timeout { program, limit_ms } => json!({ "code": code, "of": program, "limit_ms": limit_ms }),
            CliError::OutputLimit { program, limit_bytes } => {
                json!({ "code": code, "of": program, "limit_bytes": limit_bytes })
            }
            CliError::Cancelled { program } => json!({ "code": code, "of": program }),
        },
    )
}

/// The CLI error that a body stands for.
pub fn to_cli(body: &Value) -> CliError {
    let program = text(body, "of");
    let message = text(body, "message");
    match body["code"].as_str().unwrap_or_default() {
        "CLI_TIMEOUT" => CliError::Timeout { program, limit_ms: number(body, "limit_ms") },
        "CLI_OUTPUT_LIMIT" => CliError::OutputLimit { program, limit_bytes: number(body, "limit_bytes") as usize },
        "CLI_CANCELLED" => CliError::Cancelled { program },
        "CLI_DENIED" => CliError::Denied { program, message },
        _ => CliError::Start { program, message },
    }
}

fn text(body: &Value, name: &str) -> String {
    body[name].as_str().unwrap_or_default().to_owned()
}

fn number(body: &Value, name: &str) -> u64 {
    body[name].as_u64().unwrap_or_default()
}
