//! The one table of names: what is shown routes, and nothing else does.

use std::collections::BTreeSet;

use greenroom::router::{NameTable, ToolEntry};
use greenroom_boundary::ServerName;
use proptest::prelude::*;
use serde_json::json;

fn entry(server: &str, tool: &str) -> ToolEntry {
    ToolEntry { server: ServerName::new(server), tool: tool.to_owned(), spec: json!({"name": tool}) }
}

/// C02: two servers whose names clean to the same text.
#[test]
fn c02_names_that_clean_to_the_same_text_stay_apart() {
    let mut table = NameTable::default();
    let names = [("ledger-eu", "a b"), ("Ledger (EU)", "a.b"), ("ledger-eu", "a_b")]
        .map(|(server, tool)| table.add(tool, entry(server, tool)));
    assert_eq!(names, ["a_b", "a_b_2", "a_b_3"]);
    let routes: Vec<(&str, &str)> =
        names.iter().map(|name| (table.get(name).unwrap().server.as_str(), table.get(name).unwrap().tool.as_str())).collect();
    assert_eq!(routes, [("ledger-eu", "a b"), ("Ledger (EU)", "a.b"), ("ledger-eu", "a_b")]);
    assert!(table.get("a b").is_none());
    assert_eq!(table.nearest("a-b"), Some("a_b"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_name_is_usable_unique_and_routes_back(tools in prop::collection::btree_set("\\PC{0,80}", 0..20)) {
        let mut table = NameTable::default();
        let shown: Vec<String> = tools.iter().map(|tool| table.add(tool, entry("s", tool))).collect();
        prop_assert_eq!(shown.iter().collect::<BTreeSet<_>>().len(), tools.len());
        for (name, tool) in shown.iter().zip(&tools) {
            prop_assert!(!name.is_empty() && name.len() <= 64, "{name:?}");
            prop_assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{name:?}");
            prop_assert_eq!(&table.get(name).unwrap().tool, tool);
        }
        let order: Vec<String> = table.iter().map(|(name, _)| name.to_owned()).collect();
        prop_assert_eq!(order, shown);
    }
}

#[test]
fn a_tool_named_twice_is_there_once() {
    let mut table = NameTable::default();
    assert_eq!(table.add("buy", entry("shop", "buy")), "buy");
    assert_eq!(table.add("buy", entry("shop", "buy")), "buy");
    assert_eq!(table.add("purchase", entry("shop", "buy")), "purchase", "an alias is another name");
    assert_eq!(table.iter().count(), 2);
    assert!(table.renamed().is_empty());
}

#[test]
fn a_taken_name_is_told_with_both_tools() {
    let mut table = NameTable::default();
    table.add("buy", entry("shop", "buy"));
    table.add("buy", entry("market", "buy"));
    let renamed = &table.renamed()[0];
    assert_eq!((renamed.shown.as_str(), renamed.wanted.as_str()), ("buy_2", "buy"));
    assert_eq!((renamed.server.as_str(), renamed.tool.as_str(), renamed.taken_by.as_str()), ("market", "buy", "shop/buy"));
}
