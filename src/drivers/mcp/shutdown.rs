//! The end of a server process: by itself, or step by step.
//!
//! Invariant: input closed, then grace, then SIGTERM, then grace, then SIGKILL; at the end the whole group is gone.
//! Deliberately one task per process, which owns it.

use std::io;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::clock::{sleep, timeout_at};
use greenroom_boundary::{CancellationToken, Clock, Credentials};
use nix::sys::signal::Signal;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::connector::RealMcpLimits;
use super::stderr::StderrTail;
use crate::drivers::sandbox::{ChildGroup, describe_exit};

/// How long stderr may stay open after the group is gone, in the hands of a process that left it.
const STDERR_GRACE: Duration = Duration::from_secs(1);

/// How long everything may take to be gone after it was killed.
const KEEPER_GRACE: Duration = Duration::from_secs(5);

/// A process and what is needed to end it.
pub(super) struct Supervisor {
    pub(super) group: ChildGroup,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) limits: RealMcpLimits,
    pub(super) ending: CancellationToken,
    pub(super) stderr: StderrTail,
    pub(super) drain: JoinHandle<()>,
    pub(super) credentials: Credentials,
    pub(super) ended: watch::Sender<Option<String>>,
}

impl Supervisor {
    /// Waits for the end, brings it about when asked, and says how it was.
    pub(super) async fn run(mut self) {
        let status = tokio::select! {
            biased;
            status = self.group.wait() => status,
            () = self.ending.cancelled() => self.shut_down().await,
        };
        let deadline = self.clock.now().after(STDERR_GRACE);
        if timeout_at(&*self.clock, deadline, &mut self.drain).await.is_err() {
            self.drain.abort();
        }
        let mut words = describe_exit(&status);
        let last_lines = self.stderr.last_lines(&self.credentials);
        if !last_lines.is_empty() {
            words = format!("{words}; the last lines of its stderr:\n{last_lines}");
        }
        self.ended.send_replace(Some(words));
    }

    async fn shut_down(&mut self) -> io::Result<ExitStatus> {
        for (grace, signal) in [(self.limits.grace, Signal::SIGTERM), (self.limits.term_grace, Signal::SIGKILL)] {
            let clock = self.clock.clone();
            tokio::select! {
                biased;
                status = self.group.wait() => return status,
                () = sleep(&*clock, grace) => self.group.signal(signal),
            }
        }
        let clock = self.clock.clone();
        let deadline = clock.now().after(KEEPER_GRACE);
        if let Ok(status) = timeout_at(&*clock, deadline, Box::pin(self.group.wait())).await {
            return status;
        }
        self.group.abandon();
        self.group.wait().await
    }
}
