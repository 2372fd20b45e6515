//! Which files are scenarios, and a whole suite at once.
//!
//! Invariant: files are taken in the order of their paths, whatever the file system says. A file that is named is taken;
//! in a folder those are taken that look like scenarios, misspelt ones included. Two scenarios never share an id.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::diagnostic::LoadError;
use super::node::{Problem, Span};
use super::read::{LoadOptions, ScenarioCase, invalid, load_scenario_with, parse};

/// Folders that hold a suite's other files.
const OTHER_FOLDERS: [&str; 4] = ["snapshots", "cassettes", "node_modules", "target"];

/// Keys at the top of a file that make it a scenario: the first is enough, the others save a misspelt first.
const SCENARIO_KEYS: [&str; 3] = ["scenario", "run", "expect"];

/// Finds scenario files: named ones, and those in named folders and below.
pub fn discover<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<PathBuf>, LoadError> {
    let mut found = Vec::new();
    for path in paths {
        let path = path.as_ref();
        if path.is_dir() {
            walk(path, &mut found)?;
        } else {
            std::fs::metadata(path).map_err(|source| LoadError::Unreadable { path: path.to_owned(), source })?;
            found.push(path.to_owned());
        }
    }
    found.sort();
    found.dedup();
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), LoadError> {
    let unreadable = |source| LoadError::Unreadable { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() {
            if !name.starts_with('.') && !OTHER_FOLDERS.contains(&name.as_str()) {
                walk(&path, found)?;
            }
        } else if looks_like_scenario(&path, &name)? {
            found.push(path);
        }
    }
    Ok(())
}

fn looks_like_scenario(path: &Path, name: &str) -> Result<bool, LoadError> {
    let json = match path.extension().and_then(|extension| extension.to_str()) {
        Some("yaml" | "yml") => false,
        Some("json") if !name.ends_with(".schema.json") => true,
        _ => return Ok(false),
    };
    let text = std::fs::read_to_string(path).map_err(|source| LoadError::Unreadable { path: path.to_owned(), source })?;
    Ok(if json {
        let keys = serde_json::from_str::<Map<String, Value>>(&text).unwrap_or_default();
        SCENARIO_KEYS.iter().any(|key| keys.contains_key(*key))
    } else {
        let key_of = |line: &str| line.split_once(':').map(|(key, _)| key.to_owned());
        text.lines().filter_map(key_of).any(|key| SCENARIO_KEYS.contains(&key.as_str()))
    })
}

/// Finds and reads scenarios. All that is wrong is reported, one error per file.
pub fn load_suite<P: AsRef<Path>>(paths: &[P], options: LoadOptions) -> Result<Vec<ScenarioCase>, Vec<LoadError>> {
    let files = discover(paths).map_err(|error| vec![error])?;
    let (mut cases, mut errors) = (Vec::new(), Vec::new());
    let mut first: BTreeMap<String, PathBuf> = BTreeMap::new();
    for path in files {
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(source) => {
                errors.push(LoadError::Unreadable { path, source });
                continue;
            }
        };
        match load_scenario_with(&path, &text, options) {
            Ok(more) => {
                let id = more.first().map(|case| case.scenario.id.to_string()).unwrap_or_default();
                match first.get(&id) {
                    Some(other) => errors.push(duplicate(&path, &text, &id, other)),
                    None => {
                        first.insert(id, path);
                        cases.extend(more);
                    }
                }
            }
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() { Ok(cases) } else { Err(errors) }
}

fn duplicate(path: &Path, text: &str, id: &str, other: &Path) -> LoadError {
    let start = Span { line: 1, column: 1, width: 1 };
    let span = parse(path, text).ok().and_then(|root| root.child("id").map(|id| id.span)).unwrap_or(start);
    let problem = Problem::new(span, format!("the id `{id}` is taken"));
    invalid(path, text, vec![problem.help(format!("{} has it too", other.display()))])
}
