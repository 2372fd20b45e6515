//! Commands in documents are commands of the program.
//!
//! Invariant: every line of a shell block that starts with `greenroom` is read by the command line's own parser.

use clap::Parser as _;
use greenroom::cli::Cli;

use crate::tree::{File, files, has_extension, none};

/// The lines of blocks marked `sh` or `console` that call the program, with their line numbers.
fn commands(file: &File) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_shell = false;
    for (index, line) in file.text.lines().enumerate() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            in_shell = !in_shell && ["sh", "console"].contains(&language.trim());
            continue;
        }
        let line = line.trim_start().trim_start_matches("$ ");
        if in_shell && line.starts_with("greenroom ") {
            found.push((index + 1, line.to_owned()));
        }
    }
    found
}

/// Words as a shell splits them: blanks, single and double quotes, and a comment at the end.
fn words(line: &str) -> Vec<String> {
    let (mut all, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '#' && word.is_none() => break,
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => all.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    all.extend(word);
    all
}

#[test]
fn documented_commands_exist() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for file in files("", |name| has_extension(name, "md")) {
        for (line, command) in commands(&file) {
            count += 1;
            if let Err(error) = Cli::try_parse_from(words(&command)) {
                wrong.push(format!("{}:{line}: {command}\n{error}", file.name));
            }
        }
    }
    none("the program does not take this command", &wrong);
    assert!(count >= 10, "only {count} commands were found in the documents; the blocks are marked `sh` or `console`");
}
