//! `test` and `list`: the reports name the same cases, and programs can read them.
//!
//! Invariant: each report is read by a parser of its format. Deliberately no look at what cases do.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde_json::Value;

use crate::support::{at, folder, greenroom, stdout};

/// Enough cases for the reports, with a matrix among them.
const SOME: &str = "tag(demo) | id(readme/*)";

fn listed() -> Vec<String> {
    let listed = greenroom(["list", "scenarios", "-E", SOME, "--format", "ids"]).success();
    stdout(&listed).lines().map(str::to_owned).collect()
}

fn attribute(element: &BytesStart<'_>, name: &str) -> String {
    let found = element.try_get_attribute(name).unwrap().unwrap_or_else(|| panic!("no {name} at {element:?}"));
    found.normalized_value(quick_xml::XmlVersion::Implicit1_0).unwrap().into_owned()
}

/// The names of all test cases; fails if the document is not well-formed.
fn junit_cases(xml: &str) -> Vec<String> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().expand_empty_elements = true;
    let (mut names, mut totals, mut open) = (Vec::new(), Vec::new(), 0);
    loop {
        match reader.read_event().unwrap() {
            Event::Start(element) => {
                open += 1;
                match element.name().as_ref() {
                    b"testcase" => names.push(attribute(&element, "name")),
                    b"testsuites" => totals.push(attribute(&element, "tests")),
                    _ => {}
                }
            }
            Event::End(_) => open -= 1,
            Event::Eof => break,
            _ => {}
        }
    }
    assert_eq!(open, 0, "every element is closed");
    assert_eq!(totals, [names.len().to_string()]);
    names
}

#[test]
fn every_report_has_the_cases_of_the_list() {
    let reports = folder(&[]);
    let list = format!("junit={},tap={},json={}", at(&reports, "r.xml"), at(&reports, "r.tap"), at(&reports, "r.json"));
    greenroom(["test", "scenarios", "-E", SOME, "--reporter", &list]).success();
    let read = |name: &str| std::fs::read_to_string(at(&reports, name)).unwrap();
    let listed = listed();
    assert!(listed.len() > 5, "{listed:?}");

    assert_eq!(junit_cases(&read("r.xml")), listed);

    let tap = read("r.tap");
    let mut lines = tap.lines();
    assert_eq!(lines.next(), Some("TAP version 14"));
    assert_eq!(lines.next(), Some(format!("1..{}", listed.len()).as_str()));
    let expected: Vec<String> = listed.iter().enumerate().map(|(index, id)| format!("ok {} - {id}", index + 1)).collect();
    assert_eq!(lines.collect::<Vec<_>>(), expected);

    let json: Vec<Value> = read("r.json").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let cases: Vec<&str> =
        json.iter().filter(|line| line["event"] == "case").map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!(cases, listed);
}

#[test]
fn the_list_is_also_json() {
    let listing = greenroom(["list", "scenarios", "-E", SOME, "--format", "json"]).success();
    let lines: Vec<Value> = stdout(&listing).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.iter().map(|line| line["id"].as_str().unwrap()).collect::<Vec<_>>(), listed());
    let hello = lines.iter().find(|line| line["id"] == "readme/hello").unwrap();
    assert_eq!(hello["file"], "scenarios/readme/hello.yaml");
}

#[test]
fn a_filter_chooses_for_both() {
    let listing = greenroom(["list", "scenarios", "-E", "tag(hostile) & id(hostile/*)", "--format", "ids"]).success();
    let ids = stdout(&listing);
    assert!(!ids.is_empty() && ids.lines().all(|id| id.starts_with("hostile/")), "{ids}");
    let tap = greenroom(["test", "scenarios", "-E", "tag(hostile) & id(hostile/*)", "--reporter", "tap"]).success();
    let ran: Vec<String> = stdout(&tap).lines().filter_map(|line| Some(line.split_once(" - ")?.1.to_owned())).collect();
    assert_eq!(ran, ids.lines().collect::<Vec<_>>());
}
