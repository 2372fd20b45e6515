//! `greenroom.yaml`: what is refused, with which words, and what placeholders become.

use std::path::Path;

use greenroom::config::{ExpandError, HostConfig, ServerKind, Variables, load_text};
use greenroom_boundary::ServerName;
use greenroom_boundary::mcp::ServerAddress;
use proptest::prelude::*;
use test_case::test_case;

fn variables() -> Variables {
    let pairs = [("TOK", "s3cret"), ("EMPTY", ""), ("NESTED", "${TOK}"), ("BREAK", "a\nb"), ("QUOTE", "a\"b")];
    Variables::new(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())))
}

fn load(text: &str) -> Result<HostConfig, String> {
    load_text("greenroom.yaml", text, Path::new("base"), &variables()).map_err(|error| error.to_string())
}

fn address(config: &HostConfig, server: &str) -> ServerAddress {
    match &config.servers[&ServerName::new(server)].kind {
        ServerKind::External(address) => address.clone(),
        other => panic!("{server} is {other:?}"),
    }
}

/// C40: a file that is broken in one place is an error with that place, never a config without servers.
#[test_case(
    "agents:\n  desk:\n    modle: openai/x\n",
    "CONFIG_SHAPE", "greenroom.yaml:3:5:", "modle", "model"; "misspelt key with the nearest one"
)]
#[test_case("agents:\n  desk: [a]\n", "CONFIG_SHAPE", "greenroom.yaml:2:9:", "", ""; "wrong type")]
#[test_case("agents:\n  desk:\n    temperature: warm\n", "CONFIG_SHAPE", "greenroom.yaml:3:18:", "", ""; "text for a number")]
#[test_case("mcpServers:\n  a: {url: 'http://x'}\n  a: {url: 'http://y'}\n", "CONFIG_SHAPE", "greenroom.yaml:3:3:", "a", ""; "duplicate key")]
#[test_case("mcpServers:\n  a:\n    url: x\n    hooks:\n      tools/call: b/c\n      tools/call: b/d\n", "CONFIG_SHAPE", "greenroom.yaml:6:7:", "tools/call", "the first one is in line 5"; "a hook key given twice")]
#[test_case("agents:\n  desk: {model: x\n", "CONFIG_SHAPE", "greenroom.yaml:", "", ""; "unclosed brace")]
#[test_case("hooks:\n  request:\n    - {target: a/b, prio: 1}\n", "CONFIG_SHAPE", "greenroom.yaml:3:21:", "prio", "priority"; "misspelt option of a hook")]
#[test_case("hooks:\n  request: 7\n", "CONFIG_SHAPE", "greenroom.yaml:2:12:", "request", ""; "a number for a hook")]
#[test_case("agents:\n\tdesk: {}\n", "CONFIG_SHAPE", "greenroom.yaml:2:", "", ""; "tab")]
fn a_shape_error_names_line_and_column(text: &str, code: &str, place: &str, word: &str, nearest: &str) {
    let error = load_text("greenroom.yaml", text, Path::new(""), &variables()).unwrap_err();
    let message = error.to_string();
    assert_eq!(error.code(), code, "{message}");
    for part in [place, word, nearest] {
        assert!(message.contains(part), "{part:?} is missing in:\n{message}");
    }
}

