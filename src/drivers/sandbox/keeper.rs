//! The keeper: a small process between the host and one child, so that nothing of the child outlives the host.
//!
//! Invariant: when the child ends, when the host is gone or when the host says so, every descendant of the child is killed
//! and reaped, also one that left the process group, and the keeper ends as the child did. Deliberately no byte passes
//! through it: the child has the host's pipes themselves.
//!
//! It works where the kernel can tell of a parent's death and give orphans to an ancestor, which is Linux. A child that
//! kills its keeper (it has the same user) escapes: this is order among friends, no wall against an enemy.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use nix::errno::Errno;
use nix::sys::prctl::{set_child_subreaper, set_pdeathsig};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{Pid, alarm, dup2_stderr, dup2_stdin, dup2_stdout, getpid, getppid};
use signal_hook::iterator::Signals;

/// The word that makes a program a keeper: `PROGRAM _exec HOST_PID COMMAND [ARGUMENT…]`.
pub(super) const WORD: &str = "_exec";
/// The kernel says that the parent is gone.
const HOST_GONE: Signal = Signal::SIGHUP;
/// The host says: kill everything now.
pub(crate) const KILL_ALL: Signal = Signal::SIGUSR1;
/// How long a child may take to end by itself after its host is gone.
const HOST_GONE_GRACE_S: u32 = 1;
/// Exit codes of a child that cannot be started, as shells have them.
const NOT_STARTED: u8 = 126;
const NOT_FOUND: u8 = 127;

/// Acts as a keeper if this process was started as one. Call it first in `main`, before any thread exists.
pub fn keep_if_asked() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != WORD {
        return None;
    }
    let host = words.next().and_then(|word| word.to_str()?.parse().ok()).map(Pid::from_raw);
    let (Some(host), Some(command)) = (host, words.next()) else {
        eprintln!("{WORD} is for the host's own use; it takes the host's process id and a command");
        return Some(ExitCode::from(NOT_STARTED));
    };
    let kept = keep(host, &command, words.collect());
    Some(kept.unwrap_or_else(|error| {
        // Only before the start: afterwards the outputs are the child's alone.
        eprintln!("`{}` cannot be started: {error}", command.to_string_lossy());
        ExitCode::from(if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED })
    }))
}

fn keep(host: Pid, command: &OsString, args: Vec<OsString>) -> io::Result<ExitCode> {
    let forwarded = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGQUIT];
    let own = [HOST_GONE, KILL_ALL, Signal::SIGALRM, Signal::SIGCHLD];
    let mut signals = Signals::new(forwarded.into_iter().chain(own).map(|signal| signal as i32))?;
    set_child_subreaper(true)?;
    set_pdeathsig(HOST_GONE)?;
    if getppid() != host {
        // It died before its death could be announced.
        return Ok(ExitCode::from(NOT_STARTED));
    }
    let leader = start(command, args)?;
    for signal in signals.forever().filter_map(|number| Signal::try_from(number).ok()) {
        match signal {
            Signal::SIGCHLD if reap_others(leader) => break,
            Signal::SIGCHLD => {}
            // The thread that started us may end long before its process does.
            HOST_GONE if getppid() == host => {}
            HOST_GONE => {
                let _ = killpg(leader, Signal::SIGTERM);
                alarm::set(HOST_GONE_GRACE_S);
            }
            KILL_ALL | Signal::SIGALRM => break,
            // The group may be ending just now; then SIGCHLD says so.
            other => drop(killpg(leader, other)),
        }
    }
    Ok(end_like(end_all(leader)))
}

/// Starts the child as the leader of a group of its own, and lets go of its pipes.
#[expect(clippy::disallowed_methods, reason = "this driver starts processes")]
fn start(command: &OsString, args: Vec<OsString>) -> io::Result<Pid> {
    let child = Command::new(command).args(args).process_group(0).spawn()?;
    let leader = i32::try_from(child.id()).map(Pid::from_raw).map_err(io::Error::other)?;
    // If only the child has them, the host sees at once when it closes them.
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    dup2_stdin(&nothing)?;
    dup2_stdout(&nothing)?;
    dup2_stderr(&nothing)?;
    Ok(leader)
}

/// Reaps the orphans that have ended. Whether the leader has, too; it is left to be reaped last, so that its number stays
/// the group's.
fn reap_others(leader: Pid) -> bool {
    loop {
        match waitid(Id::All, WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT) {
            Ok(ended) if ended.pid() == Some(leader) => return true,
            Ok(ended) => match ended.pid() {
                Some(orphan) => drop(waitpid(orphan, Some(WaitPidFlag::WNOHANG))),
                None => return false,
            },
            Err(Errno::EINTR) => {}
            Err(_) => return true,
        }
    }
}

/// Kills and reaps all descendants: those that lose their parent become children of this process. How the leader ended.
fn end_all(leader: Pid) -> Option<WaitStatus> {
    let _ = killpg(leader, Signal::SIGKILL);
    let mut end = None;
    loop {
        let children = children();
        // A process of another user (setuid) cannot be killed, and must not be waited for.
        let killed = children.iter().filter(|child| kill(**child, Signal::SIGKILL).is_ok()).count();
        if killed == 0 {
            return end;
        }
        match waitpid(None, None) {
            Ok(status) if status.pid() == Some(leader) => end = Some(status),
            Ok(_) | Err(Errno::EINTR) => {}
            Err(_) => return end,
        }
    }
}

/// The living children of this process. The kernel's own list is quick, and may miss some while others end; then
/// everything is searched.
fn children() -> Vec<Pid> {
    let own = getpid();
    let list = std::fs::read_to_string(format!("/proc/self/task/{own}/children")).unwrap_or_default();
    let listed: Vec<Pid> = list.split_whitespace().filter_map(|pid| pid.parse().ok()).map(Pid::from_raw).collect();
    if !listed.is_empty() {
        return listed;
    }
    let Ok(processes) = std::fs::read_dir("/proc") else { return listed };
    let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| parent(*pid) == Some(own)).map(Pid::from_raw).collect()
}

fn parent(pid: i32) -> Option<Pid> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // State and parent follow the program's name, which stands in parentheses and may hold anything.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok().map(Pid::from_raw)
}

/// Ends this process the way its child ended.
fn end_like(end: Option<WaitStatus>) -> ExitCode {
    match end {
        Some(WaitStatus::Exited(_, code)) => ExitCode::from(u8::try_from(code).unwrap_or(NOT_STARTED)),
        Some(WaitStatus::Signaled(_, signal, _)) => {
            // The child has left its memory image, if anybody wants one.
            let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
            let _ = signal_hook::low_level::emulate_default_handler(signal as i32);
            ExitCode::from(128_u8.saturating_add(signal as u8))
        }
        _ => ExitCode::from(NOT_STARTED),
    }
}
