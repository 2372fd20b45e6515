//! Snapshots: a run's transcript kept in a file beside the scenario and compared on each run.
//!
//! Invariant: comparing never writes; only [`SnapshotMode::Update`] replaces a snapshot, and a pending file is written only
//! in [`SnapshotMode::Pending`]. Deliberately no review tool: a pending file is an ordinary file to look at and rename.

use std::path::{Path, PathBuf};

use greenroom_boundary::trace::{EventKind, TraceEvent};
use serde_json::Value;
use similar::TextDiff;

/// What stands for a masked value.
const MASKED: &str = "«masked»";
/// The snapshot that holds only what the client saw.
const CLIENT_STREAM: &str = "client-stream";

/// What may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SnapshotMode {
    /// Nothing: continuous integration.
    #[default]
    Check,
    /// `NAME.snap.new` beside a snapshot that differs.
    Pending,
    /// The snapshot itself.
    Update,
}

/// How a comparison ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotOutcome {
    /// The same.
    Same,
    /// Written anew.
    Written(PathBuf),
    /// It differs; a unified diff.
    Differs {
        /// The snapshot.
        path: PathBuf,
        /// Old against new, shortened by nobody.
        diff: String,
    },
    /// There is none yet.
    Missing(PathBuf),
    /// The file could not be read or written.
    Unusable {
        /// The snapshot.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// Where the snapshot of a case lives: `snapshots/<id>/<name>.snap` under `root`.
pub fn path(root: &Path, id: &str, name: &str) -> PathBuf {
    root.join("snapshots").join(plain(id)).join(format!("{}.snap", plain(name).replace('/', "_")))
}

/// A case id as a relative path: `/` makes folders, what a file name cannot hold everywhere becomes `_`.
pub fn plain(id: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || "._=,-".contains(c) { c } else { '_' };
    let parts = id.split('/').map(|part| part.chars().map(kept).collect::<String>());
    parts
        .map(|part| if part.chars().all(|c| c == '.') { "_".repeat(part.len().max(1)) } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

/// The transcript to keep: one event per line, the masked places replaced.
pub fn content(name: &str, events: &[TraceEvent], mask: &[String]) -> String {
    let kept: Vec<Value> = events
        .iter()
        .filter(|event| name != CLIENT_STREAM || is_client_visible(&event.kind))
        .filter_map(|event| serde_json::to_value(event).ok())
        .collect();
    let mut whole = serde_json::json!({ "events": kept });
    for pointer in mask {
        let segments: Vec<_> = pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect();
        mask_at(&mut whole, &segments);
    }
    let mut text = String::new();
    for event in whole["events"].as_array().into_iter().flatten() {
        text.push_str(&event.to_string());
        text.push('\n');
    }
    text
}

fn is_client_visible(kind: &EventKind) -> bool {
    matches!(kind, EventKind::Stimulus { .. } | EventKind::StimulusEnd { .. } | EventKind::Output { .. })
}

/// Replaces what the pointer names; `*` stands for every member or element.
fn mask_at(value: &mut Value, segments: &[String]) {
    let Some((first, rest)) = segments.split_first() else {
        *value = Value::String(MASKED.to_owned());
        return;
    };
    match value {
        Value::Array(items) if first == "*" => items.iter_mut().for_each(|item| mask_at(item, rest)),
        Value::Object(map) if first == "*" => map.values_mut().for_each(|item| mask_at(item, rest)),
        Value::Array(items) => {
            if let Some(item) = first.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                mask_at(item, rest);
            }
        }
        Value::Object(map) => {
            if let Some(item) = map.get_mut(first) {
                mask_at(item, rest);
            }
        }
        _ => {}
    }
}

/// Compares (or writes) the snapshot at `path`.
pub fn compare(path: &Path, content: &str, mode: SnapshotMode) -> SnapshotOutcome {
    let unusable = |error: std::io::Error| SnapshotOutcome::Unusable { path: path.to_owned(), reason: error.to_string() };
    let old = match std::fs::read_to_string(path) {
        Ok(old) => Some(old),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return unusable(error),
    };
    let pending = pending_path(path);
    if old.as_deref() == Some(content) {
        return SnapshotOutcome::Same;
    }
    let target = match mode {
        SnapshotMode::Check => None,
        SnapshotMode::Pending => Some(pending.as_path()),
        SnapshotMode::Update => Some(path),
    };
    if let Some(target) = target
        && let Err(error) = write(target, content)
    {
        return unusable(error);
    }
    match (mode, old) {
        (SnapshotMode::Update, _) => SnapshotOutcome::Written(path.to_owned()),
        (_, None) => SnapshotOutcome::Missing(path.to_owned()),
        (_, Some(old)) => {
            let diff = TextDiff::from_lines(old.as_str(), content).unified_diff().context_radius(1).to_string();
            SnapshotOutcome::Differs { path: path.to_owned(), diff }
        }
    }
}

/// Where a differing transcript is put to be looked at.
pub fn pending_path(path: &Path) -> PathBuf {
    path.with_extension("snap.new")
}

fn write(path: &Path, content: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, content)
}