#[test_case(
    "agents: {desk: {tools: [shp]}}\nmcpServers: {shop: {url: 'http://x'}}",
    "greenroom.yaml: agents.desk.tools: no server or agent is named \"shp\"; did you mean \"shop\"?"; "unknown server of a tool"
)]
#[test_case(
    "agents: {desk: {tools: [zzzzzz/buy]}}",
    "greenroom.yaml: agents.desk.tools: no server or agent is named \"zzzzzz\"; add it to mcpServers or agents"; "nothing near"
)]
#[test_case(
    "agents: {desk: {agents: [bling]}, billing: {}}\npublish: {entrypoint: desk}",
    "greenroom.yaml: agents.desk.agents: no agent is named \"bling\"; did you mean \"billing\"?"; "unknown agent"
)]
#[test_case(
    "agents: {shop: {}}\nmcpServers: {shop: {url: 'http://x'}}",
    "greenroom.yaml: agents.shop: an agent and a server may not share a name; rename one"; "name clash"
)]
#[test_case(
    "agents: {nanobot.meta: {}}",
    "greenroom.yaml: agents.nanobot.meta: an agent and a server may not share a name; rename one"; "clash with a built in one"
)]
#[test_case(
    "mcpServers: {shop: {url: 'http://x', toolOverrides: {look: {name: same}, remove: {name: same}}}}",
    "greenroom.yaml: mcpServers.shop.toolOverrides.remove: tools look and remove would both be called same; give one of them another name"; "two overrides of one name"
)]
#[test_case(
    "mcpServers: {shop: {url: 'http://x', toolOverrides: {p: {name: q}, q: {}}}}",
    "greenroom.yaml: mcpServers.shop.toolOverrides.q: tools p and q would both be called q; give one of them another name"; "an override that takes a name"
)]
#[test_case(
    "mcpServers: {a/b: {url: 'http://x'}}",
    "greenroom.yaml: mcpServers.a/b: a server's name is not empty and has no `/` and no `:`, as references are written server/tool:alias"; "a server that nothing can name"
)]
#[test_case(
    "agents: {a: {}, b: {}}",
    "greenroom.yaml: publish.entrypoint: there are several agents; name those that clients talk to"; "no entrypoint"
)]
#[test_case(
    "publish: {mcpServers: shp}\nmcpServers: {shop: {url: 'http://x'}}",
    "greenroom.yaml: publish: no server or agent is named \"shp\"; did you mean \"shop\"?"; "unknown published server"
)]
#[test_case(
    "mcpServers: {shop: {url: 'http://x', hooks: {tools/call: polcy/check}}, policy: {script: p.js}}",
    "greenroom.yaml: mcpServers.shop.hooks: no server or agent is named \"polcy\"; did you mean \"policy\"?"; "unknown hook target"
)]
#[test_case(
    "mcpServers: {shop: {url: 'http://x', hooks: {tools/call: check}}}",
    "greenroom.yaml: mcpServers.shop.hooks.tools/call: \"check\" is not a hook target; write `server/tool` or `!mutate:server/tool`"; "no target"
)]
#[test_case(
    "mcpServers: {shop: {url: 'http://x', hooks: {'tools/call?prio=1': shop/t}}}",
    "greenroom.yaml: mcpServers.shop.hooks.tools/call?prio=1: unknown parameter \"prio\"; known are name, direction, callOnError, method, priority, timeout, failOpen, mode"; "bad key"
)]
#[test_case(
    "agents: {desk: {hooks: {respond: nanobot.meta/list_agents}}}",
    "greenroom.yaml: agents.desk.hooks.respond: an agent has the hooks `config`, `request` and `response`, and those on messages; no revision of MCP has a method \"respond\""; "unknown agent hook"
)]
#[test_case(
    "mcpServers: {shop: {}}",
    "greenroom.yaml: mcpServers.shop: give it `command`, `url` or `script`; built in are only nanobot.meta, nanobot.system, greenroom.prompts"; "empty server"
)]
#[test_case(
    "mcpServers: {shop: {url: 'http://x', command: x}}",
    "greenroom.yaml: mcpServers.shop: give it exactly one of `command`, `url` and `script`"; "two ways to reach it"
)]
#[test_case(
    "hooks: {tools/call: nanobot.meta/list_agents}",
    "greenroom.yaml: hooks.tools/call: the host has the hooks `session`, `request` and `response`, not \"tools/call\"; for one method write `request?method=tools/call`"; "top level hooks"
)]
#[test_case(
    "hooks: {request: polcy/check}\nmcpServers: {policy: {script: p.js}}",
    "greenroom.yaml: hooks: no server or agent is named \"polcy\"; did you mean \"policy\"?"; "unknown target of the host's hooks"
)]
#[test_case(
    "agents: {desk: {hooks: {'tools/call': polcy/check}}}\nmcpServers: {policy: {script: p.js}}",
    "greenroom.yaml: agents.desk.hooks: no server or agent is named \"polcy\"; did you mean \"policy\"?"; "unknown target of an agent's message hooks"
)]
#[test_case(
    "hooks: {request: {target: '!mutate:nanobot.meta/x', type: mutate}}",
    "greenroom.yaml: hooks.request: `!mutate:` forbids what `type: mutate` is for; leave one of them out at \"!mutate:nanobot.meta/x\""; "a mutator that may not mutate"
)]
#[test_case(
    "audit: {file: a.jsonl, url: 'http://x'}",
    "greenroom.yaml: audit: give it exactly one of `file` and `url`"; "two ways for the audit"
)]
#[test_case(
    "mcpServers: {shop: {command: \"a\\0b\"}}",
    "greenroom.yaml: mcpServers.shop.command: it has a NUL character (`\\0`), which no program can be given; leave it out"; "NUL in a command"
)]
#[test_case(
    "mcpServers: {shop: {command: a, args: [b, \"\\0\"]}}",
    "greenroom.yaml: mcpServers.shop.args: it has a NUL character (`\\0`), which no program can be given; leave it out"; "NUL in an argument"
)]
#[test_case(
    "mcpServers: {shop: {command: a, env: {'A=B': c}}}",
    "greenroom.yaml: mcpServers.shop.env: \"A=B\" is no name of a variable; a name is not empty and has no `=` and no NUL character"; "an impossible variable"
)]
#[test_case(
    "mcpServers: {shop: {url: \"http://x/\\n\"}}",
    "greenroom.yaml: mcpServers.shop.url: \"http://x/\\n\" has a control character, which no address has; leave it out"; "a line break in an address"
)]
#[test_case(
    "mcpServers: {shop: {url: 'http://x', headers: {'X Y': z}}}",
    "greenroom.yaml: mcpServers.shop.headers: \"X Y\" is no name of a header; write letters, digits and `-`"; "an impossible header"
)]
#[test_case("mcpServers: {shop: {url: 'http://x', timeout: 0s}}", "greenroom.yaml: mcpServers.shop.timeout: 0s is no time at all, so nothing would ever be in time; write more"; "no time for a server")]
#[test_case("policy: {tool_timeout: 0s}", "greenroom.yaml: policy.tool_timeout: 0s is no time at all, so nothing would ever be in time; write more"; "no time for calls")]
#[test_case("policy: {tool_timeout_cap: 0ms}", "greenroom.yaml: policy.tool_timeout_cap: 0ms is no time at all, so nothing would ever be in time; write more"; "no time with progress")]
#[test_case("policy: {list_timeout: 0.0s}", "greenroom.yaml: policy.list_timeout: 0.0s is no time at all, so nothing would ever be in time; write more"; "no time for lists")]
#[test_case("policy: {question_timeout: 0s}", "greenroom.yaml: policy.question_timeout: 0s is no time at all, so nothing would ever be in time; write more"; "no time for questions")]
#[test_case("policy: {script_limits: {wall: 0s}}", "greenroom.yaml: policy.script_limits.wall: 0s is no time at all, so nothing would ever be in time; write more"; "no time for scripts")]
#[test_case("policy: {session_idle: 0s}", "greenroom.yaml: policy.session_idle: 0s is no time at all, so nothing would ever be in time; write more"; "no time for clients")]
#[test_case("policy: {session_idle: never}", "greenroom.yaml: policy.session_idle: `never` is no duration; write a number and a unit: `250ms`, `1.5s`, `10m` (ns, us, ms, s, m, h, d)"; "no duration")]
#[test_case("policy: {max_sessions: 0}", "greenroom.yaml: policy.max_sessions: 0 sessions would serve nobody; write 1 or more"; "nobody may come")]
#[test_case(
    "hooks: {request: {target: nanobot.meta/x, timeout: 0s}}",
    "greenroom.yaml: hooks.request.timeout: 0s is no time at all, so nothing would ever be in time; write more"; "no time for a hook"
)]
#[test_case("audit: {file: a.jsonl, batch: 0}", "greenroom.yaml: audit.batch: it must be at least 1"; "an empty batch")]
#[test_case(
    "env: {B: second key, A: first key}",
    "greenroom.yaml: env: missing required environment variables: A (first key), B (second key); set them, or mark them optional"; "missing variables"
)]
#[test_case(
    "policy: {spec: '2024-11-05'}",
    "greenroom.yaml: policy.spec: \"2024-11-05\" is not a supported protocol revision; use 2025-11-25, 2025-06-18 or 2025-03-26"; "unknown revision"
)]
#[test_case(
    "llmProviders: {main: {dialect: OpenAIChatCompletions, apiKey: '${NOPE}'}}",
    "greenroom.yaml: llmProviders.main.apiKey: variable NOPE is not set; set it in the environment or write ${NOPE:-default}"; "unset key of a provider"
)]
fn a_wrong_reference_is_named(text: &str, message: &str) {
    assert_eq!(load(text).unwrap_err(), message);
}

