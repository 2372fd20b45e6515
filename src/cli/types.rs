//! `greenroom types`: the TypeScript declarations of what hook scripts see.
//!
//! Invariant: they are made from the table that the engines bind. Deliberately no choice of parts.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::terminal;

/// Print `greenroom.d.ts`, the TypeScript declarations for hook scripts.
#[derive(Args, Clone, Debug)]
pub(super) struct TypesArgs {
    /// Write it there instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Prints or writes the declarations.
pub(super) fn run(args: &TypesArgs) -> ExitCode {
    let text = crate::context::declarations();
    terminal::write_document("the declarations", &text, args.output.as_deref())
}
