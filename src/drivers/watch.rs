//! Files that people edit: tells when one of them has changed.
//!
//! Invariant: a change is told after the files have been quiet for a moment, so that a save in several steps is one change;
//! a change while nobody listens is told at the next time. Deliberately no reading: whoever is told reads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom_boundary::Clock;
use greenroom_boundary::clock::sleep;
use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

/// How long the files must have been quiet.
const QUIET: Duration = Duration::from_millis(100);

/// A file that cannot be watched.
#[derive(Debug, thiserror::Error)]
#[error("cannot watch {}: {source}", folder.display())]
pub struct WatchError {
    folder: PathBuf,
    source: notify::Error,
}

/// Watches a set of files.
pub struct FileWatch {
    changed: Arc<Notify>,
    saved: Arc<Mutex<BTreeSet<PathBuf>>>,
    /// Watches until it is dropped.
    _watcher: RecommendedWatcher,
}

impl FileWatch {
    /// Watches `files`; one that does not exist yet counts as changed when it appears.
    pub fn new(files: impl IntoIterator<Item = PathBuf>) -> Result<Self, WatchError> {
        Self::with_folders(files, [], |_| false)
    }

    /// The same, and what `counts` in `trees` and below.
    pub fn with_folders(
        files: impl IntoIterator<Item = PathBuf>,
        trees: impl IntoIterator<Item = PathBuf>,
        counts: fn(&Path) -> bool,
    ) -> Result<Self, WatchError> {
        let files: BTreeSet<PathBuf> = files.into_iter().map(|file| real_path(&file)).collect();
        let trees: BTreeSet<PathBuf> = trees.into_iter().map(|tree| std::fs::canonicalize(&tree).unwrap_or(tree)).collect();
        // Folders are watched, not files: editors replace a file by another one of the same name.
        let folders: BTreeSet<PathBuf> = files.iter().filter_map(|file| file.parent().map(Path::to_path_buf)).collect();
        let changed = Arc::new(Notify::new());
        let saved = Arc::new(Mutex::new(BTreeSet::new()));
        let on_event = {
            let (tell, note, trees) = (changed.clone(), saved.clone(), trees.clone());
            let is_meant =
                move |path: &Path| files.contains(path) || (counts(path) && trees.iter().any(|tree| path.starts_with(tree)));
            move |event: notify::Result<Event>| {
                let Some(event) = event.ok().filter(|event| !event.kind.is_access()) else { return };
                let meant: Vec<PathBuf> = event.paths.into_iter().filter(|path| is_meant(path)).collect();
                if !meant.is_empty() {
                    note.lock().unwrap_or_else(PoisonError::into_inner).extend(meant);
                    tell.notify_one();
                }
            }
        };
        let failed = |folder: &Path| {
            let folder = folder.to_path_buf();
            |source| WatchError { folder, source }
        };
        let mut watcher = notify::recommended_watcher(on_event).map_err(failed(Path::new(".")))?;
        for folder in folders.iter().filter(|folder| !trees.iter().any(|tree| folder.starts_with(tree))) {
            watcher.watch(folder, RecursiveMode::NonRecursive).map_err(failed(folder))?;
        }
        for tree in &trees {
            watcher.watch(tree, RecursiveMode::Recursive).map_err(failed(tree))?;
        }
        Ok(Self { changed, saved, _watcher: watcher })
    }

    /// Takes over what another watch has seen and nobody was told.
    pub fn take_over(&self, other: &Self) {
        let seen = std::mem::take(&mut *other.saved.lock().unwrap_or_else(PoisonError::into_inner));
        if !seen.is_empty() {
            self.saved.lock().unwrap_or_else(PoisonError::into_inner).extend(seen);
            self.changed.notify_one();
        }
    }

    /// Completes when a file has changed since the last time, and all are quiet: with those that changed, by their real
    /// paths.
    pub async fn changed(&self, clock: &dyn Clock) -> BTreeSet<PathBuf> {
        self.changed.notified().await;
        loop {
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = sleep(clock, QUIET) => break,
            }
        }
        std::mem::take(&mut *self.saved.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The file by the real path of its folder: events name it so.
pub fn real_path(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    file.file_name().map_or_else(|| folder.clone(), |name| folder.join(name))
}
