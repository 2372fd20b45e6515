//! How a child is started: directly, or under a keeper.
//!
//! Invariant: a program that does not exist is an error of the start in both ways. Deliberately no shell.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tokio::process::Command;

/// Which program, if any, keeps children (`PROGRAM _exec …`): with one, nothing that a child starts outlives the host,
/// even if the host is killed. Without one, a killed host's children end when they notice that their pipes are closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildKeeper(Option<PathBuf>);

impl ChildKeeper {
    /// Children are started directly.
    pub fn none() -> Self {
        Self(None)
    }

    /// This program keeps them. Its `main` begins with `keep_if_asked`. Only Linux has what a keeper needs; elsewhere
    /// children are started directly.
    pub fn program(program: impl Into<PathBuf>) -> Self {
        Self(cfg!(target_os = "linux").then(|| program.into()))
    }

    /// The running program itself, for programs whose `main` begins with `keep_if_asked`.
    pub fn this_program() -> Self {
        std::env::current_exe().map_or_else(|_| Self::none(), Self::program)
    }

    /// A command that starts this one.
    #[expect(clippy::disallowed_methods, reason = "this is where the drivers' processes come from")]
    pub(crate) fn command(&self, program: &str, args: &[String]) -> ChildCommand {
        let mut command = Command::new(self.0.as_deref().map_or(OsStr::new(program), Path::as_os_str));
        if self.0.is_some() {
            command.args([super::KEEPER_WORD, &std::process::id().to_string(), program]);
        }
        command.args(args);
        ChildCommand { command, kept: self.0.as_ref().map(|_| program.to_owned()) }
    }
}

/// A child that is not started yet.
#[derive(Debug)]
pub(crate) struct ChildCommand {
    pub(crate) command: Command,
    /// The program, if a keeper will start it.
    kept: Option<String>,
}

impl ChildCommand {
    /// Whether a keeper will start it.
    pub(crate) fn kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Whether the program can be found at all: the keeper could say so only on stderr.
    pub(super) fn check(&self) -> io::Result<()> {
        let Some(program) = &self.kept else { return Ok(()) };
        let command = self.command.as_std();
        let folder = command.get_current_dir().unwrap_or(Path::new(""));
        if program.contains('/') {
            return runnable(&folder.join(program));
        }
        let path = command.get_envs().find_map(|(name, value)| (name == "PATH").then_some(value).flatten());
        let path = path.unwrap_or(OsStr::new("/bin:/usr/bin"));
        let mut result = Err(io::ErrorKind::NotFound.into());
        for place in std::env::split_paths(path) {
            match runnable(&folder.join(place).join(program)) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => result = Err(error),
                Err(_) => {}
            }
        }
        result
    }
}

fn runnable(file: &Path) -> io::Result<()> {
    let metadata = std::fs::metadata(file)?;
    if metadata.is_file() && metadata.permissions().mode() & 0o111 != 0 {
        return Ok(());
    }
    Err(io::ErrorKind::PermissionDenied.into())
}
