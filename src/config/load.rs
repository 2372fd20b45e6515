//! Reading a config file: YAML (or JSON) to the checked model.
//!
//! Invariant: an error names file, line and column. Deliberately no network and no merging of several files yet.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{ConfigFile, HostConfig, Variables};

/// A config that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {path}: {message}")]
    Read {
        /// The file.
        path: String,
        /// What happened.
        message: String,
    },
    /// It is not YAML of the expected shape.
    #[error("{message}")]
    Shape {
        /// Rendered with file, line, column and snippet.
        message: String,
    },
    /// A reference or value is wrong.
    #[error("{path}: {at}: {message}")]
    Invalid {
        /// The file.
        path: String,
        /// The key, `agents.travel.tools`.
        at: String,
        /// What is wrong and what to do.
        message: String,
    },
}

impl ConfigError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "CONFIG_READ",
            Self::Shape { .. } => "CONFIG_SHAPE",
            Self::Invalid { .. } => "CONFIG_INVALID",
        }
    }
}

/// The JSON Schema of a config file.
pub fn config_schema() -> Value {
    schemars::schema_for!(ConfigFile).to_value()
}

/// Loads a file; relative paths in it start at its folder.
pub fn load_file(path: &Path, variables: &Variables) -> Result<HostConfig, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| ConfigError::Read { path: path.display().to_string(), message: error.to_string() })?;
    let base = path.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf);
    load_text(&path.display().to_string(), &text, &base, variables)
}

/// Loads a config from its text.
pub fn load_text(name: &str, text: &str, base: &Path, variables: &Variables) -> Result<HostConfig, ConfigError> {
    let file: ConfigFile = greenroom_harness::load::typed(Path::new(name), text)
        .map_err(|error| ConfigError::Shape { message: error.with_code("CONFIG_SHAPE").to_string() })?;
    HostConfig::resolve(name, &file, base, variables)
}

/// Loads a config that is already a value (a scenario's `host.inline`).
pub fn load_value(name: &str, value: Value, base: &Path, variables: &Variables) -> Result<HostConfig, ConfigError> {
    let file: ConfigFile = serde_json::from_value(value)
        .map_err(|error| ConfigError::Shape { message: format!("{name}: host.inline: {error}") })?;
    HostConfig::resolve(name, &file, base, variables)
}
