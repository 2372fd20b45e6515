//! A scenario's `host:` section as a config.

use std::path::Path;

use greenroom::config::{ServerKind, Variables};
use greenroom::hooks::{HookForm, Side};
use greenroom::rehearsal::translate;
use greenroom_boundary::mcp::ServerAddress;
use greenroom_boundary::trace::HookMode;
use greenroom_boundary::{AgentId, ServerName};
use greenroom_harness::load::typed;
use greenroom_harness::model::HostSpec;
use test_case::test_case;

fn spec(text: &str) -> HostSpec {
    typed(Path::new("host"), text).unwrap()
}

#[test_case("{config: a.yaml, inline: {agents: {}}}", "host.config: give either `config` or `inline`"; "two configs")]
#[test_case("{assistants: {a: {script: a.ts, script_inline: x}}}", "host.assistants.a: give either `script` or `script_inline`"; "two scripts")]
#[test_case("{assistants: {a: {prompts: [{user: x}]}}}", "host.assistants.a.prompts: each prompt must be `{ system: text }`"; "prompt of a person")]
#[test_case("{assistants: {a: {agents: [b]}}}", "scenario:host: agents.a.agents: no agent is named \"b\"; did you mean \"a\"?"; "unknown agent")]
#[test_case("{policy: {spec: '1999'}}", "host.policy.spec: \"1999\" is not a supported protocol revision; use 2025-11-25, 2025-06-18 or 2025-03-26"; "unknown revision")]
#[test_case(
    "{hooks: [{id: h, at: {boundary: llm.main}, phase: request, kind: mutate, js: x}]}",
    "host.hooks.h: \"llm.main\" has no messages to hook; use `mcp.NAME`, `server.NAME` or `agent.NAME`"; "a model has no messages"
)]
fn a_wrong_section_says_where(text: &str, message: &str) {
    assert_eq!(translate(&spec(text), Path::new(""), &Variables::default()).unwrap_err().message, message);
}

#[test]
fn assistants_and_hooks_become_config() {
    let text = "{assistants: {a: {connector: main, mcp: [shop/buy], options: {temperature: 0.5, top_p: 1}, script_inline: 'x'}},
        hooks: [{id: h, at: {boundary: mcp.shop, method: tools/call, name: buy}, phase: response, kind: validate, mode: audit, priority: 3, timeout: 250ms, fail_open: true, js: 'x'}]}";
    let config = translate(&spec(text), Path::new(""), &Variables::default()).unwrap();
    let agent = &config.agents[&AgentId::new("a")];
    assert_eq!((agent.temperature, agent.params.get("top_p")), (Some(0.5), Some(&1.into())));
    assert_eq!(config.servers[&ServerName::new("shop")].kind, ServerKind::External(ServerAddress::Simulated));
    let binding = &config.hooks[0].binding;
    assert_eq!((binding.id.as_str(), binding.target.to_string().as_str()), ("h", "hook.h/default"));
    assert_eq!((binding.side, binding.form, binding.mode), (Side::Response, HookForm::Validate, HookMode::Audit));
    assert_eq!((binding.priority, binding.timeout.as_millis(), binding.fail_open), (3, 250, true));
}
