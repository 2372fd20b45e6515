//! What ran of hook scripts.

use crate::commands::{greenroom, parsed};

const SUITE: &str = "tests/cover/scripts/discount.yaml";

#[test]
fn the_table_names_lines_that_did_not_run() {
    let (code, text) = greenroom(&["cover", "--scripts", SUITE]);
    assert_eq!(code, 0, "{text}");
    insta::assert_snapshot!(text);
    let (code, _) = greenroom(&["cover", "--scripts", SUITE, "--strict"]);
    assert_eq!(code, 1);
}

#[test]
fn functions_lines_and_blocks_are_at_their_places_in_the_source() {
    let (code, report) = parsed(&["cover", "--scripts", SUITE, "--json"]);
    assert_eq!(code, 0);
    insta::assert_json_snapshot!(report);
}

#[test]
fn lcov_and_the_heat_map_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let (page, lcov) = (folder.path().join("scripts.html"), folder.path().join("scripts.info"));
    let (code, _) =
        greenroom(&["cover", "--scripts", SUITE, "--html", page.to_str().unwrap(), "--lcov", lcov.to_str().unwrap()]);
    assert_eq!(code, 0);
    insta::assert_snapshot!(std::fs::read_to_string(lcov).unwrap());
    let page = std::fs::read_to_string(page).unwrap();
    for shown in [
        "<pre>export function Create(ctx: any, messages: any[]): any {</pre>",
        "<mark title=\"did not run\">? greet(messages)</mark>",
        "<td class=\"n miss\">0</td><td><pre>  throw new Error(why);</pre>",
    ] {
        assert!(page.contains(shown), "{shown} is missing in {page}");
    }
}

#[test]
fn another_engine_does_not_count() {
    let (code, _) = greenroom(&["cover", "--scripts", SUITE, "--engine", "quickjs"]);
    assert_eq!(code, 2);
}
