//! `greenroom hooks explain`: which hooks look at a call, and what they would do to it.
//!
//! Invariant: nothing is called but hooks, and those only with `--dry-run`. Exit code 1: a hook of the dry run refuses the
//! call.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, ensure};
use clap::{Args, Subcommand};
use greenroom_harness::trace::TraceLog;
use serde_json::{Value, json};

use super::terminal::say;
use super::{EngineName, Engines, world};
use crate::config::HostConfig;
use crate::drivers::OsEntropy;
use crate::hooks::explain::dry_run::{DryRun, dry_run};
use crate::hooks::explain::{Asked, Call, Explanation, explain, explain_turns};

/// Most events of a dry run that are kept.
const EVENTS: usize = 100_000;

/// Arguments of `hooks`.
#[derive(Args, Debug)]
pub(super) struct HooksArgs {
    #[command(subcommand)]
    command: HooksCommand,
}

#[derive(Debug, Subcommand)]
enum HooksCommand {
    /// Show which hooks would look at a call, in which order, and why the others would not.
    Explain(ExplainArgs),
}

/// Arguments of `hooks explain`.
#[derive(Args, Debug)]
#[command(
    after_help = "Example:\n  greenroom hooks explain greenroom.yaml --call shop/order --args '{\"count\":3}' --dry-run\n  greenroom hooks explain greenroom.yaml --method tools/list --server shop\n  greenroom hooks explain greenroom.yaml --host --method initialize\n  greenroom hooks explain greenroom.yaml --agent clerk"
)]
struct ExplainArgs {
    /// The config.
    #[arg(default_value = "greenroom.yaml")]
    config: PathBuf,

    /// A call of a tool: a server, built-in server or agent, and a tool as the host shows it.
    #[arg(long, value_name = "SERVER/TOOL", required_unless_present_any = ["server", "agent", "host"])]
    call: Option<String>,

    /// Messages of another method, with `--server` or `--host`.
    #[arg(long, conflicts_with_all = ["call", "agent"], default_value = "tools/call")]
    method: String,

    /// Messages to or from this server, built-in server or agent.
    #[arg(long, conflicts_with_all = ["call", "agent", "host"])]
    server: Option<String>,

    /// Messages of outside clients.
    #[arg(long, conflicts_with_all = ["call", "agent"])]
    host: bool,

    /// Name of the tool, prompt or resource, with `--server` or `--host`.
    #[arg(long, default_value = "", conflicts_with_all = ["call", "agent"])]
    name: String,

    /// The turns of this agent.
    #[arg(long, conflicts_with_all = ["call", "dry_run"])]
    agent: Option<String>,

    /// Arguments of the sample call: a JSON object.
    #[arg(long, value_name = "JSON", default_value = "{}")]
    args: String,

    /// Run the hooks of the request on the sample, without the call.
    #[arg(long)]
    dry_run: bool,

    /// In a dry run, ask hooks on external servers and agents, too.
    #[arg(long, requires = "dry_run")]
    live: bool,

    /// Print JSON.
    #[arg(long)]
    json: bool,

    /// Script engine.
    #[arg(long, value_enum)]
    engine: Option<EngineName>,
}

pub(super) fn run(args: &HooksArgs, engines: &Engines) -> anyhow::Result<ExitCode> {
    let HooksCommand::Explain(args) = &args.command;
    let config = world::config(&args.config)?;
    let arguments: Value = serde_json::from_str(&args.args).context("--args is no JSON")?;
    ensure!(arguments.is_object(), "--args must be a JSON object, as the arguments of a tool are");
    let call = match (&args.call, &args.server) {
        (Some(call), _) => Some(Call::parse(&config, call)?),
        (None, Some(server)) => Some(Call::to_server(&config, server, &args.method, &args.name)?),
        (None, None) if args.host => Some(Call::to_host(&args.method, &args.name)?),
        (None, None) => None,
    };
    let explanation = match &call {
        Some(call) => explain(&config, call),
        None => explain_turns(&config, args.agent.as_deref().unwrap_or_default())?,
    };
    let dry = match &call {
        Some(call) if args.dry_run => Some(rehearse(args, engines, &config, call, &arguments)?),
        _ => None,
    };
    if args.json {
        let mut value = serde_json::to_value(&explanation)?;
        if let Some(dry) = &dry {
            value["dry_run"] = json!(dry);
        }
        say(serde_json::to_string_pretty(&value)?);
    } else {
        print(&explanation);
        dry.iter().for_each(print_dry_run);
    }
    Ok(if dry.is_some_and(|dry| dry.refused.is_some()) { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

fn rehearse(
    args: &ExplainArgs,
    engines: &Engines,
    config: &HostConfig,
    call: &Call,
    arguments: &Value,
) -> anyhow::Result<DryRun> {
    let engine = engines.get(args.engine)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        let log = TraceLog::new(EVENTS);
        let drivers = world::drivers(config, engine, Arc::new(OsEntropy), Arc::new(log.clone()))?;
        Ok(dry_run(config, call, arguments, args.live, drivers, &log).await)
    })
}

fn print(explanation: &Explanation) {
    say(format!("{} {} {:?}", explanation.boundary, explanation.method, explanation.name));
    let before = if explanation.method == "turn" { "config" } else { "session" };
    for (title, hooks) in
        [(before, &explanation.before), ("request", &explanation.request), ("response", &explanation.response)]
    {
        if hooks.is_empty() && title == "session" {
            continue;
        }
        if hooks.is_empty() {
            say(format!("{title}: no hooks"));
            continue;
        }
        say(format!("{title}:"));
        for (place, hook) in hooks.iter().enumerate() {
            say(format!("  {}. {}", place + 1, describe(hook)));
        }
    }
    if !explanation.not_asked.is_empty() {
        say("not asked:");
    }
    let width = explanation.not_asked.iter().map(|hook| hook.hook.len()).max().unwrap_or(0);
    for other in &explanation.not_asked {
        say(format!("  {:<width$}  {}", other.hook, other.why));
    }
}

fn describe(hook: &Asked) -> String {
    let mut parts =
        vec![hook.role.to_owned(), format!("priority {}", hook.priority), format!("timeout {} ms", hook.timeout_ms)];
    if hook.mode == greenroom_boundary::trace::HookMode::Audit {
        parts.push("audit: recorded, never applied".to_owned());
    }
    if hook.fail_open {
        parts.push("passes if it fails".to_owned());
    }
    parts.extend(hook.only_if.map(|condition| format!("only if {condition}")));
    let target = if hook.target == hook.hook { String::new() } else { format!(" -> {}", hook.target) };
    format!("{}{target} ({})", hook.hook, parts.join(", "))
}

fn print_dry_run(dry: &DryRun) {
    say("dry run of the request:");
    for step in &dry.steps {
        let verdict = serde_json::to_value(step.verdict).unwrap_or_default();
        let code = step.code.as_ref().map(|code| format!(" [{code}]")).unwrap_or_default();
        let reason = step.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        say(format!("  {} {}{code}{reason}", step.hook, verdict.as_str().unwrap_or_default()));
        if let Some(patch) = &step.patch {
            say(format!("    {patch}"));
        }
    }
    for hook in &dry.not_run {
        say(format!("  {hook} was not run: its target is external; --live runs it"));
    }
    match (&dry.params, &dry.refused) {
        (Some(params), _) => say(format!("would be sent: {params}")),
        (None, Some(why)) => say(format!("would be refused: {why}")),
        (None, None) => {}
    }
}
