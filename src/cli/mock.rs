//! `greenroom mock`: simulated peers as programs of their own, for any host.
//!
//! Invariant: a mock does what the same script does in a scenario, on the real clock. Deliberately no script language of
//! its own.

use std::process::ExitCode;

use clap::{Args, Subcommand};

mod mcp;
mod relay;

/// Arguments of `mock`.
#[derive(Debug, Args)]
pub(super) struct MockArgs {
    #[command(subcommand)]
    peer: Peer,
}

#[derive(Debug, Subcommand)]
enum Peer {
    /// A scripted MCP server, on stdio or HTTP.
    Mcp(mcp::McpArgs),
}

pub(super) fn run(args: &MockArgs) -> anyhow::Result<ExitCode> {
    match &args.peer {
        Peer::Mcp(args) => mcp::run(args),
    }
}
