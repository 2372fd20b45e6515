//! `greenroom completions`: completion scripts for shells.
//!
//! Invariant: they are made from the command line's own description. Deliberately nothing is installed.

use std::process::ExitCode;

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(super) fn run(args: &CompletionsArgs) -> ExitCode {
    clap_complete::generate(args.shell, &mut super::Cli::command(), "greenroom", &mut std::io::stdout());
    ExitCode::SUCCESS
}
