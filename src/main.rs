//! The command `greenroom`.
//!
//! Invariant: a keeper of a child process, or a child that runs scripts, is nothing else; engines are initialised before any thread exists. Deliberately no logic.

use std::process::ExitCode;

/// A call is dozens of small allocations and little else.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(status) = greenroom::drivers::sandbox::keep_if_asked() {
        return status;
    }
    let engines = greenroom::cli::Engines::initialise();
    if let Some(status) = greenroom::drivers::isolate::serve_if_asked(&|name, table| engines.anew(name, table)) {
        return status;
    }
    greenroom::cli::run(&engines.with_processes())
}
