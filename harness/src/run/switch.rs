//! Which driver stands behind a name: the name itself goes before a glob; what nobody names is denied.
//!
//! Invariant: no name falls through to another's driver. Deliberately no drivers of its own, but for the one that puts the
//! scenario's address in place of the config's.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use greenroom_boundary::cli::{CliError, CliStream, CommandSpec};
use greenroom_boundary::llm::{LlmCapabilities, LlmError, LlmRequest, LlmStream};
use greenroom_boundary::mcp::{FrameDuplex, McpError, McpTarget, ServerAddress};
use greenroom_boundary::{CancellationToken, CliRunner, Llm, McpConnector};
use greenroom_mocks::cli::DenyCli;
use greenroom_mocks::llm::DenyLlm;
use greenroom_mocks::mcp::DenyMcp;

use crate::model::{Live, glob};

/// Drivers by name or glob.
pub(super) struct Named<T: ?Sized>(Vec<(String, Arc<T>)>);

impl<T: ?Sized> Named<T> {
    pub(super) fn new(drivers: Vec<(String, Arc<T>)>) -> Self {
        Self(drivers)
    }

    fn find(&self, name: &str) -> Option<&Arc<T>> {
        let exact = self.0.iter().find(|(own, _)| own == name);
        exact.or_else(|| self.0.iter().find(|(pattern, _)| glob(pattern, name))).map(|(_, driver)| driver)
    }
}

impl<T: ?Sized> fmt::Debug for Named<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

#[async_trait]
impl McpConnector for Named<dyn McpConnector> {
    async fn open(&self, target: &McpTarget, cancel: &CancellationToken) -> Result<FrameDuplex, McpError> {
        match self.find(target.server.as_str()) {
            Some(driver) => driver.open(target, cancel).await,
            None => DenyMcp.open(target, cancel).await,
        }
    }
}

#[async_trait]
impl Llm for Named<dyn Llm> {
    fn capabilities(&self) -> LlmCapabilities {
        let all = |has: fn(LlmCapabilities) -> bool| self.0.iter().all(|(_, model)| has(model.capabilities()));
        LlmCapabilities { tools: all(|can| can.tools), streaming: all(|can| can.streaming) }
    }

    async fn stream(&self, request: LlmRequest, cancel: &CancellationToken) -> Result<LlmStream, LlmError> {
        match self.find(request.connector.as_str()) {
            Some(model) => model.stream(request, cancel).await,
            None => DenyLlm.stream(request, cancel).await,
        }
    }
}

#[async_trait]
impl CliRunner for Named<dyn CliRunner> {
    /// A command does not say which runner it is for: the program's name decides, `cli.bash` or a glob.
    async fn run(&self, command: CommandSpec, cancel: &CancellationToken) -> Result<CliStream, CliError> {
        let program = command.argv.first().map(String::as_str).unwrap_or_default();
        let program = program.rsplit('/').next().unwrap_or_default();
        match self.find(program) {
            Some(runner) => runner.run(command, cancel).await,
            None => DenyCli.run(command, cancel).await,
        }
    }
}

/// Opens the scenario's peer, whatever the config says.
#[derive(Debug)]
pub(super) struct Retarget {
    pub(super) address: ServerAddress,
    pub(super) inner: Arc<dyn McpConnector>,
}

impl Retarget {
    pub(super) fn address(live: &Live, base: &std::path::Path) -> ServerAddress {
        match (&live.command, &live.url) {
            (_, Some(url)) => ServerAddress::Http { url: url.clone(), headers: live.headers.clone() },
            (command, None) => ServerAddress::Process {
                command: command.clone().unwrap_or_default(),
                args: live.args.clone(),
                env: live.env.clone(),
                workdir: base.to_str().filter(|folder| !folder.is_empty()).map(str::to_owned),
            },
        }
    }
}

#[async_trait]
impl McpConnector for Retarget {
    async fn open(&self, target: &McpTarget, cancel: &CancellationToken) -> Result<FrameDuplex, McpError> {
        let target = McpTarget { server: target.server.clone(), address: self.address.clone() };
        self.inner.open(&target, cancel).await
    }
}
