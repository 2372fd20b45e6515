//! Starting the program and waiting for what it does.
//!
//! Invariant: every wait has a deadline; a started program is killed and reaped when its owner goes. Deliberately the only
//! module of these tests that starts processes.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use assert_cmd::assert::Assert;
use greenroom::drivers::SystemClock;
use greenroom_boundary::Clock;
use greenroom_boundary::clock::sleep;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// The longest that anything here may take: servers of Node and Python start slowly on a busy machine, and so do whole
/// suites in an unoptimised build.
const PATIENCE: Duration = Duration::from_secs(100);

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A program that `./x tools` installs.
pub(crate) fn tool(path: &str) -> String {
    let program = root().join(".tools").join(path);
    assert!(program.exists(), "{} is missing; run ./x tools", program.display());
    program.display().to_string()
}

/// Runs `greenroom` in the repository to its end.
pub(crate) fn greenroom<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Assert {
    let mut command = assert_cmd::Command::new(env!("CARGO_BIN_EXE_greenroom"));
    command.current_dir(root()).env_remove("GREENROOM_LOG").env("COLUMNS", "100").timeout(PATIENCE).args(args).assert()
}

/// Runs another program in the repository to its end.
pub(crate) fn program<S: AsRef<std::ffi::OsStr>>(path: &str, args: impl IntoIterator<Item = S>) -> Assert {
    assert_cmd::Command::new(path).current_dir(root()).timeout(PATIENCE).args(args).assert()
}

pub(crate) fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

pub(crate) fn stderr(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

/// Writes files into a fresh folder.
pub(crate) fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

/// A path in a folder, as an argument.
pub(crate) fn at(folder: &tempfile::TempDir, name: &str) -> String {
    folder.path().join(name).display().to_string()
}

/// Waits until `probe` finds something.
pub(crate) async fn until<T>(what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let clock = SystemClock::new();
    let deadline = clock.now().after(PATIENCE);
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(clock.now() < deadline, "waited in vain for {what}");
        // Files and processes do not tell when they change.
        sleep(&clock, Duration::from_millis(10)).await;
    }
}

/// A `greenroom` that runs until it is told to end.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Running {
    #[expect(clippy::disallowed_methods, reason = "these tests are about the program's process")]
    pub(crate) fn start<S: AsRef<std::ffi::OsStr>>(args: impl IntoIterator<Item = S>) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_greenroom"));
        command.args(args).current_dir(root()).env_remove("GREENROOM_LOG");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = read(child.stderr.take().unwrap());
        Self { child, lines, said: Vec::new() }
    }

    /// What follows `before` in the first line of stderr that has it.
    pub(crate) fn line_after(&mut self, before: &str) -> String {
        loop {
            let Ok(line) = self.lines.recv_timeout(PATIENCE) else {
                panic!("never said {before:?}, but: {:#?}", self.said);
            };
            if let Some((_, rest)) = line.split_once(before) {
                return rest.to_owned();
            }
            self.said.push(line);
        }
    }

    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).unwrap()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).unwrap();
    }

    /// Waits for its end by itself.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let child = &mut self.child;
        until("the end of greenroom", || child.try_wait().unwrap()).await
    }
}

fn read(stderr: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            // The test may have heard enough.
            let _ = sender.send(line);
        }
    });
    receiver
}

/// State and parent of a process; nothing if there is none.
fn stat(pid: i32) -> Option<(char, i32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name stands in parentheses and may hold anything.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// All processes below a process, itself left out.
pub(crate) fn descendants(pid: i32) -> BTreeSet<i32> {
    let pids =
        std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parents: Vec<(i32, i32)> = pids.filter_map(|pid| Some((pid, stat(pid)?.1))).collect();
    let mut found = BTreeSet::from([pid]);
    loop {
        let known = found.len();
        found.extend(parents.iter().filter(|(_, parent)| found.contains(parent)).map(|(pid, _)| *pid).collect::<Vec<_>>());
        if found.len() == known {
            found.remove(&pid);
            return found;
        }
    }
}

/// What runs under a pid, for messages.
pub(crate) fn command_line(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().replace('\0', " ")
}

/// Waits until these processes have ended. One that only waits to be reaped counts as ended.
pub(crate) async fn gone(pids: &BTreeSet<i32>) {
    let living = || pids.iter().copied().filter(|pid| !matches!(stat(*pid), None | Some(('Z' | 'X', _))));
    let names = living().map(command_line).collect::<Vec<_>>().join("; ");
    until(&format!("the end of {names}"), || living().next().is_none().then_some(())).await;
}

/// All files below a folder, by their path in it.
pub(crate) fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push((path.strip_prefix(folder).unwrap().to_owned(), std::fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}
