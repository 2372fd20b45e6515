//! Faults that users of other hosts met: each is shown by a test or a scenario that says so.
//!
//! Invariant: a case is claimed by its number, `C19` in a test's comment or `c19` among a scenario's tags. Deliberately no check
//! of what the claimant shows: that is for its reader.

use std::collections::BTreeMap;
use std::path::Path;

use crate::tree::{File, files, sources};

/// The cases that are closed, by number, in words.
const CASES: [(&str, &str); 19] = [
    ("C02", "the name shown and the name routed are spelt differently"),
    ("C04", "cursors: one that never ends, and one that is the empty text"),
    ("C05", "list_changed only half obeyed"),
    ("C06", "progress tokens: invented by the server, or falsy"),
    ("C07", "progress that cannot extend anything because no token was sent"),
    ("C11", "a chatty server stops for ever because nobody reads its stderr"),
    ("C13", "large frames, both directions"),
    ("C14", "event-stream bytes cut at unlucky places"),
    ("C16", "root keywords of a tool schema lost on the way to the model"),
    ("C18", "integers beyond 2^53"),
    ("C19", "a later hook that says nothing undoes an earlier change"),
    ("C22", "hook order that depends on luck"),
    ("C23", "a hook that sets itself off"),
    ("C27", "stop stops only the parent"),
    ("C29", "no arguments at all"),
    ("C32", "wrong types slip into host calls"),
    ("C34", "a limit that script code can catch"),
    ("C39", "placeholders passed on as text"),
    ("C40", "one comment, and every server is gone"),
];

fn is_claimed_by(case: &str, file: &File) -> bool {
    if Path::new(&file.name).extension().is_some_and(|kind| kind == "rs") {
        return file.text.lines().any(|line| line.trim_start().starts_with("//") && line.contains(case));
    }
    let tags = file.text.lines().find_map(|line| line.strip_prefix("tags: ["));
    tags.is_some_and(|tags| tags.trim_end_matches(']').split(", ").any(|tag| tag == case.to_lowercase()))
}

#[test]
fn every_case_is_claimed() {
    let mut shown = sources();
    shown.retain(|file| file.name != "tests/tidy/cases.rs");
    shown.extend(files("scenarios", |name| Path::new(name).extension().is_some_and(|kind| kind == "yaml")));
    let claims: BTreeMap<&str, usize> =
        CASES.iter().map(|(case, _)| (*case, shown.iter().filter(|file| is_claimed_by(case, file)).count())).collect();
    let open: Vec<&(&str, &str)> = CASES.iter().filter(|(case, _)| claims[case] == 0).collect();
    assert!(open.is_empty(), "nothing shows {open:?}");
}
