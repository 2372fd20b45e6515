//! What the command knows about where its output goes.
//!
//! Invariant: colours go to terminals only, and never where `NO_COLOR` is set. Deliberately no width and no paging.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

#[expect(clippy::disallowed_methods, reason = "the command line reads the environment")]
fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// Standard output shows colours.
pub(super) fn colour_on_stdout() -> bool {
    std::io::stdout().is_terminal() && !is_set("NO_COLOR")
}

/// Standard error shows colours.
pub(super) fn colour_on_stderr() -> bool {
    std::io::stderr().is_terminal() && !is_set("NO_COLOR")
}

/// This is continuous integration: nothing is written beside scenarios.
pub(super) fn in_ci() -> bool {
    is_set("CI")
}

/// A line on standard output. A reader that has gone away (`… | head`) is no error.
pub(super) fn say(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}

/// Writes a whole document to a file, or to standard output if there is none; `what` names it in the error.
pub(super) fn write_document(what: &str, text: &str, file: Option<&Path>) -> ExitCode {
    let written = match file {
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
            let _ = writeln!(std::io::stderr(), "{what} cannot be written: {error}");
            ExitCode::from(9)
        }
    }
}
