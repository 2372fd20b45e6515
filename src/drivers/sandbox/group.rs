//! A child process with everything it starts: one process group, or whatever its keeper keeps.
//!
//! Invariant: once the leader was waited for, or this value is dropped, the whole group has been killed. Signals go out
//! only while the group's number cannot belong to anybody else. Deliberately no way to detach.

use std::io;
use std::process::ExitStatus;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::Child;

use super::KILL_ALL;
use super::start::ChildCommand;

/// A child that leads a process group of its own, or the keeper of such a child.
#[derive(Debug)]
pub(crate) struct ChildGroup {
    child: Child,
    /// `None` once the leader was waited for and the rest was killed.
    group: Option<Pid>,
    kept: bool,
}

impl ChildGroup {
    /// Starts the command as the leader of a new group.
    pub(crate) fn spawn(command: &mut ChildCommand) -> io::Result<Self> {
        command.check()?;
        let kept = command.kept();
        // A keeper must live to kill the others.
        let child = command.command.process_group(0).kill_on_drop(!kept).spawn()?;
        let group = child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw);
        Ok(Self { child, group, kept })
    }

    /// The leader, to take its pipes from.
    pub(crate) fn leader(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Sends a signal to the whole group, if there still is one.
    pub(crate) fn signal(&self, signal: Signal) {
        let signal = if self.kept && signal == Signal::SIGKILL { KILL_ALL } else { signal };
        self.send(signal);
    }

    /// Kills what does not end although everything was killed: a keeper that does not do its work.
    pub(crate) fn abandon(&self) {
        self.send(Signal::SIGKILL);
    }

    fn send(&self, signal: Signal) {
        if let Some(group) = self.group {
            // The group may just have ended by itself.
            let _ = killpg(group, signal);
        }
    }

    /// Waits for the leader to end, then kills what it left behind.
    pub(crate) async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await;
        self.send(Signal::SIGKILL);
        self.group = None;
        status
    }

    /// Kills the whole group now and waits until the leader is gone.
    pub(crate) async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.signal(Signal::SIGKILL);
        self.wait().await
    }
}

impl Drop for ChildGroup {
    fn drop(&mut self) {
        self.signal(Signal::SIGKILL);
    }
}

/// How a process ended, in words.
pub(crate) fn describe_exit(status: &io::Result<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Err(error) => format!("how it ended is unknown ({error})"),
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("it exited with status {code}"),
            (None, Some(signal)) => {
                let name = Signal::try_from(signal).map_or_else(|_| signal.to_string(), |signal| signal.to_string());
                format!("it was ended by signal {name}")
            }
            (None, None) => "how it ended is unknown".to_owned(),
        },
    }
}
