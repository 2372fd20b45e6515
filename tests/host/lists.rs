//! Lists of external servers: cursors, repeats, changes, overrides.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use greenroom_boundary::ServerName;
use serde_json::{Value, json};
use test_case::test_case;

use crate::support::{Set, Stage, error, result};

/// C04: the four servers of the case, in one host.
fn four() -> Stage {
    Set::new("mcpServers: {same: {}, empty: {}, twice: {}, broken: {}, ring: {}}")
        .raw("same", |_, _| vec![result(r#"{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"p"}"#)])
        .raw("empty", |_, params| match params.get("cursor") {
            None => vec![result(r#"{"tools":[{"name":"a"}],"nextCursor":""}"#)],
            Some(cursor) if cursor == "" => vec![result(r#"{"tools":[{"name":"b"}]}"#)],
            Some(_) => vec![error(r#"{"code":-32602,"message":"unknown cursor"}"#)],
        })
        .raw("twice", |_, params| match params.get("cursor") {
            None => vec![result(r#"{"tools":[{"name":"a"},{"name":"b"}],"nextCursor":"2"}"#)],
            Some(_) => vec![result(r#"{"tools":[{"name":"b"},{"name":"c"}],"nextCursor":null}"#)],
        })
        .raw("broken", |_, params| match params.get("cursor") {
            None => vec![result(r#"{"tools":[{"name":"a"}],"nextCursor":"2"}"#)],
            Some(_) => vec![error(r#"{"code":-32603,"message":"down"}"#)],
        })
        .raw("ring", |_, params| match params["cursor"].as_str() {
            Some("p") => vec![result(r#"{"tools":[{"name":"b"}],"nextCursor":"q"}"#)],
            _ => vec![result(r#"{"tools":[{"name":"a"}],"nextCursor":"p"}"#)],
        })
        .build()
}

#[test]
fn c04_a_cursor_that_comes_again_ends_the_list_with_a_warning() {
    let stage = four();
    assert_eq!(stage.list("same").unwrap(), ["a", "b"]);
    assert_eq!(stage.sent("same", "tools/list").len(), 2, "the repeat is seen at its first return");
    assert_eq!(stage.warnings(), [("cursor_repeated".to_owned(), json!({"method": "tools/list", "cursor": "p"}))]);
}

/// A list that never ends, in pages of a quarter of a megabyte, ends all the same; so does one of very many items.
#[test]
fn a_list_is_bounded_in_bytes_and_items() {
    let long = "x".repeat(1 << 20);
    let count = Arc::new(AtomicUsize::new(0));
    let page = move |items: usize, text: &str| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        let items: Vec<Value> =
            (0..items).map(|item| json!({"name": format!("t{number}_{item}"), "description": text})).collect();
        vec![result(&json!({"tools": items, "nextCursor": number.to_string()}).to_string())]
    };
    let (wide, many) = (page.clone(), page);
    let stage = Set::new("mcpServers: {wide: {}, many: {}}")
        .raw("wide", move |_, _| wide(1, &long))
        .raw("many", move |_, _| many(3_000, ""))
        .build();
    assert_eq!(stage.list("wide").unwrap().len(), 32);
    assert_eq!(stage.list("many").unwrap().len(), 10_000);
    let codes: Vec<String> = stage.warnings().into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, ["list_too_long", "list_too_long"]);
}

/// Of two tools with one name the first counts, and the trace has the other; so it has what cannot be called.
#[test]
fn what_a_server_lists_wrongly_is_told() {
    let stage = Set::new("mcpServers: {odd: {}}")
        .raw("odd", |_, _| {
            vec![result(r#"{"tools":[{"name":"a","title":"1"},{"name":"a","title":"2"},{"title":"none"},{"name":7},{"name":"b","inputSchema":[]}]}"#)]
        })
        .build();
    let core = stage.host.core();
    let tools = stage.run(async { core.router.list_tools(&stage.caller(), &ServerName::new("odd")).await }).unwrap();
    assert_eq!(tools, [json!({"name": "a", "title": "1"}), json!({"name": "b", "inputSchema": []})]);
    assert_eq!(
        stage.warnings(),
        [
            ("listed_twice".to_owned(), json!({"method": "tools/list", "names": ["a"]})),
            ("listed_without_name".to_owned(), json!({"method": "tools/list", "items": 2, "field": "name"})),
        ]
    );
}

#[test_case("tools/call", "[1]", "an array, not with an object"; "an array for a result")]
#[test_case("tools/call", "null", "null, not with an object"; "null for a result")]
#[test_case("tools/call", "7", "a number, not with an object"; "a number for a result")]
#[test_case("tools/call", r#"{"content":"hi"}"#, "a `content` that is a text, not an array"; "a text for content")]
#[test_case("tools/call", r#"{"content":[],"isError":"yes"}"#, "a `isError` that is a text, not a boolean"; "a text for a flag")]
#[test_case("tools/list", r#"{"tools":{}}"#, "a `tools` that is an object, not an array"; "an object for a list")]
#[test_case("prompts/get", r#"{"messages":1}"#, "a `messages` that is a number, not an array"; "a number for messages")]
#[test_case("resources/read", r#"{"contents":true}"#, "a `contents` that is a boolean, not an array"; "a flag for contents")]
fn an_answer_that_is_none_is_an_error_that_names_the_server(method: &'static str, answer: &'static str, what: &str) {
    let stage = Set::new("mcpServers: {odd: {}}").raw("odd", move |_, _| vec![result(answer)]).build();
    let (core, cx, odd) = (stage.host.core(), stage.caller(), ServerName::new("odd"));
    let failed = stage.run(async { core.router.request(&cx, &odd, method, json!({"name": "x"}), None).await }).unwrap_err();
    assert_eq!(failed.code(), "CALL_BAD_RESULT");
    let told =
        format!("mcp.odd answered {method} with {what}; it does not keep to the protocol, so its answer is not passed on");
    assert_eq!(failed.to_string(), told);
}

/// What nobody reads may be anything: some servers answer so.
#[test]
fn an_answer_that_says_nothing_may_be_null() {
    let stage = Set::new("mcpServers: {odd: {}}").raw("odd", |_, _| vec![result("null")]).build();
    let (core, cx, odd) = (stage.host.core(), stage.caller(), ServerName::new("odd"));
    stage.run(async { core.router.request(&cx, &odd, "resources/subscribe", json!({"uri": "x://a"}), None).await }).unwrap();
}

#[test]
fn c04_a_ring_of_cursors_ends_too() {
    let stage = four();
    assert_eq!(stage.list("ring").unwrap(), ["a", "b"]);
    assert_eq!(stage.sent("ring", "tools/list").len(), 3);
    assert_eq!(stage.warnings()[0].0, "cursor_repeated");
}

#[test]
fn c04_an_empty_cursor_is_a_cursor() {
    let stage = four();
    assert_eq!(stage.list("empty").unwrap(), ["a", "b"]);
    let cursors: Vec<Value> = stage.sent("empty", "tools/list").iter().map(|frame| frame["params"]["cursor"].clone()).collect();
    assert_eq!(cursors, [Value::Null, json!("")]);
}

#[test]
fn c04_a_tool_that_comes_twice_is_listed_once() {
    assert_eq!(four().list("twice").unwrap(), ["a", "b", "c"]);
}

#[test]
fn c04_a_broken_page_keeps_the_earlier_ones_and_is_asked_for_again() {
    let stage = four();
    assert_eq!(stage.list("broken").unwrap(), ["a"]);
    assert_eq!(stage.warnings()[0].0, "list_incomplete");
    assert_eq!(stage.list("broken").unwrap(), ["a"]);
    assert_eq!(stage.sent("broken", "tools/list").len(), 4, "an incomplete list is not kept");
    assert_eq!(stage.list("same").unwrap(), ["a", "b"], "other servers do not notice");
}

#[test]
fn a_list_is_asked_for_once_until_the_server_says_that_it_changed() {
    let lists = Arc::new(AtomicUsize::new(0));
    let counted = lists.clone();
    let stage = Set::new("mcpServers: {shop: {}}")
        .raw("shop", move |method, _| match method {
            "tools/list" if counted.fetch_add(1, Ordering::SeqCst) == 0 => {
                vec![result(r#"{"tools":[{"name":"a"},{"name":"b"}]}"#)]
            }
            "tools/list" => vec![result(r#"{"tools":[{"name":"a"},{"name":"c"}]}"#)],
            "tools/call" => {
                let changed = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned();
                vec![changed.clone(), changed, result(r#"{"content":[]}"#)]
            }
            _ => vec![],
        })
        .build();
    assert_eq!(stage.list("shop").unwrap(), ["a", "b"]);
    assert_eq!(stage.list("shop").unwrap(), ["a", "b"]);
    assert_eq!(lists.load(Ordering::SeqCst), 1);
    stage.call("shop", "a", json!({})).unwrap();
    assert_eq!(stage.list("shop").unwrap(), ["a", "c"]);
    assert_eq!(stage.list("shop").unwrap(), ["a", "c"]);
    assert_eq!(lists.load(Ordering::SeqCst), 2, "two notices, one refresh");
}

#[test]
fn a_server_without_the_capability_is_not_asked() {
    let stage = Set::new("mcpServers: {shop: {}}").mcp("shop", "tools: [{name: buy}]").build();
    let cx = stage.caller();
    let router = &stage.host.core().router;
    let prompts = stage.run(router.list(&cx, &ServerName::new("shop"), "prompts/list")).unwrap();
    assert_eq!(prompts, Vec::<Value>::new());
    assert!(stage.sent("shop", "prompts/list").is_empty());
}

const OVERRIDES: &str = r"
mcpServers:
  shop:
    toolPrefix: s_
    toolOverrides:
      buy: {name: purchase, description: Buy it, inputSchema: {type: object, required: [sku]}}
      look: {}
";

fn overridden() -> Stage {
    Set::new(OVERRIDES)
        .mcp(
            "shop",
            "tools: [{name: buy, description: old, x: 1}, {name: look}, {name: steal}]\n\
             calls: [{when: {tool: {$re: '.*'}}, repeat: 9, result: {content: []}}]",
        )
        .build()
}

#[test]
fn overrides_rename_describe_and_hide() {
    let stage = overridden();
    let cx = stage.caller();
    let tools = stage.run(stage.host.core().router.list_tools(&cx, &ServerName::new("shop"))).unwrap();
    let wanted = [
        json!({"name": "s_purchase", "description": "Buy it", "x": 1, "inputSchema": {"type": "object", "required": ["sku"]}}),
        json!({"name": "s_look"}),
    ];
    assert_eq!(tools, wanted);
}

#[test]
fn the_allow_list_holds_for_calls() {
    let stage = overridden();
    stage.call("shop", "s_purchase", json!({})).unwrap();
    stage.call("shop", "s_look", json!({})).unwrap();
    let names: Vec<Value> = stage.sent("shop", "tools/call").iter().map(|frame| frame["params"]["name"].clone()).collect();
    assert_eq!(names, ["buy", "look"]);
    for hidden in ["buy", "s_buy", "steal", "s_steal", "purchase", ""] {
        let error = stage.call("shop", hidden, json!({})).unwrap_err();
        assert_eq!(error.code(), "CALL_UNKNOWN_TOOL", "{hidden}: {error}");
    }
    assert_eq!(stage.sent("shop", "tools/call").len(), 2);
}

#[test]
fn a_hidden_tool_is_answered_with_the_nearest_shown_one() {
    let error = overridden().call("shop", "s_purchese", json!({})).unwrap_err();
    assert_eq!(error.to_string(), "shop has no tool named \"s_purchese\"; did you mean \"s_purchase\"?");
}
