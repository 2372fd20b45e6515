//! Every kind of mistake has a short message at the right place.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use greenroom_harness::load::{LoadError, MOST_LINES, load_scenario};

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/load/bad");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn error_of(file: &Path) -> LoadError {
    let name = PathBuf::from(file.file_name().unwrap());
    let text = std::fs::read_to_string(file).unwrap();
    match load_scenario(&name, &text) {
        Ok(_) => panic!("{} loads", name.display()),
        Err(error) => error,
    }
}

#[test]
fn messages() {
    let mut all = String::new();
    for file in corpus() {
        let _ = writeln!(all, "{}\n", error_of(&file));
    }
    insta::assert_snapshot!("messages", all);
}

#[test]
fn a_message_has_at_most_twelve_lines_and_a_place() {
    for file in corpus() {
        let error = error_of(&file);
        let text = error.to_string();
        assert!(text.lines().count() <= MOST_LINES, "{text}");
        assert_eq!(error.code(), "SCENARIO_INVALID");
        let LoadError::Invalid(diagnostic) = error else { panic!("{text}") };
        assert!(diagnostic.span.line >= 1 && diagnostic.span.column >= 1, "{text}");
    }
}

#[test]
fn colours_only_when_asked() {
    let error = error_of(&corpus()[0]);
    assert!(!error.render(false).contains('\u{1b}'));
    assert!(error.render(true).contains('\u{1b}'));
}
