//! The scripts of a host: read, stripped of types and kept.
//!
//! Invariant: a script is read once per host; what runs is what was read. Deliberately no watching of files yet.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_boundary::isolate::Script;

use super::typescript::{ScriptSyntaxError, strip_types};
use crate::config::ScriptConfig;

/// A script that cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ScriptError {
    /// The file cannot be read.
    #[error("cannot read the script {path}: {message}")]
    Read {
        /// The file.
        path: String,
        /// What happened.
        message: String,
    },
    /// It does not parse.
    #[error(transparent)]
    Syntax(#[from] ScriptSyntaxError),
}

impl ScriptError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "SCRIPT_READ",
            Self::Syntax(error) => error.code(),
        }
    }
}

/// The text of a regular file: a pipe or a device may never end.
fn read(path: &Path) -> std::io::Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("it is no regular file"));
    }
    std::fs::read_to_string(path)
}

/// Scripts by where they come from.
#[derive(Debug, Default)]
pub struct ScriptLibrary(Mutex<BTreeMap<String, Arc<Script>>>);

impl ScriptLibrary {
    /// The script, ready to run.
    pub fn load(&self, config: &ScriptConfig) -> Result<Arc<Script>, ScriptError> {
        let (name, text) = match config {
            ScriptConfig::File(path) => {
                let name = path.display().to_string();
                if let Some(script) = self.get(&name) {
                    return Ok(script);
                }
                let text = read(path).map_err(|error| ScriptError::Read { path: name.clone(), message: error.to_string() })?;
                (name, text)
            }
            ScriptConfig::Inline { name, code } => match self.get(name) {
                Some(script) => return Ok(script),
                None => (name.clone(), code.clone()),
            },
        };
        let code = strip_types(&name, &text)?;
        let script = Arc::new(Script { name: name.clone(), code });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name, script.clone());
        Ok(script)
    }

    fn get(&self, name: &str) -> Option<Arc<Script>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}
