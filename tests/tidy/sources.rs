//! Rules for Rust sources, and for every text.
//!
//! Invariant: a forbidden text is put together at run time, so that this file does not hold it.

use crate::tree::{File, files, has_extension, is_test, none, sources};

/// Longest file, in lines.
const MOST_LINES: usize = 800;
/// Where half of the files should stay below.
const MEDIAN_LINES: usize = 180;
/// Longest function in a `lib.rs` or `mod.rs`, in lines.
const MOST_LINES_IN_MAP: usize = 16;

/// Lines that a predicate finds, as `file:line`.
fn lines(file: &File, wrong: impl Fn(&str) -> bool) -> Vec<String> {
    let found = file.text.lines().enumerate().filter(|(_, line)| wrong(line));
    found.map(|(index, line)| format!("{}:{}: {}", file.name, index + 1, line.trim())).collect()
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

#[test]
fn each_file_says_what_it_is_for() {
    let silent: Vec<String> =
        sources().into_iter().filter(|file| !file.text.starts_with("//!")).map(|file| file.name).collect();
    none("a source file starts with `//!`: purpose, invariant, what it leaves out", &silent);
}

#[test]
fn files_are_short() {
    let sources = sources();
    let long = |file: &&File| file.text.lines().count() > MOST_LINES;
    let names: Vec<String> = sources.iter().filter(long).map(|file| file.name.clone()).collect();
    none(&format!("a source file has at most {MOST_LINES} lines; split it"), &names);
    let mut counts: Vec<usize> = sources.iter().map(|file| file.text.lines().count()).collect();
    counts.sort_unstable();
    let median = counts[counts.len() / 2];
    assert!(median <= MEDIAN_LINES, "half of the {} sources have more than {MEDIAN_LINES} lines: {median}", counts.len());
}

#[test]
fn a_map_of_modules_holds_no_long_functions() {
    let is_map = |file: &File| (file.name.ends_with("/lib.rs") || file.name.ends_with("/mod.rs")) && !is_test(&file.name);
    let long: Vec<String> = sources().iter().filter(|file| is_map(file)).flat_map(long_functions).collect();
    none(&format!("`lib.rs` and `mod.rs` are maps: functions over {MOST_LINES_IN_MAP} lines go elsewhere"), &long);
}

/// Functions longer than a map may hold: from the line with `fn` to the brace at the same depth.
fn long_functions(file: &File) -> Vec<String> {
    let all: Vec<&str> = file.text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in all.iter().enumerate() {
        let code = line.trim_start();
        let depth = line.len() - code.len();
        let is_function = ["fn ", "pub fn ", "async fn ", "pub async fn ", "pub(crate) fn ", "pub(super) fn "]
            .iter()
            .any(|start| code.starts_with(start));
        if !is_function {
            continue;
        }
        let ends = |line: &&str| line.len() == depth + 1 && line.ends_with('}') && line.trim_start() == "}";
        let length = all[index..].iter().position(ends).unwrap_or(0);
        if !line.ends_with('}') && length > MOST_LINES_IN_MAP {
            found.push(format!("{}:{}: {} lines", file.name, index + 1, length + 1));
        }
    }
    found
}

#[test]
fn no_left_over_macros() {
    let macros = ["dbg", "todo", "unimplemented"].map(|name| format!("{name}!("));
    let wrong = |line: &str| !is_comment(line) && macros.iter().any(|text| line.contains(text.as_str()));
    let found: Vec<String> = sources().iter().flat_map(|file| lines(file, wrong)).collect();
    none("finish it, or leave it out", &found);
}

#[test]
fn unsafe_code_lives_in_one_crate() {
    let word = ["un", "safe"].concat();
    let starts = [" {", " fn", " impl", " extern", " trait", "("].map(|after| format!("{word}{after}"));
    let wrong = |line: &str| !is_comment(line) && starts.iter().any(|text| line.contains(text.as_str()));
    let elsewhere = |file: &&File| !file.name.starts_with("crates/isolate-v8/");
    let found: Vec<String> = sources().iter().filter(elsewhere).flat_map(|file| lines(file, wrong)).collect();
    none("only crates/isolate-v8 may", &found);
}

#[test]
fn no_decision_reads_the_text_of_an_error() {
    let matching = ["contains(", "starts_with(", "ends_with(", "eq("].map(|method| [".to_string()", ".", method].concat());
    let wrong = |line: &str| !is_comment(line) && matching.iter().any(|text| line.contains(text.as_str()));
    let decides = |file: &&File| !is_test(&file.name);
    let found: Vec<String> = sources().iter().filter(decides).flat_map(|file| lines(file, wrong)).collect();
    none("match on the error's type or `code()`; its text is for people", &found);
}

#[test]
fn tests_are_not_switched_off() {
    let attributes = ["ignore", "should_panic"].map(|name| ["#[", name].concat());
    let wrong = |line: &str| !is_comment(line) && attributes.iter().any(|text| line.trim_start().starts_with(text.as_str()));
    let found: Vec<String> = sources().iter().flat_map(|file| lines(file, wrong)).collect();
    none("a test runs, and says what it expects", &found);
}

#[test]
fn texts_name_no_machine_and_no_registry() {
    let forbidden: Vec<String> = [
        ["crates", ".io"].concat(),
        ["registry.npm", "js.org"].concat(),
        ["py", "pi.org"].concat(),
        ["python", "hosted.org"].concat(),
        ["/wo", "rk/"].concat(),
        ["/ro", "ot/"].concat(),
        ["/tmp/green", "room"].concat(),
        ["/ho", "me/"].concat(),
    ]
    .into();
    let is_text = |name: &str| {
        let text = ["rs", "md", "toml", "yaml", "yml", "json", "js", "ts", "py", "sh", "snap", "txt", "cas", "jsonl"];
        let bare = ["x", "tools/build-v8", ".ci/run"];
        name != "Cargo.lock" && (text.iter().any(|extension| has_extension(name, extension)) || bare.contains(&name))
    };
    let wrong = |line: &str| forbidden.iter().any(|text| line.contains(text.as_str()));
    let found: Vec<String> = files("", is_text).iter().flat_map(|file| lines(file, wrong)).collect();
    none("a text that is only true on one machine, or names a package registry's host", &found);
}
