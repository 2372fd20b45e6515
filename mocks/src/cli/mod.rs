//! Scripted commands: the CLI sandbox as data.
//!
//! Invariant: a run says exactly what its script says and obeys the command's limits on the clock it was given.
//! Deliberately no real process anywhere.

mod runner;
mod script;

pub use runner::{DenyCli, ScriptedCli};
pub use script::{CliEnd, CliFailure, CliOutput, CliRun, CliScript, CliWhen};
