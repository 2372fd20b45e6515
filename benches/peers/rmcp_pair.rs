//! The official Rust SDK: a client and a server over an in-memory duplex.
//!
//! Invariant: the same tool and the same payload as the host's echo. Deliberately the SDK's defaults.

use rmcp::model::{CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities, ServerConfig};
use rmcp::service::{RequestContext, RunningService};
use rmcp::{ErrorData, RoleClient, RoleServer, ServerHandler, ServiceExt};

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
