//! The CLI sandbox: real commands, confined.
//!
//! Invariant: a command starts with a cleared environment in a folder of its own, keeps within its time and output
//! limits, and when its stream ends nothing of its process group is left. Deliberately no shell.
//!
//! What this does not confine: the network, the rest of the file system, memory and CPU; and a descendant that leaves the
//! process group (`setsid`) is not found. If the host itself is killed with SIGKILL, children end only when they notice
//! that their pipes are closed: the parent-death signal needs `unsafe` code before `exec`, which this project does not
//! write here.

mod environment;
mod group;
mod run;
mod runner;

pub use environment::ChildEnvironment;
pub(crate) use group::{ChildGroup, describe_exit};
pub use runner::ConfinedCli;
