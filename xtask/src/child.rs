//! A small MCP server on stdio, the soak's real child process: this program under another word.
//!
//! Invariant: one answer a request, in order; it ends with its input. Deliberately no threads and no state.

use std::io::{BufRead as _, Write as _};
use std::process::ExitCode;

use serde_json::{Value, json};

/// The word that makes this program that server.
pub(crate) const WORD: &str = "_child";
/// The exit code of its crash.
const CRASHED: u8 = 7;

/// Serves stdin and stdout.
pub(crate) fn serve() -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else { continue };
        let result = match (method, message["params"]["name"].as_str()) {
            ("initialize", _) => json!({
                "protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                "serverInfo": {"name": "child", "version": "1"},
            }),
            ("tools/list", _) => json!({"tools": tools()}),
            ("tools/call", Some("echo")) => json!({"content": [], "structuredContent": message["params"]["arguments"]}),
            ("tools/call", Some("stuck")) => continue,
            ("tools/call", Some("fragile")) => return ExitCode::from(CRASHED),
            _ => json!({}),
        };
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
        if writeln!(stdout, "{answer}").and_then(|()| stdout.flush()).is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn tools() -> Vec<Value> {
    ["echo", "stuck", "fragile"].map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).to_vec()
}
