//! `check-config`, `schema`, `completions`, `demo` and the help texts.
//!
//! Invariant: a bad config is told in at most 12 lines. Deliberately no list of config errors: the loader's tests have it.

use insta::assert_snapshot;
use serde_json::Value;
use test_case::test_case;

use crate::support::{at, folder, greenroom, root, stderr, stdout};

#[test]
fn the_example_config_is_good() {
    let good = greenroom(["check-config", "examples/greenroom.yaml", "--json"]).success();
    let found: Value = serde_json::from_str(&stdout(&good)).unwrap();
    assert_eq!(found["agents"], serde_json::json!(["greeter"]));
    assert_eq!(found["weaknesses"], serde_json::json!([]));
}

#[test]
fn a_disabled_server_is_named_with_its_reason() {
    let config = "mcpServers:\n  shop: { command: shop, env: { KEY: \"${GREENROOM_TEST_UNSET}\" } }\n";
    let files = folder(&[("greenroom.yaml", config)]);
    let disabled = greenroom(["check-config", &at(&files, "greenroom.yaml")]).code(1);
    let said = stdout(&disabled);
    assert!(said.contains("mcpServers.shop: the server is disabled: mcpServers.shop.env: "), "{said}");
    assert!(said.contains("GREENROOM_TEST_UNSET"), "{said}");
}

#[test_case("agents: { a: { script: no.ts } }", "agents.a.script: "; "a script that is not there")]
#[test_case("agents: { a: { script: bad.ts } }", "bad.ts:1:24: "; "a script that does not parse")]
#[test_case("agents: { a: { script: imports.ts } }", "imports.ts:2:10: "; "a script that imports what is not there")]
#[test_case("agents: { a: { script: imports.ts } }", "2 |   import './gone.ts'\n  |          ^"; "and the line that does")]
#[test_case("agents: { a: { model: nobody/m } }", "agents.a.model: no provider is named"; "a provider that is not there")]
#[test_case("agents: { a: {} }", "agents.a: it has neither a model nor a script"; "an agent that answers nothing")]
#[test_case("mcpServers: { s: { url: 'ftp://x/mcp' } }", "mcpServers.s.url: "; "an address that is not http")]
#[test_case("llmProviders: { p: { dialect: Morse } }", "llmProviders.p.dialect: "; "a dialect nobody speaks")]
fn what_would_fail_later_is_told_now(text: &str, part: &str) {
    let files =
        folder(&[("greenroom.yaml", text), ("bad.ts", "export function Next( {"), ("imports.ts", "\n  import './gone.ts'")]);
    let weak = greenroom(["check-config", &at(&files, "greenroom.yaml")]).code(1);
    assert!(stdout(&weak).contains(part), "{}", stdout(&weak));
}

#[test_case("agnets: {}", &["greenroom.yaml:1:1", "agnets", "did you mean `agents`?"]; "a misspelt key")]
#[test_case("mcpServers:\n  a: [", &["greenroom.yaml:2:6", "^"]; "no YAML")]
#[test_case("mcpServers: { shop: {} }", &["greenroom.yaml: mcpServers.shop", "`command`, `url` or `script`"]; "a server without address")]
fn a_bad_config(text: &str, parts: &[&str]) {
    let files = folder(&[("greenroom.yaml", text)]);
    let config = at(&files, "greenroom.yaml");
    for command in [vec!["check-config", &config], vec!["serve", "--listen", "127.0.0.1:0", "-c", &config]] {
        let refused = greenroom(command).code(2);
        let said = stderr(&refused);
        assert!(said.lines().count() <= 12, "{said}");
        for part in parts {
            assert!(said.contains(part), "{part:?} in {said}");
        }
    }
}

#[test]
fn a_missing_config() {
    for command in ["check-config", "serve", "record", "replay"] {
        let args: &[&str] = match command {
            "check-config" => &["no-such.yaml"],
            "serve" => &["-c", "no-such.yaml", "--listen", "127.0.0.1:0"],
            "record" => &["-c", "no-such.yaml", "-o", "no-such.cas", "--turn", "a=b"],
            _ => &["scenarios/real/servers.cas", "-c", "no-such.yaml"],
        };
        let refused = greenroom([&[command], args].concat()).code(2);
        assert!(stderr(&refused).contains("cannot read no-such.yaml"), "{command}: {}", stderr(&refused));
    }
    assert!(!root().join("no-such.cas.partial").exists());
}

#[test]
fn the_shipped_schema_is_the_printed_one() {
    let shipped = std::fs::read_to_string(root().join("scenarios/scenario.schema.json")).unwrap();
    similar(&shipped, &stdout(&greenroom(["schema"]).success()));
    let config: Value = serde_json::from_str(&stdout(&greenroom(["schema", "config"]).success())).unwrap();
    assert!(config["properties"]["mcpServers"].is_object());
}

/// As equality, but a failure shows the first line that differs.
fn similar(left: &str, right: &str) {
    for (number, (left, right)) in left.lines().zip(right.lines()).enumerate() {
        assert_eq!(left, right, "line {}; `greenroom schema -o scenarios/scenario.schema.json` writes it anew", number + 1);
    }
    assert_eq!(left, right);
}

#[test]
fn completions_for_bash() {
    let script = stdout(&greenroom(["completions", "bash"]).success());
    for part in ["_greenroom()", "check-config", "complete -F _greenroom"] {
        assert!(script.contains(part), "{part:?}");
    }
}

#[test_case("")]
#[test_case("serve")]
#[test_case("test")]
#[test_case("record")]
#[test_case("replay")]
#[test_case("check-config")]
#[test_case("schema")]
#[test_case("list")]
#[test_case("types")]
#[test_case("cover")]
#[test_case("hooks")]
#[test_case("completions")]
#[test_case("demo")]
fn help(command: &str) {
    let arguments = if command.is_empty() { vec!["--help"] } else { vec![command, "--help"] };
    let help = stdout(&greenroom(arguments).success());
    assert_snapshot!(if command.is_empty() { "help" } else { command }, help);
}

#[test]
fn the_demo_passes_and_its_replay_has_no_differences() {
    let demo = stdout(&greenroom(["demo"]).success());
    assert!(demo.contains("; 0 differences"), "{demo}");
    assert!(demo.contains(" 0 failed"), "{demo}");
    let listed = stdout(&greenroom(["list", "scenarios", "--format", "ids"]).success());
    for id in listed.lines().chain(["outside-client"]) {
        assert!(demo.contains(id), "{id} in {demo}");
    }
}
