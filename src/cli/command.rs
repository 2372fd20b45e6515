//! The subcommands and what each runs.
//!
//! Invariant: an error that a subcommand does not handle ends with exit code 2 and one line. Deliberately no logic.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use super::engines::Engines;
use super::{
    check_config, completions, cover, demo, hook, hooks, list, mock, record, replay, schema, serve, test, types, world,
};

/// An MCP host you can rehearse.
#[derive(Debug, Parser)]
#[command(name = "greenroom", version, about, long_about = None, after_help = "Start with `greenroom test scenarios`, or `greenroom serve -c greenroom.yaml`.")]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
    /// Say more on stderr; twice for everything. GREENROOM_LOG=filter is finer.
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the host: MCP over HTTP or stdio.
    Serve(serve::ServeArgs),
    /// Run scenario suites.
    Test(test::TestArgs),
    /// Record a session, or a scenario's cassettes.
    Record(record::RecordArgs),
    /// Replay a cassette offline and compare.
    Replay(replay::ReplayArgs),
    /// Check a greenroom.yaml without running it.
    CheckConfig(check_config::CheckConfigArgs),
    /// Print the JSON Schema of scenario files or of greenroom.yaml.
    Schema(schema::SchemaArgs),
    /// Print the TypeScript declarations of what hook scripts see.
    Types(types::TypesArgs),
    /// List scenarios.
    List(list::ListArgs),
    /// Measure what scenarios show of hook paths.
    Cover(cover::CoverArgs),
    /// Run one hook alone, its peers scripted, and print what it did.
    Hook(hook::HookArgs),
    /// Explain which hooks look at a call.
    Hooks(hooks::HooksArgs),
    /// Run a simulated peer as a program of its own.
    Mock(mock::MockArgs),
    /// Print a completion script for a shell.
    Completions(completions::CompletionsArgs),
    /// Run the shipped demonstration and print its table.
    Demo(demo::DemoArgs),
}

/// Runs the command line. `engines` must have been made before any thread was started.
pub fn run(engines: &Engines) -> ExitCode {
    let cli = Cli::parse();
    world::start_logging(cli.verbose);
    dispatch(cli.command, engines)
}

fn dispatch(command: Command, engines: &Engines) -> ExitCode {
    match command {
        Command::Serve(args) => finish(serve::run(&args, engines)),
        Command::Test(args) => test::run(&args, engines),
        Command::Record(args) => finish(record::run(&args, engines)),
        Command::Replay(args) => finish(replay::run(&args, engines)),
        Command::CheckConfig(args) => finish(check_config::run(&args)),
        Command::Schema(args) => schema::run(&args),
        Command::Types(args) => types::run(&args),
        Command::List(args) => list::run(&args),
        Command::Completions(args) => completions::run(&args),
        Command::Cover(args) => finish(cover::run(&args, engines)),
        Command::Hook(args) => finish(hook::run(&args, engines)),
        Command::Hooks(args) => finish(hooks::run(&args, engines)),
        Command::Mock(args) => finish(mock::run(&args)),
        Command::Demo(args) => finish(demo::run(&args, engines)),
    }
}

fn finish(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        eprintln!("greenroom: {error:#}");
        ExitCode::from(super::EXIT_INVALID)
    })
}
