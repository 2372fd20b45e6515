//! The official Rust SDK: a client and a server over an in-memory duplex, and a client on a child process.
//!
//! Invariant: the same tool and the same payload as the host's echo. Deliberately the SDK's defaults.

use std::process::Stdio;

use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig};
use rmcp::service::{RequestContext, RunningService};
use rmcp::{ErrorData, RoleClient, RoleServer, ServerHandler, ServiceExt};
use tokio::process::{Child, Command};

struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let text = request.arguments.as_ref().and_then(|given| given.get("text")).and_then(|text| text.as_str());
        Ok(CallToolResult::success(vec![ContentBlock::text(text.unwrap_or_default().to_owned())]).into())
    }
}

pub(crate) async fn connect() -> RunningService<RoleClient, ()> {
    let (theirs, ours) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        if let Ok(server) = Echo.serve(theirs).await {
            // Its end is the bench's end.
            let _ = server.waiting().await;
        }
    });
    ().serve(ours).await.expect("the handshake")
}

pub(crate) async fn call(client: &RunningService<RoleClient, ()>) -> CallToolResult {
    let mut params = CallToolRequestParams::new("echo");
    params.arguments = Some(serde_json::Map::from_iter([("text".to_owned(), "hello".into())]));
    client.call_tool(params).await.expect("an answer")
}

/// The SDK's client on a child process.
#[expect(clippy::disallowed_methods, reason = "a bench starts the peer that it measures")]
pub(crate) async fn connect_child([command, args @ ..]: &[String; 5]) -> (RunningService<RoleClient, ()>, Child) {
    let mut child = Command::new(command);
    let mut child = child.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().expect("a child");
    let pipes = (child.stdout.take().expect("a pipe"), child.stdin.take().expect("a pipe"));
    (().serve(pipes).await.expect("the handshake"), child)
}

pub(crate) async fn call_child(client: &RunningService<RoleClient, ()>) -> CallToolResult {
    let mut params = CallToolRequestParams::new("list_agents");
    params.arguments = Some(serde_json::Map::new());
    client.call_tool(params).await.expect("an answer")
}
