//! Snapshots beside a scenario.

use std::path::Path;

use greenroom_harness::run::{RunOptions, run_case};
use greenroom_harness::snapshot::{SnapshotMode, plain};
use test_case::test_case;

use crate::support::{codes, factory, load, options};

fn text(said: &str) -> String {
    format!(
        "scenario: 1\nid: fake/snap\nhost: {{ inline: {{ turn: [{{ emit: {{ event: output, body: {{ said: {said}, id: 77 }} }} }}] }} }}\nrun:\n  - send: {{ assistant: a, user: b }}\nexpect:\n  - snapshot: transcript\n    mask: [/events/*/body/id]\n"
    )
}

fn run(folder: &Path, said: &str, mode: SnapshotMode) -> (Vec<String>, String) {
    let cases = load(&folder.join("s.yaml"), &text(said));
    let result = run_case(&cases[0], &factory(), &RunOptions { snapshots: mode, ..options() });
    (codes(&result), result.failures.first().map(|failure| failure.message.clone()).unwrap_or_default())
}

#[test]
fn a_snapshot_is_missing_then_written_then_compared() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("snapshots/fake/snap/transcript.snap");
    let pending = file.with_extension("snap.new");
    assert_eq!(run(folder.path(), "hello", SnapshotMode::Check).0, ["fail SNAPSHOT_MISSING"]);
    assert!(!file.exists() && !pending.exists());
    assert_eq!(run(folder.path(), "hello", SnapshotMode::Update).0, Vec::<String>::new());
    assert_eq!(run(folder.path(), "hello", SnapshotMode::Check).0, Vec::<String>::new());
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.contains("\"id\":\"«masked»\"") && !kept.contains("77"), "{kept}");
    let (codes, message) = run(folder.path(), "goodbye", SnapshotMode::Check);
    assert_eq!(codes, ["fail SNAPSHOT_DIFFERS"]);
    assert!(message.lines().any(|line| line.starts_with('+') && line.contains("goodbye")), "{message}");
    assert!(!pending.exists());
    run(folder.path(), "goodbye", SnapshotMode::Pending);
    assert!(pending.exists());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), kept);
}

#[test_case("hooks/metric-only[spec=2025-11-25]" => "hooks/metric-only_spec=2025-11-25_")]
#[test_case("../../etc" => "__/__/etc")]
#[test_case("a//b" => "a/_/b")]
fn an_id_becomes_a_tame_path(id: &str) -> String {
    plain(id)
}
