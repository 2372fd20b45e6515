//! What this process holds at a moment: memory, files, processes, threads, and what the hosts count themselves.
//!
//! Invariant: read from `/proc` and from the hosts' counters, never estimated. Deliberately Linux only.

use std::collections::BTreeSet;
use std::fs;

use greenroom::host::Host;
use greenroom_boundary::isolate::IsolateCounters;
use serde::Serialize;

/// One moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Sample {
    pub(crate) at_s: f64,
    pub(crate) sessions: usize,
    pub(crate) calls: usize,
    pub(crate) rss_kib: usize,
    pub(crate) fds: usize,
    pub(crate) children: usize,
    pub(crate) threads: usize,
    pub(crate) script_handles: usize,
    pub(crate) connections: usize,
    pub(crate) instances: usize,
    pub(crate) roots: usize,
}

impl Sample {
    /// Now, but for time and progress.
    pub(crate) fn take<'h>(hosts: impl Iterator<Item = &'h Host>, isolate: IsolateCounters) -> Self {
        let (mut connections, mut instances, mut roots) = (0, 0, 0);
        for host in hosts {
            connections += host.core().router.open_connections();
            instances += host.core().router.external_instances();
            roots += host.core().state.living_roots();
        }
        Self {
            rss_kib: status("VmRSS:"),
            threads: status("Threads:"),
            // The listing itself needs one.
            fds: entries("/proc/self/fd").saturating_sub(1),
            children: descendants(),
            script_handles: isolate.live_handles,
            connections,
            instances,
            roots,
            ..Self::default()
        }
    }
}

fn status(field: &str) -> usize {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(field));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn entries(folder: &str) -> usize {
    fs::read_dir(folder).map_or(0, Iterator::count)
}

/// All processes below this one, keepers and what they keep; those that only wait to be reaped count as well.
fn descendants() -> usize {
    let mut found = BTreeSet::new();
    let mut open = vec![std::process::id().to_string()];
    while let Some(pid) = open.pop() {
        for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
            let children = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace() {
                if found.insert(child.to_owned()) {
                    open.push(child.to_owned());
                }
            }
        }
    }
    found.len()
}
