//! Documents agree with the files they speak of.
//!
//! Invariant: a link leads somewhere, an example stands in a file that loads, a generated page is what the code generates.

use std::path::Path;

use crate::reference::hooks_reference;
use crate::tree::{File, files, has_extension, none, read, root};

fn documents() -> Vec<File> {
    files("", |name| has_extension(name, "md"))
}

#[test]
fn links_lead_somewhere() {
    let mut broken = Vec::new();
    for file in documents() {
        let folder = root().join(&file.name);
        let folder = folder.parent().unwrap_or(root());
        for (index, line) in file.text.lines().enumerate() {
            for target in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let path = target.split('#').next().unwrap_or_default();
                let is_outside = path.is_empty() || path.contains("://") || path.starts_with("mailto:");
                if !is_outside && !folder.join(path).exists() {
                    broken.push(format!("{}:{}: {target}", file.name, index + 1));
                }
            }
        }
    }
    none("a link leads to no file", &broken);
}

/// Blocks that follow a line `<!-- from PATH -->`: (line, path, block).
fn excerpts(file: &File) -> Vec<(usize, String, String)> {
    let all: Vec<&str> = file.text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in all.iter().enumerate() {
        let Some(path) = line.trim().strip_prefix("<!-- from ").and_then(|rest| rest.strip_suffix(" -->")) else { continue };
        let block = all[index + 1..]
            .iter()
            .skip_while(|line| !line.starts_with("```"))
            .skip(1)
            .take_while(|line| !line.starts_with("```"));
        found.push((index + 1, path.to_owned(), block.copied().collect::<Vec<_>>().join("\n")));
    }
    found
}

/// Lines without the blanks that all of them start with.
fn dedent(text: &str) -> Vec<String> {
    let depth = |line: &&str| line.len() - line.trim_start().len();
    let least = text.lines().filter(|line| !line.trim().is_empty()).map(|line| depth(&line)).min().unwrap_or(0);
    text.lines().map(|line| line.get(least..).unwrap_or_default().trim_end().to_owned()).collect()
}

fn holds(whole: &str, block: &str) -> bool {
    let wanted = dedent(block);
    let all: Vec<&str> = whole.lines().collect();
    all.windows(wanted.len()).any(|window| dedent(&window.join("\n")) == wanted)
}

#[test]
fn examples_stand_in_files_that_load() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for file in documents() {
        for (line, path, block) in excerpts(&file) {
            count += 1;
            if block.trim().is_empty() || !holds(&read(&path), &block) {
                wrong.push(format!("{}:{line}: {path} does not hold this text", file.name));
            }
        }
    }
    none("an example is not what its file says", &wrong);
    assert!(count >= 5, "only {count} examples name their file");
}

/// `UPDATE_DOCS=1` writes the page instead of comparing it.
#[test]
#[expect(clippy::disallowed_methods, reason = "the one switch of this suite")]
fn the_reference_of_ctx_is_generated() {
    let name = "docs/hooks.md";
    let made = hooks_reference();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(root().join(name), &made).expect("docs/hooks.md can be written");
    }
    assert!(read(name) == made, "{name} is out of date; run `UPDATE_DOCS=1 cargo test --test tidy` and look at the change");
}

#[test]
fn every_operator_law_and_command_is_documented() {
    let scenarios = read("docs/scenarios.md");
    let operators = greenroom_mocks::pattern::OPERATORS.map(str::to_owned);
    let laws = greenroom_harness::model::Invariant::ALL.map(|law| law.name().to_owned());
    let missing: Vec<String> =
        operators.into_iter().chain(laws).filter(|name| !scenarios.contains(&format!("`{name}"))).collect();
    none("docs/scenarios.md does not speak of", &missing);
}

#[test]
fn every_config_key_is_documented() {
    let text = read("docs/config.md");
    let schema = greenroom::config::config_schema();
    let defs = schema.get("$defs").and_then(serde_json::Value::as_object).cloned().unwrap_or_default();
    let mut missing = Vec::new();
    for (name, part) in
        std::iter::once(("file".to_owned(), &schema)).chain(defs.iter().map(|(name, part)| (name.clone(), part)))
    {
        for key in part.get("properties").and_then(serde_json::Value::as_object).into_iter().flat_map(serde_json::Map::keys) {
            if !text.contains(&format!("`{key}`")) {
                missing.push(format!("{name}: {key}"));
            }
        }
    }
    none("docs/config.md does not speak of", &missing);
}

#[test]
fn every_dependency_has_its_reason() {
    let table = read("docs/ARCHITECTURE.md");
    let manifest = read("Cargo.toml");
    let section =
        manifest.split("[workspace.dependencies]").nth(1).and_then(|rest| rest.split("\n[").next()).unwrap_or_default();
    let names = section.lines().filter_map(|line| line.split_once(" = ").map(|(name, _)| name.trim()));
    let own = |name: &&str| !name.starts_with("greenroom-");
    let missing: Vec<String> =
        names.filter(own).filter(|name| !table.contains(&format!("`{name}`"))).map(str::to_owned).collect();
    none("docs/ARCHITECTURE.md says nothing about", &missing);
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/ARCHITECTURE.md").exists());
}
