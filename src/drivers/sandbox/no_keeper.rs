//! Where the kernel has no means for a keeper.
//!
//! Invariant: no process is ever a keeper. Deliberately the same names as `keeper`.

use std::process::ExitCode;

use nix::sys::signal::Signal;

pub(super) const WORD: &str = "_exec";
pub(crate) const KILL_ALL: Signal = Signal::SIGKILL;

/// Nothing: there are no keepers here.
pub fn keep_if_asked() -> Option<ExitCode> {
    None
}
