//! The scripts of a host: read with all that they import, made ready for an engine, and kept.
//!
//! Invariant: a script is read once per host; what runs is what was read. Deliberately no watching of files: whoever watches
//! asks which ones were read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_boundary::isolate::Script;

use super::graph::{Graph, Place, read_graph};
use super::prepare::{FileKind, Prepared, TypeScriptMode, prepare};
use super::problem::{ImportProblem, ScriptError};
use super::tools::{ToolSet, tool_set};
use crate::config::{HostConfig, ScriptConfig};

/// The text of a regular file: a pipe or a device may never end.
pub(super) fn read(path: &Path) -> std::io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    std::fs::read_to_string(path)
}

/// A script, ready.
#[derive(Debug)]
pub struct LoadedScript {
    /// For an engine.
    pub script: Arc<Script>,
    /// Its functions as tools.
    pub tools: ToolSet,
}

/// Scripts by where they come from.
#[derive(Debug, Default)]
pub struct ScriptLibrary {
    /// The folder that imports may reach, as the user knows it; none is each script's own.
    root: Option<PathBuf>,
    typescript: TypeScriptMode,
    kept: Mutex<BTreeMap<String, Arc<LoadedScript>>>,
    files: Mutex<BTreeSet<PathBuf>>,
}

impl ScriptLibrary {
    /// The library of a config: its scripts may import what lies below the config's folder.
    pub fn of(config: &HostConfig) -> Self {
        let typescript = config.policy.typescript;
        Self { root: config.root.clone(), typescript, ..Self::default() }
    }

    /// A library of scripts that may import what lies below a folder.
    pub fn below(root: PathBuf) -> Self {
        Self { root: Some(root), ..Self::default() }
    }

    /// The script, ready to run.
    pub fn load(&self, config: &ScriptConfig) -> Result<Arc<Script>, ScriptError> {
        Ok(self.loaded(config)?.script.clone())
    }

    /// The script with its tools.
    pub fn loaded(&self, config: &ScriptConfig) -> Result<Arc<LoadedScript>, ScriptError> {
        let name = match config {
            ScriptConfig::File(path) => path.display().to_string(),
            ScriptConfig::Inline { name, .. } => name.clone(),
        };
        if let Some(found) = self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(&name) {
            return Ok(found.clone());
        }
        let graph = match config {
            ScriptConfig::File(path) => self.read_file(&name, path)?,
            ScriptConfig::Inline { code, .. } => self.read_inline(&name, code)?,
        };
        let (tools, calls) = tool_set(&graph);
        let loaded = Arc::new(LoadedScript { script: Arc::new(graph.script(&calls)), tools });
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert(name, loaded.clone());
        Ok(loaded)
    }

    /// The files that were read, and those that are missing: a change of any of them is a reason to load anew.
    pub fn files(&self) -> Vec<PathBuf> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn read_file(&self, name: &str, path: &Path) -> Result<Graph, ScriptError> {
        let failed = |error: std::io::Error| ScriptError::Read { path: name.to_owned(), message: error.to_string() };
        let text = read(path).map_err(failed)?;
        let prepared = self.prepare(name, &text)?;
        if prepared.record.requests.is_empty() && prepared.record.dynamic.is_none() {
            return Ok(Graph::of_one(name, prepared));
        }
        let place = self.place(path).map_err(failed)?;
        let mut files = BTreeSet::new();
        let graph = read_graph(name, prepared, &place, self.typescript, &mut files);
        self.files.lock().unwrap_or_else(PoisonError::into_inner).append(&mut files);
        graph
    }

    fn read_inline(&self, name: &str, code: &str) -> Result<Graph, ScriptError> {
        let prepared = self.prepare(name, code)?;
        let helpers_only = |specifier: &str| super::full::helper(specifier).is_some();
        if let Some(request) = prepared.record.requests.iter().find(|request| !helpers_only(&request.specifier)) {
            let message = "a script within a config has no folder to import from. Put it into a file and name that";
            let place = prepared.error(name, request.at, message.to_owned());
            return Err(ScriptError::Import { problem: ImportProblem::Inline, place });
        }
        if prepared.record.requests.is_empty() {
            return Ok(Graph::of_one(name, prepared));
        }
        let nowhere = Place { file: PathBuf::new(), root: PathBuf::new(), shown_root: PathBuf::new() };
        read_graph(name, prepared, &nowhere, self.typescript, &mut BTreeSet::new())
    }

    fn prepare(&self, name: &str, text: &str) -> Result<Arc<Prepared>, ScriptError> {
        let kind = match FileKind::of(Path::new(name)) {
            Some(FileKind::TypeScript) => FileKind::TypeScript,
            _ if name.to_ascii_lowercase().ends_with(".cts") => FileKind::TypeScript,
            _ => FileKind::JavaScript,
        };
        Ok(prepare(name, text, kind, false, self.typescript)?)
    }

    /// The root is the config's folder; of a script elsewhere, its own.
    fn place(&self, path: &Path) -> std::io::Result<Place> {
        let file = std::fs::canonicalize(path)?;
        let shown = self.root.clone().unwrap_or_default();
        let real = std::fs::canonicalize(if shown.as_os_str().is_empty() { Path::new(".") } else { &shown });
        match real.ok().filter(|root| self.root.is_some() && file.starts_with(root)) {
            Some(root) => Ok(Place { file, root, shown_root: shown }),
            None => {
                let root = file.parent().map(Path::to_path_buf).unwrap_or_default();
                Ok(Place { file, root, shown_root: path.parent().map(Path::to_path_buf).unwrap_or_default() })
            }
        }
    }
}
