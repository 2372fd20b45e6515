//! The host itself, served over HTTP and driven by an outside client: the Python `mcp` package.
//!
//! Invariant: host and client are two processes that share nothing but the address. Deliberately the shipped example
//! config and client.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};

use super::Row;

/// Serves the example config and lets the client work with it.
pub(super) fn row(tools: &Path) -> Row {
    let (good, detail, wall) = match drive(tools) {
        Ok((detail, wall)) => (true, detail, wall),
        Err(error) => (false, format!("{error:#}"), Duration::ZERO),
    };
    Row {
        part: "outside-client".to_owned(),
        what: "the host over HTTP, driven by the Python mcp client".to_owned(),
        good,
        detail,
        wall,
    }
}

/// A child that dies with its owner.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "two processes and a stopwatch are what this part is about")]
fn drive(tools: &Path) -> anyhow::Result<(String, Duration)> {
    let python = tools.join("python/bin/python");
    if !python.exists() {
        bail!("{} is missing; `./x tools` installs it", python.display());
    }
    let started = std::time::Instant::now();
    let this = std::env::current_exe().context("this program's own path")?;
    let mut server = Command::new(this)
        .args(["serve", "-c", "examples/greenroom.yaml", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start the host")?;
    let stderr = server.stderr.take().context("the host has no stderr")?;
    let _server = Running(server);
    let mut lines = BufReader::new(stderr).lines();
    let url = loop {
        let line = lines.next().context("the host ended before it served")?.context("the host's stderr")?;
        if let Some(url) = line.strip_prefix("greenroom serves MCP at ") {
            break url.to_owned();
        }
    };
    let output =
        Command::new(&python).arg("examples/outside_client.py").arg(&url).output().context("cannot start the client")?;
    let said = String::from_utf8_lossy(&output.stdout).trim().replace('\n', "; ");
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("the client failed: {}", stderr.lines().last().unwrap_or(&said));
    }
    Ok((said, started.elapsed()))
}
