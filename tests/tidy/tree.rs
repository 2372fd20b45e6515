//! The project's own files, found by walking the tree.
//!
//! Invariant: files come in the order of their paths. What is built, installed or downloaded is not the project's.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders that hold code of this project.
pub(crate) const CODE: [&str; 7] = ["src", "crates", "mocks", "harness", "benches", "tests", "xtask"];

/// Names that are never entered.
const FOREIGN: [&str; 8] = ["target", ".git", ".tools", ".v8", "node_modules", "__pycache__", "mutants.out", ".cache"];

/// A file, with its path as people write it.
pub(crate) struct File {
    /// Relative to the project's root, with `/`.
    pub(crate) name: String,
    /// Its text.
    pub(crate) text: String,
}

/// The project's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file's text; a missing one is empty.
pub(crate) fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_default()
}

/// All text files below `folder` whose name `wanted` accepts.
pub(crate) fn files(folder: &str, wanted: impl Fn(&str) -> bool) -> Vec<File> {
    let mut found = Vec::new();
    walk(&root().join(folder), &mut found);
    let named = found.into_iter().filter_map(|path| {
        let name = path.strip_prefix(root()).ok()?.to_str()?.replace('\\', "/");
        wanted(&name).then_some((name, path))
    });
    named.filter_map(|(name, path)| Some(File { name, text: fs::read_to_string(path).ok()? })).collect()
}

/// All Rust sources.
pub(crate) fn sources() -> Vec<File> {
    CODE.iter().flat_map(|folder| files(folder, is_rust)).collect()
}

/// Whether a name is that of a Rust source.
pub(crate) fn is_rust(name: &str) -> bool {
    has_extension(name, "rs")
}

/// Whether a name ends in `.extension`.
pub(crate) fn has_extension(name: &str, extension: &str) -> bool {
    Path::new(name).extension().is_some_and(|found| found == extension)
}

/// Whether a source is a test, a benchmark or a conformance suite.
pub(crate) fn is_test(name: &str) -> bool {
    ["tests/", "/tests.rs", "benches/", "/conformance/"].iter().any(|part| name.contains(part))
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if FOREIGN.contains(&name) {
            continue;
        }
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// Fails with every finding, one a line.
#[track_caller]
pub(crate) fn none(rule: &str, findings: &[String]) {
    assert!(findings.is_empty(), "{rule}\n  {}", findings.join("\n  "));
}
