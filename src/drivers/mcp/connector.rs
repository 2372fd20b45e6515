//! The connector: chooses the transport by the address.
//!
//! Invariant: an address that only a simulation can serve is refused, never guessed.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use greenroom_boundary::mcp::{FrameDuplex, McpError, McpTarget, ServerAddress};
use greenroom_boundary::{CancellationToken, Clock, Credentials, Egress, McpConnector};
use greenroom_wire::stdio::StdioOptions;

use super::{http, process};
use crate::drivers::sandbox::{ChildEnvironment, ChildKeeper};

/// What connections may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RealMcpLimits {
    /// Largest message from a server.
    pub frame_bytes: usize,
    /// How long a process may take to end after its input was closed, before SIGTERM.
    pub grace: Duration,
    /// How long it may take after SIGTERM, before SIGKILL.
    pub term_grace: Duration,
}

impl Default for RealMcpLimits {
    fn default() -> Self {
        Self {
            frame_bytes: StdioOptions::DEFAULT_LIMIT_BYTES,
            grace: Duration::from_millis(500),
            term_grace: Duration::from_secs(2),
        }
    }
}

/// Opens connections to real servers.
#[derive(Clone, Debug)]
pub struct RealMcp {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) held: Arc<dyn Clock>,
    pub(super) egress: Arc<dyn Egress>,
    pub(super) credentials: Credentials,
    pub(super) environment: ChildEnvironment,
    pub(super) keeper: ChildKeeper,
    pub(super) limits: RealMcpLimits,
}

impl RealMcp {
    /// A connector whose graces are measured on `clock`, which must be a real one. What processes write to stderr is
    /// masked with `credentials` before it is shown.
    pub fn new(
        clock: Arc<dyn Clock>,
        egress: Arc<dyn Egress>,
        credentials: Credentials,
        environment: ChildEnvironment,
    ) -> Self {
        let (keeper, limits) = (ChildKeeper::none(), RealMcpLimits::default());
        Self { held: clock.clone(), clock, egress, credentials, environment, keeper, limits }
    }

    /// Holds the host's clock while a request is under way. Needed where that clock is a virtual one.
    #[must_use]
    pub fn holding(self, host_clock: Arc<dyn Clock>) -> Self {
        Self { held: host_clock, ..self }
    }

    /// Starts servers under this keeper.
    #[must_use]
    pub fn kept_by(self, keeper: ChildKeeper) -> Self {
        Self { keeper, ..self }
    }

    /// Other limits than the default ones.
    #[must_use]
    pub fn limits(self, limits: RealMcpLimits) -> Self {
        Self { limits, ..self }
    }
}

#[async_trait]
impl McpConnector for RealMcp {
    async fn open(&self, target: &McpTarget, cancel: &CancellationToken) -> Result<FrameDuplex, McpError> {
        let server = target.server.to_string();
        if cancel.is_cancelled() {
            return Err(McpError::Cancelled { server });
        }
        match &target.address {
            ServerAddress::Process { command, args, env, workdir } => {
                process::open(self, &server, process::Program { command, args, env, workdir: workdir.as_deref() })
            }
            ServerAddress::Http { url, headers } => http::open(self, &server, url, headers),
            ServerAddress::Simulated => {
                let message = format!("server {server} has neither `command` nor `url`, so only a simulation can serve it");
                Err(McpError::Denied { server, message })
            }
        }
    }
}
