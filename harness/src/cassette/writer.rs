//! Writes a cassette: one append per event to `NAME.partial`, sealed and renamed at the end.
//!
//! Invariant: at any moment the file is a usable prefix; only a sealed file has the final name; one recorder at a time, by
//! the lock on `NAME.claim`, which dies with its process. After a failed write nothing more is written, as the chain is
//! broken there. Deliberately no redaction here: it happens before lines are made.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use super::chain;
use super::line::Line;
use super::reader::{MAX_LINE_BYTES, partial_path, with_suffix};

/// Why a cassette cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// Another recorder is at work on it.
    #[error("{path} is being recorded by process {pid}; wait for it to end, or record to another file")]
    Claimed {
        /// The cassette.
        path: PathBuf,
        /// The other process.
        pid: String,
    },
    /// The file system said no.
    #[error("cannot write cassette {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What happened.
        source: std::io::Error,
    },
    /// An event is beyond the limit of a line.
    #[error("an event of {bytes} bytes is beyond the limit of 16 MiB; it was not recorded")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
    /// An event cannot be spelt as JSON.
    #[error("an event cannot be encoded: {message}")]
    Encode {
        /// What happened.
        message: String,
    },
    /// An earlier write failed.
    #[error("an earlier write to {path} failed; the recording stops there")]
    Broken {
        /// The file.
        path: PathBuf,
    },
}

impl WriteError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Claimed { .. } => "CASSETTE_CLAIMED",
            Self::Io { .. } => "CASSETTE_IO",
            Self::TooLong { .. } => "CASSETTE_TOO_LONG",
            Self::Encode { .. } => "CASSETTE_ENCODE",
            Self::Broken { .. } => "CASSETTE_BROKEN",
        }
    }
}

/// An open cassette.
#[derive(Debug)]
pub struct Writer {
    path: PathBuf,
    file: File,
    h: String,
    broken: bool,
    /// Held until the writer goes.
    claim: Claim,
}

impl Writer {
    /// Claims the name and starts an empty `.partial`. What an earlier, torn recording left there is kept as `.partial.old`.
    pub fn create(path: &Path) -> Result<Self, WriteError> {
        let io = |source| WriteError::Io { path: path.to_owned(), source };
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(io)?;
        }
        let claim = Claim::take(path)?;
        let partial = partial_path(path);
        match std::fs::rename(&partial, with_suffix(&partial, ".old")) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(io(error)),
            _ => {}
        }
        let file = OpenOptions::new().append(true).create_new(true).open(&partial).map_err(io)?;
        Ok(Self { path: path.to_owned(), file, h: chain::START.to_owned(), broken: false, claim })
    }

    /// Appends one line with one write.
    pub fn append(&mut self, line: &Line) -> Result<(), WriteError> {
        if self.broken {
            return Err(WriteError::Broken { path: self.path.clone() });
        }
        let object = serde_json::to_string(line).map_err(|error| WriteError::Encode { message: error.to_string() })?;
        let (text, h) = chain::close_line(&self.h, &object);
        if text.len() > MAX_LINE_BYTES {
            return Err(WriteError::TooLong { bytes: text.len() });
        }
        if let Err(source) = self.file.write_all(text.as_bytes()) {
            self.broken = true;
            return Err(WriteError::Io { path: partial_path(&self.path), source });
        }
        self.h = h;
        Ok(())
    }

    /// What is on disk now.
    pub fn written(&self) -> Result<Vec<u8>, WriteError> {
        let partial = partial_path(&self.path);
        std::fs::read(&partial).map_err(|source| WriteError::Io { path: partial, source })
    }

    /// Syncs the file and gives it its final name.
    pub fn finish(self) -> Result<PathBuf, WriteError> {
        let io = |source| WriteError::Io { path: self.path.clone(), source };
        self.file.sync_all().map_err(io)?;
        std::fs::rename(partial_path(&self.path), &self.path).map_err(io)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)?;
        drop(self.claim);
        Ok(self.path)
    }
}

/// The right to record under a name.
#[derive(Debug)]
struct Claim {
    path: PathBuf,
    file: File,
}

impl Claim {
    fn take(cassette: &Path) -> Result<Self, WriteError> {
        let path = with_suffix(cassette, ".claim");
        let io = |source| WriteError::Io { path: path.clone(), source };
        // A claim whose owner is dead is not locked. It may vanish between two steps, hence the few rounds.
        for _ in 0..8 {
            let file = match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    match OpenOptions::new().read(true).write(true).open(&path) {
                        Err(error) if error.kind() == ErrorKind::NotFound => continue,
                        other => other.map_err(io)?,
                    }
                }
                other => other.map_err(io)?,
            };
            if file.try_lock().is_err() {
                break;
            }
            if is_same_file(&file, &path) {
                file.set_len(0).map_err(io)?;
                (&file).write_all(std::process::id().to_string().as_bytes()).map_err(io)?;
                return Ok(Self { path, file });
            }
        }
        let pid = std::fs::read_to_string(&path).unwrap_or_default();
        let pid = if pid.is_empty() { "unknown".to_owned() } else { pid };
        Err(WriteError::Claimed { path: cassette.to_owned(), pid })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Removed while still locked, so that nobody locks a file that is about to go.
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// Whether the locked file is still the one at this path.
fn is_same_file(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}
