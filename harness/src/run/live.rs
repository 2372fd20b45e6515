//! The real drivers, as the command line gives them to scenarios that ask for them.
//!
//! Invariant: a scenario gets a real driver only where it says `live`, `record` or `system`. Deliberately no drivers here:
//! the harness does not touch the world.

use std::sync::Arc;

use greenroom_boundary::{CliRunner, Clock, Credentials, Egress, Entropy, Llm, McpConnector};

use crate::model::Live;

/// What a real driver may know of the run that it serves.
#[derive(Clone, Debug)]
pub struct LiveWorld {
    /// The run's clock; a driver holds it while something real is under way.
    pub clock: Arc<dyn Clock>,
    /// Where secrets are registered.
    pub credentials: Credentials,
    /// What may be contacted.
    pub egress: Arc<dyn Egress>,
}

/// A real driver that cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct LiveError {
    /// Stable code.
    pub code: &'static str,
    /// What is wrong and what to do.
    pub message: String,
}

impl LiveError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        self.code
    }
}

/// Makes real drivers.
pub trait LiveDrivers: Send + Sync {
    /// The machine's clock.
    fn clock(&self) -> Arc<dyn Clock>;

    /// The machine's randomness.
    fn entropy(&self) -> Arc<dyn Entropy>;

    /// The policy that these rules of a scenario's `egress: { allow: … }` make. The clock is held while a script's request is under way.
    fn egress(&self, allow: &[String], clock: &Arc<dyn Clock>) -> Result<Arc<dyn Egress>, LiveError>;

    /// Opens real MCP servers. The target of each `open` already carries the scenario's command or address.
    fn mcp(&self, world: &LiveWorld) -> Arc<dyn McpConnector>;

    /// The model behind connector `name`.
    fn llm(&self, name: &str, live: &Live, world: &LiveWorld) -> Result<Arc<dyn Llm>, LiveError>;

    /// Runs real commands.
    fn cli(&self, live: &Live, world: &LiveWorld) -> Arc<dyn CliRunner>;
}
