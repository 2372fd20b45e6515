//! `greenroom mock mcp`: a scripted MCP server that any host can start or reach.
//!
//! Invariant: each connection begins the script anew; on stdio stdout belongs to the protocol. A scripted crash ends the
//! process on stdio (exit code 1), and the session on HTTP.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use clap::Args;
use greenroom_boundary::mcp::{FrameDuplex, McpError, McpTarget, ServerAddress};
use greenroom_boundary::{CancellationToken, McpConnector as _, ServerName};
use greenroom_harness::load::{LoadOptions, load_scenario_with, typed};
use greenroom_harness::model::McpDriver;
use greenroom_mocks::mcp::{McpScript, ScriptedMcp};
use greenroom_wire::http::server::{Acceptor, Refusal, ServerOptions, SessionInfo};

use super::relay::relay;
use crate::cli::serve::{client_streams, interrupted, stop_on_interrupt};
use crate::drivers::{OsEntropy, SystemClock};
use crate::http::HttpFront;

/// Arguments of `mock mcp`.
#[derive(Debug, Args)]
#[command(
    after_help = "The file holds what a scenario has under `drivers.mcp.NAME.script` (docs/scenarios.md, \"Scripted servers\"): tools, \
                        calls with `result`, `error`, `hang: true` or `crash: true`, `after` for delays, `progress`, notifications.\n\n\
                        Examples:\n  greenroom mock mcp examples/shop.mcp.yaml\n  \
                        greenroom mock mcp scenarios/readme/hello.yaml --server clock\n  \
                        greenroom mock mcp examples/shop.mcp.yaml --listen 127.0.0.1:8091"
)]
pub(super) struct McpArgs {
    /// The script; with --server a scenario.
    file: PathBuf,
    /// Take the script of this server from a scenario.
    #[arg(short, long, value_name = "NAME")]
    server: Option<String>,
    /// Serve over HTTP at this address instead of stdio; port 0 takes a free one.
    #[arg(short, long)]
    listen: Option<String>,
}

pub(super) fn run(args: &McpArgs) -> anyhow::Result<ExitCode> {
    let mock = Mock::load(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    let served = runtime.block_on(async {
        match &args.listen {
            Some(address) => listen(mock, address).await,
            None => serve_stdio(&mock).await,
        }
    });
    // A reader of stdin may still be waiting.
    runtime.shutdown_background();
    served
}

async fn serve_stdio(mock: &Mock) -> anyhow::Result<ExitCode> {
    let client = client_streams();
    let server = mock.open().await?;
    tokio::select! {
        biased;
        () = interrupted() => Ok(ExitCode::SUCCESS),
        ended = relay(client, server) => match ended {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(error) => {
                eprintln!("greenroom: {error}");
                Ok(ExitCode::from(1))
            }
        },
    }
}

async fn listen(mock: Mock, address: &str) -> anyhow::Result<ExitCode> {
    let front = HttpFront::bind(address).await.with_context(|| format!("cannot listen at {address}"))?;
    eprintln!("greenroom mocks {} at {}", mock.name, front.url());
    let options = ServerOptions::new(Arc::new(OsEntropy));
    front.accept(Arc::new(mock), Arc::new(SystemClock::new()), options, stop_on_interrupt()).await?;
    Ok(ExitCode::SUCCESS)
}

/// A script under a name.
struct Mock {
    name: String,
    script: McpScript,
}

impl Mock {
    fn load(args: &McpArgs) -> anyhow::Result<Self> {
        let path = args.file.as_path();
        let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
        let Some(server) = &args.server else {
            let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("mock");
            return Ok(Self { name: name.split('.').next().unwrap_or(name).to_owned(), script: typed(path, &text)? });
        };
        Ok(Self { name: server.clone(), script: of_scenario(path, &text, server)? })
    }

    async fn open(&self) -> Result<FrameDuplex, McpError> {
        let server = ScriptedMcp::new(self.script.clone(), Arc::new(SystemClock::new()));
        let target = McpTarget { server: ServerName::new(self.name.as_str()), address: ServerAddress::Simulated };
        server.open(&target, &CancellationToken::new()).await
    }
}

/// The script of a server in the first case of a scenario.
fn of_scenario(path: &Path, text: &str, server: &str) -> anyhow::Result<McpScript> {
    let cases = load_scenario_with(path, text, LoadOptions::default())?;
    let driver = cases.first().and_then(|case| case.scenario.drivers.mcp(server));
    match driver {
        Some(McpDriver::Script(script)) => Ok(script.clone()),
        Some(_) => bail!("{}: `mcp.{server}` has no `script`", path.display()),
        None => bail!("{}: `drivers` has no `mcp.{server}`", path.display()),
    }
}

#[async_trait]
impl Acceptor for Mock {
    async fn accept(&self, _: SessionInfo, client: FrameDuplex) -> Result<(), Refusal> {
        let server = self.open().await;
        tokio::spawn(async move {
            // A crash ends the session, which is all that a client can see of it.
            if let Ok(server) = server {
                let _ = relay(client, server).await;
            }
        });
        Ok(())
    }
}
