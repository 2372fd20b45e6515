//! From a text to the cases of a scenario.
//!
//! Invariant: a case is complete: references are resolved, names agree, and each step and expectation knows its line.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use serde_json::{Map, Value};
use serde_path_to_error::Segment;

use super::diagnostic::{Diagnostic, LoadError};
use super::expand::{self, Values};
use super::node::{Node, Problem};
use super::{check, cross, json, yaml};
use crate::model::{Located, Scenario, schema};

/// One case of a scenario: what is run.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioCase {
    /// The scenario's id with its place in the matrix: `hooks/metric-only[spec=2025-11-25]`.
    pub id: String,
    /// The file, as it was named.
    pub file: PathBuf,
    /// The values of the matrix in this case.
    pub values: Map<String, Value>,
    /// The scenario, with its references resolved.
    pub scenario: Scenario,
}

impl ScenarioCase {
    /// Where a step or expectation was written: `scenarios/a.yaml:12`.
    pub fn place<T>(&self, part: &Located<T>) -> String {
        format!("{}:{}", self.file.display(), part.line)
    }
}

/// What may differ from the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoadOptions {
    /// The seed, instead of the file's own.
    pub seed: Option<u64>,
}

/// Reads a scenario. A path that ends in `.json` holds JSON, any other YAML.
pub fn load_scenario(path: &Path, text: &str) -> Result<Vec<ScenarioCase>, LoadError> {
    load_scenario_with(path, text, LoadOptions::default())
}

/// Reads a scenario, with a seed of the caller's.
pub fn load_scenario_with(path: &Path, text: &str, options: LoadOptions) -> Result<Vec<ScenarioCase>, LoadError> {
    read(path, text, options).map_err(|problems| invalid(path, text, problems))
}

/// Reads a scenario file.
pub fn load_file(path: &Path, options: LoadOptions) -> Result<Vec<ScenarioCase>, LoadError> {
    let text = std::fs::read_to_string(path).map_err(|source| LoadError::Unreadable { path: path.to_owned(), source })?;
    load_scenario_with(path, &text, options)
}

pub(super) fn invalid(path: &Path, text: &str, problems: Vec<Problem>) -> LoadError {
    let whole = || Problem::new(super::Span { line: 1, column: 1, width: 1 }, "the scenario is not valid");
    let problems = if problems.is_empty() { vec![whole()] } else { problems };
    match Diagnostic::first(path, text, problems) {
        Some(diagnostic) => LoadError::Invalid(Box::new(diagnostic)),
        None => LoadError::Unreadable { path: path.to_owned(), source: std::io::ErrorKind::InvalidData.into() },
    }
}

/// The tree of a file.
pub(super) fn parse(path: &Path, text: &str) -> Result<Node, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
        json::parse(text)
    } else {
        yaml::parse(text)
    }
}

fn read(path: &Path, text: &str, options: LoadOptions) -> Result<Vec<ScenarioCase>, Vec<Problem>> {
    let root = parse(path, text).map_err(|problem| vec![problem])?;
    let seed = options.seed.unwrap_or_else(|| root.child("seed").and_then(|seed| seed.to_value().as_u64()).unwrap_or(0));
    if let Some(problem) = expand::too_many(&root) {
        return Err(vec![problem]);
    }
    let all = expand::combinations(&root, seed);
    if all.is_empty() {
        // An empty list in `matrix`: the schema says where.
        return Err(check::check(published(), &root));
    }
    all.iter().map(|values| case(path, &root, values)).collect()
}

fn case(path: &Path, root: &Node, values: &Values) -> Result<ScenarioCase, Vec<Problem>> {
    let root = expand::resolve(root, values).map_err(|problem| vec![problem])?;
    let problems = check::check(published(), &root);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut scenario: Scenario = serde_path_to_error::deserialize(root.to_value()).map_err(|error| {
        let parts: Vec<String> = error.path().iter().filter_map(part).collect();
        let span = root.nearest(parts.iter().map(String::as_str)).span;
        vec![Problem::new(span, error.into_inner().to_string())]
    })?;
    let problems = cross::check(&scenario, &root);
    if !problems.is_empty() {
        return Err(problems);
    }
    scenario.seed = values.seed;
    locate(&mut scenario.faults, &root, "faults");
    locate(&mut scenario.run, &root, "run");
    locate(&mut scenario.expect, &root, "expect");
    Ok(ScenarioCase {
        id: format!("{}{}", scenario.id, values.suffix()),
        file: path.to_owned(),
        values: values.matrix.iter().cloned().collect(),
        scenario,
    })
}

pub(super) fn part(segment: &Segment) -> Option<String> {
    match segment {
        Segment::Seq { index } => Some(index.to_string()),
        Segment::Map { key } => Some(key.clone()),
        Segment::Enum { variant } => Some(variant.clone()),
        Segment::Unknown => None,
    }
}

fn locate<T>(parts: &mut [Located<T>], root: &Node, section: &str) {
    for (index, part) in parts.iter_mut().enumerate() {
        let span = root.nearest([section, &index.to_string()]).span;
        (part.line, part.column) = (span.line, span.column);
    }
}

/// The published schema, made once.
fn published() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(schema)
}