#[test]
fn an_unset_variable_turns_off_its_server_alone() {
    let config =
        load("mcpServers:\n  gone: {command: run, args: ['--key=${NOPE}']}\n  here: {command: run, args: ['--key=${TOK}']}\n")
            .unwrap();
    let ServerKind::Disabled(reason) = &config.servers[&ServerName::new("gone")].kind else { panic!("it is not disabled") };
    assert_eq!(reason, "mcpServers.gone.args: variable NOPE is not set; set it in the environment or write ${NOPE:-default}");
    let ServerAddress::Process { args, .. } = address(&config, "here") else { panic!() };
    assert_eq!(args, ["--key=s3cret"]);
}

#[test_case("'${BREAK}'"; "from a variable")]
#[test_case("\"a\\r\\nX: y\""; "written in place")]
fn a_line_break_in_a_header_turns_the_server_off(value: &str) {
    let config = load(&format!("mcpServers: {{web: {{url: 'http://x', headers: {{Auth: {value}}}}}}}")).unwrap();
    let ServerKind::Disabled(reason) = &config.servers[&ServerName::new("web")].kind else { panic!("it is not disabled") };
    assert_eq!(reason, "mcpServers.web.headers.Auth: the value contains a line break");
}

/// C39: one table of spellings, the same in every field.
#[test_case("${TOK}", "s3cret"; "plain")]
#[test_case("${env:TOK}", "s3cret"; "with env prefix")]
#[test_case("${TOK:-none}", "s3cret"; "default not needed")]
#[test_case("${NOPE:-none}", "none"; "default needed")]
#[test_case("${NOPE:-}", ""; "empty default")]
#[test_case("${EMPTY}", ""; "empty value")]
#[test_case("${EMPTY:-none}", "none"; "empty value with default")]
#[test_case("${NESTED}", "${TOK}"; "values are not expanded again")]
#[test_case("${NOPE:-$TOK}", "$TOK"; "defaults are not expanded")]
#[test_case("${QUOTE}", "a\"b"; "quote")]
#[test_case("$${TOK}", "${TOK}"; "escaped")]
#[test_case("$TOK", "$TOK"; "no braces")]
#[test_case("cost $5", "cost $5"; "dollars")]
#[test_case("%TOK%", "%TOK%"; "windows spelling is text")]
#[test_case("~/x", "~/x"; "tilde is text")]
fn a_placeholder_means_the_same_in_every_field(text: &str, expanded: &str) {
    let text = text.replace('\'', "''");
    let config = load(&format!(
        "mcpServers:\n  run: {{command: '{text}', args: ['{text}'], env: {{K: '{text}'}}, workdir: '{text}'}}\n  \
         web: {{url: '{text}', headers: {{H: '{text}'}}}}\n"
    ))
    .unwrap();
    let ServerAddress::Process { command, args, env, workdir } = address(&config, "run") else { panic!() };
    assert_eq!((command.as_str(), args[0].as_str(), env["K"].as_str()), (expanded, expanded, expanded));
    assert_eq!(workdir.unwrap(), Path::new("base").join(expanded).display().to_string());
    let ServerAddress::Http { url, headers } = address(&config, "web") else { panic!() };
    assert_eq!((url.as_str(), headers["H"].as_str()), (expanded, expanded));
}

