//! FastMCP's in-memory client, timed inside Python.
//!
//! Invariant: the time is that of the calls alone, without starting Python or speaking to it. Nothing here installs it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

const PYTHON: &str = ".tools/peers/bin/python";

/// A Python that runs as many calls as it is told to.
pub(crate) struct Loop {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Loop {
    /// Starts it, if FastMCP is installed.
    #[expect(clippy::disallowed_methods, reason = "a bench starts the peer that it measures")]
    pub(crate) fn start() -> Option<Self> {
        let mut python = Command::new(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(PYTHON));
        let mut child = python
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tools/peers/fastmcp_loop.py"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .ok()?;
        let answers = BufReader::new(child.stdout.take()?);
        Some(Self { child, answers })
    }

    /// How long `times` calls take.
    pub(crate) fn run(&mut self, times: u64) -> Duration {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        writeln!(stdin, "{times}").expect("Python listens");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("Python answers");
        Duration::from_nanos(line.trim().parse().expect("nanoseconds"))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
