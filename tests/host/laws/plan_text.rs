//! A generated config as text: what the host loads, and what a failing case prints.
//!
//! Invariant: the text is all there is; pasted into two files it is the same host. Deliberately no shortening.

use greenroom::hooks::Side;
use serde_json::json;

use super::plan::{Does, Hook, Key, Target, World, Wrong};

/// Shortest time limit of a hook; each hook has its own, so that no two keys are the same.
const LIMIT_MS: usize = 1_000;

/// A hook's key and its target as YAML.
fn declaration(world: &World, hook: &Hook) -> (String, String) {
    let mut key = match hook.method {
        Key::Any => "*",
        Key::Exact => "tools/call",
        Key::Glob => "tools/*",
        Key::Other => "prompts/get",
    }
    .to_owned();
    key.push_str(&format!("?timeout={}ms", LIMIT_MS + hook.id));
    if let Some(side) = hook.side {
        key.push_str(if side == Side::Request { "&direction=request" } else { "&direction=response" });
    }
    let tool = world.target.address().1;
    match hook.name {
        Key::Any => {}
        Key::Exact => key.push_str(&format!("&name={tool}")),
        Key::Glob => key.push_str(&format!("&name={}*", &tool[..1])),
        Key::Other => key.push_str("&name=sell"),
    }
    if let Some(wanted) = hook.call_on_error {
        key.push_str(&format!("&callOnError={wanted}"));
    }
    let mark = if hook.may_mutate { "" } else { "!mutate:" };
    let mode = if hook.audit { "audit" } else { "enforce" };
    let target = format!("{mark}{}", hook.target());
    if hook.as_object {
        let options = json!({"target": target, "priority": hook.priority, "mode": mode, "failOpen": hook.fail_open});
        return (key, format!("[{options}]"));
    }
    key.push_str(&format!("&priority={}&mode={mode}&failOpen={}", hook.priority, hook.fail_open));
    (key, format!("'{target}'"))
}

/// Hooks of an agent are no part of a config: scenarios declare them.
pub(super) fn declared_beside(world: &World) -> Vec<(String, String)> {
    if world.target != Target::Agent {
        return Vec::new();
    }
    let textual = world.hooks.iter().map(|hook| declaration(world, &Hook { as_object: false, ..*hook }));
    textual.map(|(key, target)| (key, target.trim_matches('\'').to_owned())).collect()
}

/// The config.
pub(super) fn yaml(world: &World) -> String {
    let mut text = "policy: {script_limits: {cpu: 25ms}}\nagents:\n  clerk: {script: clerk.js}\nmcpServers:\n  policy: {script: policy.js}\n  remote: {}\n  shop: {}\n  desk: {script: desk.js}\n".to_owned();
    let server = world.target.address().0;
    let declared = world.hooks.iter().map(|hook| declaration(world, hook));
    let keys = declared
        .map(|(key, target)| {
            format!(
                "      '{key}': {target}
"
            )
        })
        .collect::<Vec<_>>()
        .concat();
    if world.target == Target::Agent || keys.is_empty() {
        return text;
    }
    let hooks = format!("    hooks:\n{keys}");
    match world.target {
        Target::External => text = text.replace("  shop: {}\n", &format!("  shop:\n{hooks}")),
        Target::Script => text = text.replace("  desk: {script: desk.js}\n", &format!("  desk:\n    script: desk.js\n{hooks}")),
        Target::BuiltIn | Target::Agent => text.push_str(&format!("  {server}:\n{hooks}")),
    }
    text
}

fn wrong(wrong: Wrong) -> &'static str {
    match wrong {
        Wrong::Number => "7",
        Wrong::Text => r#""no""#,
        Wrong::List => "[true]",
        Wrong::No => "false",
        Wrong::AcceptText => r#"{"accept":"perhaps"}"#,
        Wrong::MutatedNumber => r#"{"accept":true,"mutated":1}"#,
    }
}

/// The value of a wrong answer.
pub(super) fn wrong_value(which: Wrong) -> serde_json::Value {
    serde_json::from_str(wrong(which)).unwrap()
}

const LEAVE_MARK: &str = "const m = envelope.message; const at = m.result ? (m.result.structuredContent ??= {}) \
     : m.error ? (m.error.data ??= {}) : m.params.arguments; at.trail = [...(at.trail ?? []), ID];";

/// `policy.js`: the functions of the hooks that are no tools of the external server. Each has its own four lines, whatever else
/// is there, as errors tell the line.
pub(super) fn policy_js(world: &World) -> String {
    let last = world.hooks.iter().map(|hook| hook.id + 1).max().unwrap_or_default();
    let function = |id: usize| {
        let Some(hook) = world.hooks.iter().find(|hook| hook.id == id && !hook.remote) else {
            return "\n\n\n\n".to_owned();
        };
        let body = match hook.does {
            Does::Accepts => "return { accept: true };".to_owned(),
            Does::SaysEmpty => "return {};".to_owned(),
            Does::ChangesInSecret => format!("{LEAVE_MARK} return {{ ...envelope, accept: true, mutated: false }};"),
            Does::Mutates => format!("{LEAVE_MARK} return {{ ...envelope, mutated: true, reason: 'hID' }};"),
            Does::Rejects => "return { accept: false, reason: 'no' };".to_owned(),
            Does::Throws => "throw new RangeError('boom ID');".to_owned(),
            Does::Hangs => "for (;;) {}".to_owned(),
            Does::Answers(which) => format!("return {};", wrong(which)),
        };
        let (word, waits) = if hook.is_async { ("async function", "await null;") } else { ("function", "") };
        format!("export {word} hID(envelope) {{\n{waits}\n{body}\n}}\n").replace("ID", &id.to_string())
    };
    (0..last).map(function).collect()
}

/// `desk.js`, the script server that is called.
pub(super) fn desk_js(world: &World) -> &'static str {
    if world.fails {
        "export function buy() { throw new Error('out of stock'); }\n"
    } else {
        "export function buy() { return { trail: [] }; }\n"
    }
}

/// `clerk.js`, the agent that is called.
pub(super) const CLERK_JS: &str = "export function Next() { return { data: { trail: [] } }; }\n";
