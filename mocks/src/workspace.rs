//! A workspace in memory.
//!
//! Invariant: it is the same for the same agent as long as the driver lives, and begins with the files of its spec; a folder
//! of the real file system begins empty. Deliberately no permissions: everything may be read and written.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_boundary::clock::UnixNanos;
use greenroom_boundary::workspace::{DirEntry, FileStat, Workspace, WorkspaceError, WorkspaceSpec, Workspaces, parts};
use greenroom_boundary::{AgentId, Clock};

/// Workspaces in memory. Clones share them.
#[derive(Clone, Debug)]
pub struct MemoryWorkspaces {
    clock: Arc<dyn Clock>,
    open: Arc<Mutex<BTreeMap<AgentId, Arc<MemoryWorkspace>>>>,
}

impl MemoryWorkspaces {
    /// Workspaces whose files are dated by `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, open: Arc::default() }
    }
}

impl Workspaces for MemoryWorkspaces {
    fn open(&self, owner: &AgentId, spec: &WorkspaceSpec) -> Result<Arc<dyn Workspace>, WorkspaceError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(workspace) = open.get(owner) {
            return Ok(workspace.clone());
        }
        let workspace = Arc::new(MemoryWorkspace { clock: self.clock.clone(), nodes: Mutex::default() });
        if let WorkspaceSpec::Files(files) = spec {
            for (path, text) in files {
                let folders = parts(path)?;
                workspace.make_dirs(&folders[..folders.len().saturating_sub(1)].join("/"))?;
                workspace.write(path, text.as_bytes())?;
            }
        }
        open.insert(owner.clone(), workspace.clone());
        Ok(workspace)
    }
}

#[derive(Clone)]
enum Node {
    Folder(UnixNanos),
    File(Vec<u8>, UnixNanos),
}

/// A path below the root.
type Place = Vec<String>;

/// A workspace in memory.
pub struct MemoryWorkspace {
    clock: Arc<dyn Clock>,
    /// By path; the root itself is not in it.
    nodes: Mutex<BTreeMap<Place, Node>>,
}

impl fmt::Debug for MemoryWorkspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryWorkspace")
    }
}

fn place(path: &str) -> Result<Place, WorkspaceError> {
    Ok(parts(path)?.into_iter().map(str::to_owned).collect())
}

fn not_found(path: &str) -> WorkspaceError {
    WorkspaceError::NotFound { path: path.to_owned() }
}

impl MemoryWorkspace {
    fn with<T>(&self, work: impl FnOnce(&mut BTreeMap<Place, Node>) -> T) -> T {
        work(&mut self.nodes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The file at a place.
fn file<'n>(nodes: &'n BTreeMap<Place, Node>, at: &Place, path: &str) -> Result<&'n Vec<u8>, WorkspaceError> {
    match nodes.get(at) {
        Some(Node::File(bytes, _)) => Ok(bytes),
        Some(Node::Folder(_)) => Err(WorkspaceError::wrong(path, "is a folder")),
        None if at.is_empty() => Err(WorkspaceError::wrong(path, "is a folder")),
        None => Err(not_found(path)),
    }
}

/// Whether something can be put there: its folder exists.
fn has_folder(nodes: &BTreeMap<Place, Node>, at: &Place, path: &str) -> Result<(), WorkspaceError> {
    let Some((_, above)) = at.split_last() else { return Err(WorkspaceError::wrong(path, "is a folder")) };
    match nodes.get(above) {
        _ if above.is_empty() => Ok(()),
        Some(Node::Folder(_)) => Ok(()),
        Some(Node::File(..)) => Err(WorkspaceError::wrong(path, "is below a file")),
        None => Err(not_found(path)),
    }
}

fn put(nodes: &mut BTreeMap<Place, Node>, at: Place, path: &str, node: Node) -> Result<(), WorkspaceError> {
    has_folder(nodes, &at, path)?;
    if matches!((nodes.get(&at), &node), (Some(Node::Folder(_)), Node::File(..))) {
        return Err(WorkspaceError::wrong(path, "is a folder"));
    }
    nodes.insert(at, node);
    Ok(())
}

/// The places below a folder.
fn below<'n>(nodes: &'n BTreeMap<Place, Node>, folder: &'n Place) -> impl Iterator<Item = (&'n Place, &'n Node)> {
    nodes.iter().filter(move |(place, _)| place.len() > folder.len() && place.starts_with(folder))
}

