//! The command `greenroom`.
//!
//! Invariant: engines are initialised before any thread exists. Deliberately no logic.

use std::process::ExitCode;

fn main() -> ExitCode {
    let engines = greenroom::cli::Engines::initialise();
    greenroom::cli::run(&engines)
}
