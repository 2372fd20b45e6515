//! Files that people edit: tells when one of them has changed.
//!
//! Invariant: a change is told after the files have been quiet for a moment, so that a save in several steps is one change;
//! a change while nobody listens is told at the next time. Deliberately no reading: whoever is told reads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
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
    /// Watches until it is dropped.
    _watcher: RecommendedWatcher,
}

impl FileWatch {
    /// Watches `files`; one that does not exist yet counts as changed when it appears.
    pub fn new(files: impl IntoIterator<Item = PathBuf>) -> Result<Self, WatchError> {
        let files: BTreeSet<PathBuf> = files.into_iter().map(|file| in_real_folder(&file)).collect();
        // Folders are watched, not files: editors replace a file by another one of the same name.
        let folders: BTreeSet<PathBuf> = files.iter().filter_map(|file| file.parent().map(Path::to_path_buf)).collect();
        let changed = Arc::new(Notify::new());
        let tell = changed.clone();
        let on_event = move |event: notify::Result<Event>| {
            if event.is_ok_and(|event| !event.kind.is_access() && event.paths.iter().any(|path| files.contains(path))) {
                tell.notify_one();
            }
        };
        let failed = |folder: &Path| {
            let folder = folder.to_path_buf();
            |source| WatchError { folder, source }
        };
        let mut watcher = notify::recommended_watcher(on_event).map_err(failed(Path::new(".")))?;
        for folder in &folders {
            watcher.watch(folder, RecursiveMode::NonRecursive).map_err(failed(folder))?;
        }
        Ok(Self { changed, _watcher: watcher })
    }

    /// Completes when a file has changed since the last time, and all are quiet.
    pub async fn changed(&self, clock: &dyn Clock) {
        self.changed.notified().await;
        loop {
            tokio::select! {
                biased;
                () = self.changed.notified() => {}
                () = sleep(clock, QUIET) => return,
            }
        }
    }
}

/// The file by the real path of its folder: events name it so.
fn in_real_folder(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_path_buf());
    file.file_name().map_or_else(|| folder.clone(), |name| folder.join(name))
}
