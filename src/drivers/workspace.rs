//! Workspaces that are folders.
//!
//! Invariant: every access goes through a handle on the folder that the kernel confines, so that links and races lead nowhere
//! else. Deliberately no quota: a folder is as large as its file system lets it be.

use std::io;
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::{Dir, MetadataExt as _};
use greenroom_boundary::AgentId;
use greenroom_boundary::workspace::{
    DirEntry, FileStat, MAX_FILE_BYTES, Workspace, WorkspaceError, WorkspaceSpec, Workspaces, parts,
};

/// Opens folders.
#[derive(Clone, Copy, Debug, Default)]
pub struct FolderWorkspaces;

impl Workspaces for FolderWorkspaces {
    fn open(&self, owner: &AgentId, spec: &WorkspaceSpec) -> Result<Arc<dyn Workspace>, WorkspaceError> {
        let WorkspaceSpec::Folder(folder) = spec else {
            let message = format!("the workspace of {owner} is simulated, and this host works with real folders");
            return Err(WorkspaceError::Unavailable { message });
        };
        let unavailable = |error: io::Error| {
            let message = format!("the workspace {} of {owner} cannot be opened: {error}", folder.display());
            WorkspaceError::Unavailable { message }
        };
        std::fs::create_dir_all(folder).map_err(unavailable)?;
        let root = Dir::open_ambient_dir(folder, ambient_authority()).map_err(unavailable)?;
        Ok(Arc::new(FolderWorkspace { root }))
    }
}

/// A workspace that is a folder.
#[derive(Debug)]
struct FolderWorkspace {
    root: Dir,
}

/// A path as the folder's handle takes it.
fn inside(path: &str) -> Result<String, WorkspaceError> {
    let parts = parts(path)?;
    Ok(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}

fn failed(path: &str) -> impl Fn(io::Error) -> WorkspaceError + use<'_> {
    move |error| match error.kind() {
        io::ErrorKind::NotFound => WorkspaceError::NotFound { path: path.to_owned() },
        io::ErrorKind::IsADirectory => WorkspaceError::wrong(path, "is a folder"),
        io::ErrorKind::NotADirectory => WorkspaceError::wrong(path, "is no folder, or below a file"),
        io::ErrorKind::AlreadyExists => WorkspaceError::wrong(path, "is there already and is something else"),
        io::ErrorKind::DirectoryNotEmpty => WorkspaceError::wrong(path, "is a folder that is not empty"),
        _ => WorkspaceError::Io { path: path.to_owned(), message: error.to_string() },
    }
}

impl Workspace for FolderWorkspace {
    fn read(&self, path: &str) -> Result<Vec<u8>, WorkspaceError> {
        let at = inside(path)?;
        let metadata = self.root.metadata(&at).map_err(failed(path))?;
        if metadata.is_dir() {
            return Err(WorkspaceError::wrong(path, "is a folder"));
        }
        // A pipe or a device may never end.
        if !metadata.is_file() {
            return Err(WorkspaceError::wrong(path, "is no regular file"));
        }
        if metadata.len() > MAX_FILE_BYTES {
            return Err(WorkspaceError::wrong(path, "is too large to be read"));
        }
        self.root.read(&at).map_err(failed(path))
    }

    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), WorkspaceError> {
        let at = inside(path)?;
        if self.root.metadata(&at).is_ok_and(|metadata| metadata.is_dir()) {
            return Err(WorkspaceError::wrong(path, "is a folder"));
        }
        self.root.write(&at, bytes).map_err(failed(path))
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, WorkspaceError> {
        let mut entries = Vec::new();
        for entry in self.root.read_dir(inside(path)?).map_err(failed(path))? {
            let entry = entry.map_err(failed(path))?;
            let metadata = entry.metadata().map_err(failed(path))?;
            let is_dir = metadata.is_dir();
            let name = entry.file_name().to_string_lossy().into_owned();
            entries.push(DirEntry { name, is_dir, size: if is_dir { 0 } else { metadata.len() } });
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(entries)
    }

    fn make_dirs(&self, path: &str) -> Result<(), WorkspaceError> {
        self.root.create_dir_all(inside(path)?).map_err(failed(path))
    }

    fn remove(&self, path: &str) -> Result<(), WorkspaceError> {
        let at = inside(path)?;
        if at == "." {
            return Err(WorkspaceError::wrong(path, "is the workspace itself"));
        }
        let is_dir = self.root.symlink_metadata(&at).map_err(failed(path))?.is_dir();
        let removed = if is_dir { self.root.remove_dir(&at) } else { self.root.remove_file(&at) };
        removed.map_err(failed(path))
    }

    fn remove_all(&self, path: &str) -> Result<(), WorkspaceError> {
        let at = inside(path)?;
        if at == "." {
            return Err(WorkspaceError::wrong(path, "is the workspace itself"));
        }
        let metadata = match self.root.symlink_metadata(&at) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(failed(path))?,
        };
        let removed = if metadata.is_dir() { self.root.remove_dir_all(&at) } else { self.root.remove_file(&at) };
        removed.map_err(failed(path))
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), WorkspaceError> {
        let (old, new) = (inside(from)?, inside(to)?);
        self.root.rename(&old, &self.root, &new).map_err(failed(from))
    }

    fn copy(&self, from: &str, to: &str) -> Result<(), WorkspaceError> {
        let bytes = self.read(from)?;
        self.write(to, &bytes)
    }

    fn stat(&self, path: &str) -> Result<FileStat, WorkspaceError> {
        let at = inside(path)?;
        let metadata = self.root.metadata(&at).map_err(failed(path))?;
        let is_dir = metadata.is_dir();
        let seconds = u64::try_from(metadata.mtime()).unwrap_or_default();
        let millis = u64::try_from(metadata.mtime_nsec()).unwrap_or_default() / 1_000_000;
        Ok(FileStat {
            name: at.rsplit('/').next().unwrap_or_default().to_owned(),
            size: if is_dir { 0 } else { metadata.len() },
            is_dir,
            mode: metadata.mode() & 0o7777,
            mtime: seconds * 1000 + millis,
        })
    }
}