impl Workspace for MemoryWorkspace {
    fn read(&self, path: &str) -> Result<Vec<u8>, WorkspaceError> {
        let at = place(path)?;
        self.with(|nodes| file(nodes, &at, path).cloned())
    }

    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), WorkspaceError> {
        let (at, now) = (place(path)?, self.clock.wall());
        self.with(|nodes| put(nodes, at, path, Node::File(bytes.to_vec(), now)))
    }

    fn list(&self, path: &str) -> Result<Vec<DirEntry>, WorkspaceError> {
        let at = place(path)?;
        self.with(|nodes| {
            match nodes.get(&at) {
                Some(Node::File(..)) => return Err(WorkspaceError::wrong(path, "is no folder")),
                None if !at.is_empty() => return Err(not_found(path)),
                _ => {}
            }
            let entry = |(place, node): (&Place, &Node)| DirEntry {
                name: place.last().cloned().unwrap_or_default(),
                is_dir: matches!(node, Node::Folder(_)),
                size: if let Node::File(bytes, _) = node { bytes.len() as u64 } else { 0 },
            };
            Ok(below(nodes, &at).filter(|(place, _)| place.len() == at.len() + 1).map(entry).collect())
        })
    }

    fn make_dirs(&self, path: &str) -> Result<(), WorkspaceError> {
        let (at, now) = (place(path)?, self.clock.wall());
        self.with(|nodes| {
            for depth in 1..=at.len() {
                if let Node::File(..) = nodes.entry(at[..depth].to_vec()).or_insert(Node::Folder(now)) {
                    return Err(WorkspaceError::wrong(path, "is below a file, or one itself"));
                }
            }
            Ok(())
        })
    }

    fn remove(&self, path: &str) -> Result<(), WorkspaceError> {
        let at = place(path)?;
        self.with(|nodes| {
            if at.is_empty() || below(nodes, &at).next().is_some() {
                return Err(WorkspaceError::wrong(path, "is a folder that is not empty"));
            }
            nodes.remove(&at).map(drop).ok_or_else(|| not_found(path))
        })
    }

    fn remove_all(&self, path: &str) -> Result<(), WorkspaceError> {
        let at = place(path)?;
        if at.is_empty() {
            return Err(WorkspaceError::wrong(path, "is the workspace itself"));
        }
        self.with(|nodes| nodes.retain(|place, _| !place.starts_with(&at)));
        Ok(())
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), WorkspaceError> {
        let (old, new) = (place(from)?, place(to)?);
        self.with(|nodes| {
            let node = nodes.get(&old).cloned().ok_or_else(|| not_found(from))?;
            if new.starts_with(&old) && new != old {
                return Err(WorkspaceError::wrong(to, "is below what is moved"));
            }
            put(nodes, new.clone(), to, node)?;
            if new == old {
                return Ok(());
            }
            let moved: Vec<(Place, Node)> = below(nodes, &old).map(|(place, node)| (place.clone(), node.clone())).collect();
            nodes.retain(|place, _| !place.starts_with(&old));
            nodes.extend(moved.into_iter().map(|(place, node)| ([&new[..], &place[old.len()..]].concat(), node)));
            Ok(())
        })
    }

    fn copy(&self, from: &str, to: &str) -> Result<(), WorkspaceError> {
        let bytes = self.read(from)?;
        self.write(to, &bytes)
    }

    fn stat(&self, path: &str) -> Result<FileStat, WorkspaceError> {
        let at = place(path)?;
        let name = at.last().cloned().unwrap_or_else(|| ".".to_owned());
        let folder =
            |when: UnixNanos| FileStat { name: name.clone(), size: 0, is_dir: true, mode: 0o755, mtime: when.as_millis() };
        self.with(|nodes| match nodes.get(&at) {
            Some(Node::File(bytes, when)) => {
                let (size, mtime) = (bytes.len() as u64, when.as_millis());
                Ok(FileStat { name: name.clone(), size, is_dir: false, mode: 0o644, mtime })
            }
            Some(Node::Folder(when)) => Ok(folder(*when)),
            None if at.is_empty() => Ok(folder(self.clock.wall())),
            None => Err(not_found(path)),
        })
    }
}
