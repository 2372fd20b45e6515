//! `All`, `Any`, `Race`: order, winners and losers, as laws over random delays and failures.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Native, Set, Stage, json_value, op};

/// One scripted tool: how long it takes, in seconds, and whether it fails.
type Tool = (u8, bool);

fn stage(path: &'static str, tools: &[Tool]) -> Stage {
    let requests: Vec<Value> = (0..tools.len()).map(|index| json!({"mcp": "shop", "tool": format!("t{index}")})).collect();
    let next: Native = Box::new(move |call| {
        let requests = Value::Array(requests.clone());
        Box::pin(async move {
            let answer = op(&call, path, vec![requests]).await;
            Ok(json_value(&json!({"data": {"answer": answer["ok"], "at": call.ctx.now_ms()}})))
        })
    });
    let listed: Vec<String> =
        (0..tools.len()).map(|index| format!("{{name: t{index}, inputSchema: {{type: object}}}}")).collect();
    let calls: Vec<String> = tools
        .iter()
        .enumerate()
        .map(|(index, (after, fails))| {
            let result =
                if *fails { "isError: true, content: [{type: text, text: sold out}]" } else { "structuredContent: {n: 1}" };
            format!("  - {{when: {{tool: t{index}}}, after: {after}s, result: {{{result}}}}}")
        })
        .collect();
    let script = format!("on_cancel: stop\ntools: [{}]\ncalls:\n{}\n", listed.join(", "), calls.join("\n"));
    Set::new("agents: {desk: {script: desk.js}}\nmcpServers: {shop: {}}")
        .mcp("shop", &script)
        .native("desk", "Next", next)
        .build()
}

/// The answer, and the seconds it took.
fn run(path: &'static str, tools: &[Tool]) -> (Vec<Value>, u64, Stage) {
    let stage = stage(path, tools);
    let reply = stage.turn("desk", "go");
    assert!(reply.error.is_none(), "{reply:?}");
    let entries = reply.data["answer"].as_array().unwrap().clone();
    let took = (reply.data["at"].as_f64().unwrap() - 1_700_000_000_000.0) / 1000.0;
    assert_eq!(stage.unanswered(), Vec::<String>::new());
    let left = stage.end();
    assert_eq!((left.tasks, left.handles), (0, 0));
    (entries, took as u64, stage)
}

fn tools() -> impl Strategy<Value = Vec<Tool>> {
    prop::collection::vec((0..5_u8, any::<bool>()), 1..6)
}

/// Whether an entry is a success, a failure of its own, or a loser.
fn kinds(entries: &[Value]) -> Vec<&str> {
    let kind = |entry: &Value| match entry["code"].as_str() {
        None => "well",
        Some("CANCELLED") => "lost",
        Some(_) => "failed",
    };
    entries.iter().map(kind).collect()
}

fn winners(entries: &[Value]) -> Vec<usize> {
    (0..entries.len()).filter(|index| entries[*index]["winner"] == true).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn all_keeps_order_and_waits_for_the_slowest(tools in tools()) {
        let (entries, took, stage) = run("mcp.All", &tools);
        let wanted: Vec<&str> = tools.iter().map(|(_, fails)| if *fails { "failed" } else { "well" }).collect();
        prop_assert_eq!(kinds(&entries), wanted);
        let names: Vec<String> = (0..tools.len()).map(|index| format!("t{index}")).collect();
        prop_assert_eq!(entries.iter().map(|entry| entry["tool"].as_str().unwrap()).collect::<Vec<_>>(), names);
        prop_assert_eq!(winners(&entries), Vec::<usize>::new());
        prop_assert_eq!(took, u64::from(tools.iter().map(|(after, _)| *after).max().unwrap()));
        prop_assert_eq!(stage.sent("shop", "notifications/cancelled").len(), 0);
    }

    #[test]
    fn race_ends_with_the_first_to_end(tools in tools()) {
        let (entries, took, stage) = run("mcp.Race", &tools);
        let best = tools.iter().map(|(after, _)| *after).min().unwrap();
        prop_assert_eq!(took, u64::from(best));
        let winners = winners(&entries);
        prop_assert_eq!(winners.len(), 1);
        prop_assert_eq!(tools[winners[0]].0, best);
        let kinds = kinds(&entries);
        for (index, kind) in kinds.iter().enumerate() {
            prop_assert_eq!(*kind == "lost", index != winners[0], "{:?}", kinds);
        }
        let told = stage.sent("shop", "notifications/cancelled").len();
        prop_assert!(told < tools.len(), "{told}");
    }

    #[test]
    fn any_ends_with_the_first_success(tools in tools()) {
        let (entries, took, _) = run("mcp.Any", &tools);
        let best = tools.iter().filter(|(_, fails)| !fails).map(|(after, _)| *after).min();
        let winners = winners(&entries);
        match best {
            None => {
                prop_assert_eq!(winners.len(), 0);
                prop_assert!(kinds(&entries).iter().all(|kind| *kind == "failed"));
                prop_assert_eq!(took, u64::from(tools.iter().map(|(after, _)| *after).max().unwrap()));
            }
            Some(best) => {
                prop_assert_eq!((winners.len(), took), (1, u64::from(best)));
                prop_assert_eq!(kinds(&entries).iter().filter(|kind| **kind == "well").count(), 1);
                for (index, (after, fails)) in tools.iter().enumerate() {
                    if *fails && *after < best {
                        prop_assert_eq!(kinds(&entries)[index], "failed", "a failure before the winner is its own");
                    }
                }
            }
        }
    }

    #[test]
    fn the_same_requests_have_the_same_winner(tools in tools(), any in any::<bool>()) {
        let path = if any { "mcp.Any" } else { "mcp.Race" };
        prop_assert_eq!(run(path, &tools).0, run(path, &tools).0);
    }
}

#[test]
fn each_loser_is_told_once_and_an_unbegun_one_never_asked() {
    let (entries, took, stage) = run("mcp.Race", &[(3, false), (1, false), (2, false)]);
    assert_eq!((kinds(&entries), took), (vec!["lost", "well", "lost"], 1));
    assert_eq!(stage.sent("shop", "notifications/cancelled").len(), 2);
    assert_eq!(entries[0]["error"], "cancelled, as request 1 ended first");
    let next: Native = Box::new(|call| {
        Box::pin(async move {
            let requests = json!([{"mcp": "shpo", "tool": "t0"}, {"mcp": "shop", "tool": "t0"}]);
            Ok(json_value(&json!({"data": op(&call, "mcp.Race", vec![requests]).await})))
        })
    });
    let stage = Set::new("agents: {desk: {script: desk.js}}\nmcpServers: {shop: {}}")
        .mcp("shop", "tools: [{name: t0, inputSchema: {type: object}}]")
        .native("desk", "Next", next)
        .build();
    let answer = stage.turn("desk", "go").data["ok"].clone();
    assert_eq!(kinds(answer.as_array().unwrap()), ["failed", "lost"]);
    assert_eq!(stage.sent("shop", "tools/call").len(), 0);
}
