//! Filter expressions.

use std::path::Path;

use greenroom_harness::filter::{Filter, Subject};
use proptest::prelude::*;
use test_case::test_case;

fn subject<'s>() -> Subject<'s> {
    Subject {
        id: "hooks/metric-only",
        case: "hooks/metric-only[spec=2025-11-25]",
        tags: &["smoke", "hooks"],
        file: Path::new("scenarios/hooks/metric-only.yaml"),
    }
}

#[test_case("tag(smoke)", true)]
#[test_case("tag(smok)", false; "a tag is whole")]
#[test_case("tag(s*)", true)]
#[test_case("!tag(live)", true)]
#[test_case("!!tag(live)", false)]
#[test_case("tag(smoke) & !tag(hooks)", false)]
#[test_case("tag(live) | tag(smoke) & tag(hooks)", true; "and binds stronger")]
#[test_case("(tag(live) | tag(smoke)) & tag(live)", false)]
#[test_case("tag(smoke) | tag(live) & tag(live)", true)]
#[test_case("id(hooks/*)", true)]
#[test_case("id(hooks/metric-only)", true; "the id without its case")]
#[test_case("id(*[spec=2025-11-25])", true; "the id of the case")]
#[test_case("id(*[spec=2026-07-28])", false)]
#[test_case("id(metric)", false)]
#[test_case("file(metric-only.yaml)", true; "folders may be left out")]
#[test_case("file(hooks/*)", true)]
#[test_case("file(only.yaml)", false; "but not parts of names")]
#[test_case("  tag( smoke )&id(*)  ", true; "spaces")]
fn selects(expression: &str, selected: bool) {
    assert_eq!(expression.parse::<Filter>().unwrap().matches(&subject()), selected);
}

#[test]
fn messages() {
    let bad = [
        "",
        "tag",
        "tag()",
        "tag(smoke",
        "tga(smoke)",
        "name(x)",
        "tag(smoke) tag(live)",
        "tag(smoke) &",
        "(tag(a) | tag(b)",
        "tag(a))",
        "!",
        "tag(a(b))",
        "tag(a) && tag(b)",
    ];
    let all: Vec<String> = bad.iter().map(|text| text.parse::<Filter>().unwrap_err().to_string()).collect();
    insta::assert_snapshot!("filter_messages", all.join("\n\n"));
}

#[test]
fn nesting_has_an_end() {
    let deep = "!".repeat(100_000) + "tag(a)";
    assert_eq!(deep.parse::<Filter>().unwrap_err().code(), "FILTER_INVALID");
}

fn filter() -> impl Strategy<Value = Filter> {
    let pattern = || "[a-z*/?][a-z*/?.=\\[\\]-]{0,6}";
    let leaf = prop_oneof![pattern().prop_map(Filter::Tag), pattern().prop_map(Filter::Id), pattern().prop_map(Filter::File),];
    leaf.prop_recursive(5, 24, 2, |inner| {
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            inner.prop_map(|filter| Filter::Not(Box::new(filter))),
            two.clone().prop_map(|(left, right)| Filter::And(Box::new(left), Box::new(right))),
            two.prop_map(|(left, right)| Filter::Or(Box::new(left), Box::new(right))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_it_prints_it_reads(filter in filter()) {
        prop_assert_eq!(filter.to_string().parse::<Filter>(), Ok(filter));
    }

    #[test]
    fn not_is_the_opposite(filter in filter()) {
        let not = Filter::Not(Box::new(filter.clone()));
        prop_assert_ne!(filter.matches(&subject()), not.matches(&subject()));
    }

    #[test]
    fn no_text_makes_it_panic(text in ".{0,40}") {
        if let Err(error) = text.parse::<Filter>() {
            prop_assert!(error.column <= text.chars().count());
        }
    }
}
