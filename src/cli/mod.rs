//! The command line: one file per subcommand, no logic.
//!
//! Invariant: exit codes are those of docs/scenarios.md; what is printed for people has a `--json` twin where a program
//! might want it. Deliberately the only place that reads the environment.

mod check_config;
mod command;
mod completions;
mod cover;
mod demo;
mod engines;
mod hook;
mod hooks;
mod list;
mod live;
mod mock;
mod recalled;
mod record;
mod reload;
mod replay;
mod schema;
mod select;
mod serve;
mod terminal;
mod test;
mod types;
mod watch;
mod world;

pub use command::{Cli, run};
pub use engines::{EngineName, Engines};

/// Exit code of a wrong invocation or an unusable file.
pub(crate) const EXIT_INVALID: u8 = 2;