#[test_case("${input:tok}"; "input")]
#[test_case("${workspaceFolder}/${a b}"; "space")]
#[test_case("${}"; "empty")]
fn an_unknown_kind_of_placeholder_is_an_error(text: &str) {
    let error = variables().expand(text).unwrap_err();
    assert!(matches!(error, ExpandError::NotAName { .. } | ExpandError::Unset { .. }), "{error}");
    assert_eq!(variables().expand("${TOK").unwrap_err().code(), "CONFIG_PLACEHOLDER");
}

#[test]
fn secrets_are_registered_by_where_they_come_from() {
    let config = load(
        "env: {TOK: a token}\nmcpServers:\n  web: {url: 'http://x', headers: {Auth: 'Bearer ${TOK}'}}\n  \
         run: {command: c, env: {KEY: '${TOK}', PLAIN: text}}\n",
    )
    .unwrap();
    let names: Vec<&str> = config.secrets.keys().map(String::as_str).collect();
    assert_eq!(names, ["env/TOK", "mcp.run/KEY", "mcp.web/Auth"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn expansion_never_panics_and_leaves_plain_text_alone(text in "\\PC{0,60}", dollars in "[${}:A-Z-]{0,30}") {
        let _ = variables().expand(&dollars);
        let _ = variables().expand(&format!("{text}{dollars}"));
        if !text.contains("${") {
            prop_assert_eq!(variables().expand(&text).unwrap(), text);
        }
    }

    #[test]
    fn an_escaped_text_comes_out_as_it_was(text in "[a-z${}:-]{0,30}") {
        let escaped = text.replace("${", "$${");
        // A dollar before the placeholder would be read as a second escape.
        prop_assume!(!text.contains("$${"));
        prop_assert_eq!(variables().expand(&escaped).unwrap(), text);
    }

    #[test]
    fn no_text_makes_the_loader_panic(text in "[a-z{}\\[\\]:,'\" \\n#&*!|>-]{0,60}") {
        let _ = load(&text);
    }
}

#[test]
fn a_hook_may_be_an_object_whose_options_win_over_the_key() {
    let text = r#"
mcpServers:
  policy: {command: policy}
  shop:
    command: shop
    hooks:
      "tools/call?direction=request&priority=3":
        - policy/first
        - {target: "!mutate:policy/second", priority: -1, timeout: 2s, failOpen: true, mode: audit}
"#;
    let config = load(text).unwrap();
    let [first, second] = config.hooks.as_slice() else { panic!("{:?}", config.hooks) };
    assert_eq!((first.binding.priority, first.binding.fail_open), (3, false));
    assert_eq!((second.binding.id.as_str(), second.binding.priority, second.binding.fail_open), ("policy/second", -1, true));
    assert_eq!(second.binding.timeout, std::time::Duration::from_secs(2));
    assert!(!second.binding.form.is_mutator());
}

#[test]
fn a_misspelt_option_of_a_hook_names_the_nearest_one() {
    let text = "mcpServers:\n  shop:\n    command: shop\n    hooks:\n      tools/call: [{target: p/t, failopen: true}]\n";
    let error = load(text).unwrap_err();
    assert!(error.contains("greenroom.yaml:5:") && error.contains("failOpen"), "{error}");
}
