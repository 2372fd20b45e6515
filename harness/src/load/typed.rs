//! Any typed YAML or JSON file, with the diagnostics of scenarios.
//!
//! Invariant: unknown keys, wrong types and missing keys are found by the type's own schema, so they are named with line,
//! column and the nearest key. Deliberately no knowledge of the type.

use std::path::Path;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::check;
use super::diagnostic::LoadError;
use super::node::Problem;
use super::read::{invalid, parse, part};

/// Reads `text` (shown as `path` in errors) as a `T`.
pub fn typed<T: DeserializeOwned + JsonSchema>(path: &Path, text: &str) -> Result<T, LoadError> {
    let root = parse(path, text).map_err(|problem| invalid(path, text, vec![problem]))?;
    let schema = schemars::schema_for!(T).to_value();
    let problems = check::check(&schema, &root);
    if !problems.is_empty() {
        return Err(invalid(path, text, problems));
    }
    serde_path_to_error::deserialize(root.to_value()).map_err(|error| {
        let parts: Vec<String> = error.path().iter().filter_map(part).collect();
        let span = root.nearest(parts.iter().map(String::as_str)).span;
        invalid(path, text, vec![Problem::new(span, error.into_inner().to_string())])
    })
}
