//! `greenroom check-config`: is this greenroom.yaml usable?
//!
//! Invariant: nothing is started and no value of a variable is shown. Deliberately the same loader as `serve`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::terminal::say;
use super::world;
use crate::config::weaknesses;

/// Arguments of `check-config`.
#[derive(Debug, Args)]
pub(super) struct CheckConfigArgs {
    /// The config.
    #[arg(default_value = "greenroom.yaml")]
    config: PathBuf,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CheckConfigArgs) -> anyhow::Result<ExitCode> {
    let config = world::config(&args.config)?;
    let weak = weaknesses(&config);
    if args.json {
        let agents: Vec<_> = config.agents.keys().collect();
        let servers: Vec<_> = config.servers.keys().collect();
        let weaknesses: Vec<_> = weak.iter().map(|weakness| json!({"at": weakness.at, "message": weakness.message})).collect();
        say(json!({"agents": agents, "servers": servers, "hooks": config.hooks.len(), "weaknesses": weaknesses}));
    } else {
        say(format_args!(
            "{}: {} agents, {} servers, {} message hooks",
            args.config.display(),
            config.agents.len(),
            config.servers.len(),
            config.hooks.len()
        ));
        for weakness in &weak {
            say(format_args!("{}: {}", weakness.at, weakness.message));
        }
    }
    Ok(if weak.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}
