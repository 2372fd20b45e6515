//! Finding files, and suites as a whole.

use std::path::Path;

use greenroom_harness::load::{LoadOptions, discover, load_suite};

const SCENARIO: &str =
    "scenario: 1\nid: ID\nrun:\n  - send: { assistant: desk, user: Hello }\nexpect:\n  - invariant: spans-closed\n";

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn scenario(id: &str) -> String {
    SCENARIO.replace("ID", id)
}

#[test]
fn a_folder_gives_its_scenarios_in_order() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "b.yaml", &scenario("b"));
    write(folder.path(), "a/z.yaml", &scenario("z"));
    write(folder.path(), "a/misspelt.yaml", &scenario("m").replace("scenario: 1", "scenaro: 1"));
    write(folder.path(), "twin.json", "{ \"scenario\": 1 }");
    write(folder.path(), "other.yaml", "agents: {}\n");
    write(folder.path(), "other.json", "[1]");
    write(folder.path(), "scenario.schema.json", "{ \"scenario\": 1 }");
    write(folder.path(), "snapshots/s.yaml", &scenario("s"));
    write(folder.path(), "cassettes/c.yaml", &scenario("c"));
    write(folder.path(), ".hidden/h.yaml", &scenario("h"));
    write(folder.path(), "notes.txt", &scenario("n"));
    let found = discover(&[folder.path()]).unwrap();
    let names: Vec<_> = found.iter().map(|path| path.strip_prefix(folder.path()).unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["a/misspelt.yaml", "a/z.yaml", "b.yaml", "twin.json"]);
    let twice = discover(&[folder.path(), &folder.path().join("b.yaml")]).unwrap();
    assert_eq!(twice.len(), 4, "a file is taken once");
}

#[test]
fn a_path_that_is_not_there_is_an_error() {
    let error = discover(&["no/such/folder"]).unwrap_err();
    assert_eq!(error.code(), "SCENARIO_UNREADABLE");
}

#[test]
fn an_id_belongs_to_one_file() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.yaml", &scenario("same"));
    write(folder.path(), "b.yaml", &scenario("same"));
    write(folder.path(), "c.yaml", &scenario("c"));
    let errors = load_suite(&[folder.path()], LoadOptions::default()).unwrap_err();
    let [error] = errors.as_slice() else { panic!("one error: {errors:?}") };
    let text = error.to_string();
    assert!(text.contains("b.yaml:2:5: the id `same` is taken") && text.contains("a.yaml has it too"), "{text}");
}

#[test]
fn a_suite_reports_every_bad_file() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a.yaml", "scenario: 1\n");
    write(folder.path(), "b.yaml", &scenario("b"));
    write(folder.path(), "c.yaml", "scenario: 2\n");
    assert_eq!(load_suite(&[folder.path()], LoadOptions::default()).unwrap_err().len(), 2);
    let cases = load_suite(&[folder.path().join("b.yaml")], LoadOptions::default()).unwrap();
    assert_eq!(cases.len(), 1);
}
