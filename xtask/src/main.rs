//! Programs for those who work on Greenroom: `cargo run --release -p xtask -- soak router`.
//!
//! Invariant: a program that fails ends with exit code 1, one that cannot run with 2. Deliberately nothing that users need.

mod child;
mod soak;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// As in the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[derive(Debug, Parser)]
#[command(name = "xtask", about = "Programs for those who work on Greenroom")]
struct Cli {
    #[command(subcommand)]
    program: Program,
}

#[derive(Debug, Subcommand)]
enum Program {
    /// Run a part of the host for a while and see whether it leaks.
    Soak(soak::SoakArgs),
}

fn main() -> ExitCode {
    if let Some(status) = greenroom::drivers::sandbox::keep_if_asked() {
        return status;
    }
    if std::env::args_os().nth(1).is_some_and(|word| word == child::WORD) {
        return child::serve();
    }
    let engines = greenroom::cli::Engines::initialise();
    match Cli::parse().program {
        Program::Soak(args) => soak::run(&args, &engines).unwrap_or_else(|error| {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }),
    }
}
