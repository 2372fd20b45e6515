//! One child process, its two pipes and its end.
//!
//! Invariant: nothing on the host's threads waits for a pipe; how the child ended is the last thing that its inbox says. Signals go
//! out only while its number cannot belong to anybody else. Dropped, it is killed.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use greenroom_boundary::isolate::Script;
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use tokio::sync::Notify;

use super::messages::{self, ToChild, ToHost};
use crate::drivers::sandbox::{ChildKeeper, KILL_ALL, describe_exit};

/// Longest message of a child: the most that a script may hand over, with room around it. What is longer is no message.
const MOST_MESSAGE_BYTES: usize = 256 << 20;

/// What a child says, and at last how it ended.
#[derive(Debug)]
pub(super) enum FromChild {
    Said(ToHost),
    Ended(String),
}

/// A child process.
#[derive(Debug)]
pub(super) struct ChildProcess {
    writer: mpsc::Sender<Vec<u8>>,
    inbox: mpsc::Receiver<FromChild>,
    bell: Arc<Notify>,
    life: Arc<Life>,
    reader: Option<JoinHandle<()>>,
    /// Whose it is, once it is somebody's.
    pub(super) script: Option<Arc<Script>>,
}

/// The child's process group, while it is one.
#[derive(Debug)]
struct Life {
    group: Mutex<Option<Pid>>,
    is_kept: bool,
}

impl Life {
    fn kill(&self) {
        let group = self.group.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = *group {
            // A keeper must live to kill the others. The child may just have ended by itself.
            let _ = killpg(group, if self.is_kept { KILL_ALL } else { Signal::SIGKILL });
        }
    }

    /// Waits for the end of the child; its number is free only when nobody can send a signal to it any more.
    fn wait(&self, child: &mut Child) -> String {
        if let Ok(pid) = i32::try_from(child.id()) {
            while waitid(Id::Pid(Pid::from_raw(pid)), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT)
                .is_err_and(|error| error == nix::errno::Errno::EINTR)
            {}
        }
        let mut group = self.group.lock().unwrap_or_else(PoisonError::into_inner);
        *group = None;
        describe_exit(&child.wait())
    }
}

impl ChildProcess {
    /// Starts one and tells it what it is to be.
    pub(super) fn start(program: &str, keeper: &ChildKeeper, setup: &ToChild) -> io::Result<Self> {
        let mut command = keeper.command(program, &[super::child::WORD.to_owned()]);
        let is_kept = command.kept();
        let command = command.command.as_std_mut();
        command.env_clear().current_dir("/").process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let group = i32::try_from(child.id()).map(Pid::from_raw).map_err(io::Error::other)?;
        let life = Arc::new(Life { group: Mutex::new(Some(group)), is_kept });
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            life.kill();
            return Err(io::Error::other("the child has no pipes"));
        };
        let (writer, frames) = mpsc::channel();
        let (sender, inbox) = mpsc::channel();
        let bell = Arc::new(Notify::new());
        let (their_bell, their_life) = (Arc::clone(&bell), Arc::clone(&life));
        let reader = Builder::new().name("isolate-reader".to_owned()).spawn(move || {
            let fault = listen(stdout, &sender, &their_bell);
            their_life.kill();
            let end = their_life.wait(&mut child);
            let _ = sender.send(FromChild::Ended(fault.unwrap_or(end)));
            their_bell.notify_one();
        })?;
        Builder::new().name("isolate-writer".to_owned()).spawn(move || speak(stdin, &frames))?;
        let this = Self { writer, inbox, bell, life, reader: Some(reader), script: None };
        this.send(setup)?;
        Ok(this)
    }

    /// Sends, without waiting.
    pub(super) fn send(&self, message: &ToChild) -> io::Result<()> {
        // A child that is gone says so in its inbox.
        let _ = self.writer.send(messages::frame(message)?);
        Ok(())
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&self) -> bool {
        self.life.group.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Kills it.
    pub(super) fn kill(&self) {
        self.life.kill();
    }

    /// Kills it and waits until it is gone.
    pub(super) fn end(mut self) {
        self.life.kill();
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }

    /// Blocks this thread until the child says something, or does not for so long.
    pub(super) fn recv_blocking(&mut self, patience: Duration) -> Option<FromChild> {
        match self.inbox.recv_timeout(patience) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(gone()),
        }
    }

    /// Waits until the child says something.
    pub(super) async fn recv(&mut self) -> FromChild {
        loop {
            match self.inbox.try_recv() {
                Ok(message) => return message,
                Err(TryRecvError::Disconnected) => return gone(),
                Err(TryRecvError::Empty) => self.bell.notified().await,
            }
        }
    }
}

fn gone() -> FromChild {
    FromChild::Ended("how it ended is unknown".to_owned())
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.life.kill();
    }
}

/// Reads what the child says to its end; gives what was wrong with it.
fn listen(mut pipe: ChildStdout, sender: &mpsc::Sender<FromChild>, bell: &Notify) -> Option<String> {
    loop {
        match messages::read(&mut pipe, MOST_MESSAGE_BYTES) {
            Ok(Some(message)) => {
                if sender.send(FromChild::Said(message)).is_err() {
                    return None;
                }
                bell.notify_one();
            }
            Ok(None) => return None,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return None,
            Err(error) => return Some(format!("it said something that is no message ({error})")),
        }
    }
}

fn speak(mut pipe: ChildStdin, frames: &mpsc::Receiver<Vec<u8>>) {
    use std::io::Write as _;
    while let Ok(frame) = frames.recv() {
        if pipe.write_all(&frame).is_err() {
            return;
        }
    }
}
