//! Generated agents: what each does in its turn, as a native function and as a script.
//!
//! Invariant: both twins do the same. Deliberately few deeds: hand on, ask several, call a tool, speak.

use serde_json::{Value, json};

use super::world::Isolate;
use crate::support::{Native, Set, json_value, op, thrown};

/// What an agent does.
#[derive(Clone, Debug)]
pub(super) enum Deed {
    /// `Create` hands the turn over.
    Hands(String),
    /// `Next` does.
    HandsAfter(String),
    /// `Next` asks these with `ctx.agent.HOW` and gives their results as data.
    Asks(&'static str, Vec<String>),
    /// `Next` calls a tool; its data is `{ok}` or `{code}`.
    Calls(&'static str, &'static str, Value),
    /// `Next` calls a tool and lets its failure be the agent's.
    Needs(&'static str, &'static str, Value),
    /// `Next` sends that many messages with a call of `slow/wait` between any two.
    Speaks(u32, u64),
    /// Its model answers.
    Nothing,
}

fn requests(agents: &[String]) -> Value {
    agents.iter().map(|agent| json!({"agent": agent, "messages": [{"role": "user", "content": "go"}]})).collect()
}

/// The script.
pub(super) fn source(deed: &Deed) -> String {
    let delegate =
        |to: &str| format!("return {{ delegate: {{ agent_id: {to:?}, messages: [{{ role: 'user', content: 'go' }}] }} }};");
    let (hook, body) = match deed {
        Deed::Hands(to) => ("Create", delegate(to)),
        Deed::HandsAfter(to) => ("Next", delegate(to)),
        Deed::Asks(how, agents) => {
            ("Next", format!("return {{ data: {{ results: ctx.agent.{how}({}) }} }};", requests(agents)))
        }
        Deed::Calls(server, tool, args) => (
            "Next",
            format!(
                "try {{ return {{ data: {{ ok: ctx.mcp.CallTool({server:?}, {tool:?}, {args}) }} }}; }} catch (e) {{ return {{ data: {{ code: e.code }} }}; }}"
            ),
        ),
        Deed::Needs(server, tool, args) => {
            ("Next", format!("return {{ data: {{ ok: ctx.mcp.CallTool({server:?}, {tool:?}, {args}) }} }};"))
        }
        Deed::Speaks(times, ms) => (
            "Next",
            format!(
                "for (let i = 0; i < {times}; i++) {{ ctx.Send('hello'); ctx.mcp.CallTool('slow', 'wait', {{ ms: {ms} }}); }}"
            ),
        ),
        Deed::Nothing => return String::new(),
    };
    format!("export function {hook}(ctx) {{ {body} }}\n")
}

/// The same as a native function: the hook's name and itself.
fn native(deed: Deed) -> (&'static str, Native) {
    let hook = if matches!(deed, Deed::Hands(_)) { "Create" } else { "Next" };
    let work: Native = Box::new(move |call| {
        let deed = deed.clone();
        Box::pin(async move {
            let tool = |server: &str, tool: &str, args: &Value| vec![json!(server), json!(tool), args.clone()];
            let value = match &deed {
                Deed::Hands(to) | Deed::HandsAfter(to) => {
                    json!({"delegate": {"agent_id": to, "messages": [{"role": "user", "content": "go"}]}})
                }
                Deed::Asks(how, agents) => {
                    let answer = op(&call, &format!("agent.{how}"), vec![requests(agents)]).await;
                    json!({"data": {"results": answer["ok"]}})
                }
                Deed::Calls(server, name, args) => {
                    let answer = op(&call, "mcp.CallTool", tool(server, name, args)).await;
                    match answer.get("ok") {
                        Some(ok) => json!({"data": {"ok": ok}}),
                        None => json!({"data": {"code": answer["error"]["code"]}}),
                    }
                }
                Deed::Needs(server, name, args) => {
                    let answer = op(&call, "mcp.CallTool", tool(server, name, args)).await;
                    match answer.get("ok") {
                        Some(ok) => json!({"data": {"ok": ok}}),
                        None => return Err(thrown(answer["error"]["message"].as_str().unwrap())),
                    }
                }
                Deed::Speaks(times, ms) => {
                    for _ in 0..*times {
                        op(&call, "Send", vec![json!("hello")]).await;
                        op(&call, "mcp.CallTool", tool("slow", "wait", &json!({"ms": ms}))).await;
                    }
                    json!({})
                }
                Deed::Nothing => json!({}),
            };
            Ok(json_value(&value))
        })
    });
    (hook, work)
}

/// Their entries in a config.
pub(super) fn entries(agents: &[(String, Deed)]) -> String {
    agents.iter().map(|(name, _)| format!("  {name}: {{script: {name}.js}}\n")).collect::<Vec<_>>().concat()
}

/// Adds the scripts of these agents, `NAME.js` each.
pub(super) fn with_agents(set: Set, engine: &Isolate, agents: &[(String, Deed)]) -> Set {
    match engine {
        Some(engine) => agents.iter().fold(set.engine(engine.clone()), |set, (name, deed)| set.source(name, &source(deed))),
        None => agents.iter().fold(set, |set, (name, deed)| {
            let (hook, work) = native(deed.clone());
            set.native(name, hook, work)
        }),
    }
}

/// A server `slow` whose tool `wait` takes `ms`, and fails if `fails`.
pub(super) fn with_slow(set: Set) -> Set {
    set.timed("slow", |method, params| {
        let args = &params["arguments"];
        let wait = std::time::Duration::from_millis(args["ms"].as_u64().unwrap_or_default());
        let text = match method {
            "tools/call" => json!({"content": [{"type": "text", "text": "waited"}], "isError": args["fails"] == json!(true)}),
            _ => json!({"tools": [{"name": "wait", "inputSchema": {"type": "object"}}]}),
        };
        (wait, vec![crate::support::result(&text.to_string())])
    })
}
