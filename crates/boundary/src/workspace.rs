//! The workspace boundary: a folder of files that an agent works in.
//!
//! Invariant: no path leads outside the folder, neither by `..` nor by a link. Deliberately synchronous: files are small, and
//! scripts ask for them on their own threads.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::AgentId;

/// Largest file that is read or written, in bytes.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// What an agent's workspace is, as its config says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceSpec {
    /// A folder; made if it does not exist.
    Folder(PathBuf),
    /// Files by their paths: a simulated one begins with them.
    Files(BTreeMap<String, String>),
}

/// A file or folder in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirEntry {
    /// Its name.
    pub name: String,
    /// Whether it is a folder.
    pub is_dir: bool,
    /// Its size in bytes; 0 for a folder.
    pub size: u64,
}

/// What is known of a file or folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStat {
    /// Its name.
    pub name: String,
    /// Its size in bytes; 0 for a folder.
    pub size: u64,
    /// Whether it is a folder.
    pub is_dir: bool,
    /// Its permission bits.
    pub mode: u32,
    /// When it was last changed, in milliseconds since the Unix epoch.
    pub mtime: u64,
}

/// Something that cannot be done in a workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkspaceError {
    /// It leads outside.
    #[error("{path:?} leads outside the workspace")]
    Outside {
        /// The path.
        path: String,
    },
    /// There is nothing.
    #[error("there is no {path:?} in the workspace")]
    NotFound {
        /// The path.
        path: String,
    },
    /// There is something else.
    #[error("{path:?} {problem}")]
    Wrong {
        /// The path.
        path: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The file system failed.
    #[error("{path:?}: {message}")]
    Io {
        /// The path.
        path: String,
        /// What happened.
        message: String,
    },
    /// There is no workspace here.
    #[error("{message}")]
    Unavailable {
        /// Why, and what to do.
        message: String,
    },
}

impl WorkspaceError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Outside { .. } => "WORKSPACE_OUTSIDE",
            Self::NotFound { .. } => "WORKSPACE_NOT_FOUND",
            Self::Wrong { .. } => "WORKSPACE_WRONG_KIND",
            Self::Io { .. } => "WORKSPACE_IO",
            Self::Unavailable { .. } => "WORKSPACE_UNAVAILABLE",
        }
    }

    /// Something else is there.
    pub fn wrong(path: &str, problem: &'static str) -> Self {
        Self::Wrong { path: path.to_owned(), problem }
    }
}

/// The parts of a path below the workspace's root; a leading `/` is the root. None of them is `.` or `..`.
pub fn parts(path: &str) -> Result<Vec<&str>, WorkspaceError> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                if parts.pop().is_none() {
                    return Err(WorkspaceError::Outside { path: path.to_owned() });
                }
            }
            part if part.contains(['\\', '\0']) => {
                return Err(WorkspaceError::wrong(path, "holds a character that no file name may have"));
            }
            part => parts.push(part),
        }
    }
    Ok(parts)
}

/// A folder of files. Paths are relative to its root.
pub trait Workspace: fmt::Debug + Send + Sync {
    /// A file's bytes.
    fn read(&self, path: &str) -> Result<Vec<u8>, WorkspaceError>;

    /// Writes a whole file; its folder must exist.
    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), WorkspaceError>;

    /// What is in a folder, by name.
    fn list(&self, path: &str) -> Result<Vec<DirEntry>, WorkspaceError>;

    /// Makes a folder and those above it.
    fn make_dirs(&self, path: &str) -> Result<(), WorkspaceError>;

    /// Removes a file or an empty folder.
    fn remove(&self, path: &str) -> Result<(), WorkspaceError>;

    /// Removes a file or a whole folder; nothing there is no error.
    fn remove_all(&self, path: &str) -> Result<(), WorkspaceError>;

    /// Moves a file or folder; a file that is there is replaced.
    fn rename(&self, from: &str, to: &str) -> Result<(), WorkspaceError>;

    /// Copies a file.
    fn copy(&self, from: &str, to: &str) -> Result<(), WorkspaceError>;

    /// What is known of a file or folder.
    fn stat(&self, path: &str) -> Result<FileStat, WorkspaceError>;
}

/// Opens workspaces.
pub trait Workspaces: fmt::Debug + Send + Sync {
    /// The workspace of an agent.
    fn open(&self, owner: &AgentId, spec: &WorkspaceSpec) -> Result<Arc<dyn Workspace>, WorkspaceError>;
}
