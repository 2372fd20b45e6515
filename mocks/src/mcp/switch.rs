//! One connector for many servers, and the one that knows none.
//!
//! Invariant: a server that is not listed is denied, never reached by another way. Deliberately no patterns in names.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use greenroom_boundary::mcp::{FrameDuplex, McpError, McpTarget};
use greenroom_boundary::{CancellationToken, McpConnector, ServerName};

/// Chooses a connector by the server's name.
#[derive(Clone)]
pub struct McpSwitch {
    servers: BTreeMap<ServerName, Arc<dyn McpConnector>>,
    otherwise: Arc<dyn McpConnector>,
}

impl fmt::Debug for McpSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.servers).finish()
    }
}

impl Default for McpSwitch {
    fn default() -> Self {
        Self { servers: BTreeMap::new(), otherwise: Arc::new(DenyMcp) }
    }
}

impl McpSwitch {
    /// These servers; all others are denied.
    pub fn new(servers: BTreeMap<ServerName, Arc<dyn McpConnector>>) -> Self {
        Self { servers, ..Self::default() }
    }

    /// Gives the servers that are not listed to another connector.
    #[must_use]
    pub fn otherwise(self, otherwise: Arc<dyn McpConnector>) -> Self {
        Self { otherwise, ..self }
    }
}

#[async_trait]
impl McpConnector for McpSwitch {
    async fn open(&self, target: &McpTarget, cancel: &CancellationToken) -> Result<FrameDuplex, McpError> {
        self.servers.get(&target.server).unwrap_or(&self.otherwise).open(target, cancel).await
    }
}

/// Refuses every server.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyMcp;

#[async_trait]
impl McpConnector for DenyMcp {
    async fn open(&self, target: &McpTarget, _: &CancellationToken) -> Result<FrameDuplex, McpError> {
        let server = target.server.to_string();
        let message = format!("server {server} is denied here: list `mcp.{server}` under `drivers`");
        Err(McpError::Denied { server, message })
    }
}
