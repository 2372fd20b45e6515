//! The CLI sandbox: real commands, confined.
//!
//! Invariant: a command starts with a cleared environment in a folder of its own, keeps within its time and output
//! limits, and when its stream ends nothing of its process group is left. Deliberately no shell.
//!
//! What this does not confine: the network, the rest of the file system, memory and CPU. With a [`ChildKeeper`] (Linux) also
//! a descendant that leaves the process group (`setsid`) is found, and nothing outlives a host that is killed with SIGKILL;
//! without one, children of a killed host end only when they notice that their pipes are closed.

mod environment;
mod group;
#[cfg(target_os = "linux")]
mod keeper;
#[cfg(not(target_os = "linux"))]
mod no_keeper;
mod run;
mod runner;
mod start;

pub use environment::ChildEnvironment;
pub(crate) use group::{ChildGroup, describe_exit};
#[cfg(target_os = "linux")]
pub(crate) use keeper::KILL_ALL;
#[cfg(target_os = "linux")]
use keeper::WORD as KEEPER_WORD;
#[cfg(target_os = "linux")]
pub use keeper::keep_if_asked;
#[cfg(not(target_os = "linux"))]
pub(crate) use no_keeper::KILL_ALL;
#[cfg(not(target_os = "linux"))]
use no_keeper::WORD as KEEPER_WORD;
#[cfg(not(target_os = "linux"))]
pub use no_keeper::keep_if_asked;
pub use runner::ConfinedCli;
pub(crate) use start::ChildCommand;
pub use start::ChildKeeper;
