//! Determinism: the same seed gives the same traces, byte for byte, however many cases run at once.
//!
//! Invariant: all shipped scenarios but the systematic ones of hook coverage (long computing) take part on the first engine. Deliberately no comparison of engines with each other.

use test_case::test_case;

use crate::support::{at, folder, greenroom, stdout, tree};

// The suite is long in an unoptimised build: the second engine runs the cases of the demonstration.
#[test_case("v8", "!tag(coverage)")]
#[test_case("quickjs", "tag(demo)")]
fn traces_depend_on_the_seed_alone(engine: &str, filter: &str) {
    let folders = folder(&[]);
    let mut codes = Vec::new();
    for (name, jobs) in [("a", "2"), ("b", "2"), ("c", "1")] {
        let traces = at(&folders, name);
        let arguments =
            ["test", "scenarios", "--seed", "7", "--trace-dir", &traces, "-j", jobs, "--engine", engine, "-E", filter];
        codes.push(greenroom(arguments).get_output().status.code());
    }
    assert_eq!(codes, [Some(0); 3], "every scenario holds under another seed");
    let first = tree(&folders.path().join("a"));
    let listed = stdout(&greenroom(["list", "scenarios", "-E", filter, "--format", "ids"]).success()).lines().count();
    assert_eq!(first.len(), listed, "one trace per case");
    assert!(first.iter().all(|(_, bytes)| !bytes.is_empty()));
    for other in ["b", "c"] {
        for ((name, left), (other_name, right)) in first.iter().zip(&tree(&folders.path().join(other))) {
            assert_eq!(name, other_name);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect::<Vec<_>>();
            assert_eq!(text(left), text(right), "{} in {other}", name.display());
            assert_eq!(left, right, "{} in {other}", name.display());
        }
    }
}
