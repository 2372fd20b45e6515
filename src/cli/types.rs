//! `greenroom types`: the TypeScript declarations of what hook scripts see.
//!
//! Invariant: they are made from the table that the engines bind. Deliberately no choice of parts.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

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
    let written = match &args.output {
        Some(file) => std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display())),
        None => match std::io::stdout().write_all(text.as_bytes()) {
            // Whoever read it has seen enough.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            other => other.map_err(|error| error.to_string()),
        },
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "the declarations cannot be written: {error}");
            ExitCode::from(9)
        }
    }
}
