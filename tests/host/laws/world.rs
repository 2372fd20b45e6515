//! A generated config at work: one call, and everything that could be seen of it.
//!
//! Invariant: what is seen comes from the wire, the caller's result and the trace. Deliberately no judgement.

use std::sync::Arc;

use greenroom_boundary::IsolateDriver;
use greenroom_boundary::trace::{EventKind, HookPhase, HookVerdict};
use serde_json::{Value, json};

use super::plan::{Target, World};
use super::plan_text::{CLERK_JS, declared_beside, desk_js, policy_js, yaml};
use super::twins::{constant, exception, native, remote};
use crate::support::{Set, Stage, error, result};

/// The engine that a law is tried on; none is the mock with native twins.
pub(super) type Isolate = Option<Arc<dyn IsolateDriver>>;

/// A decision of a hook.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Decision {
    pub(super) hook: usize,
    pub(super) phase: HookPhase,
    pub(super) verdict: HookVerdict,
    pub(super) patch: Option<Value>,
    pub(super) reason: Option<String>,
    pub(super) code: Option<String>,
}

/// Why a call gave no result.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Refusal {
    pub(super) code: String,
    pub(super) message: String,
    /// As it goes over a wire, with what others said.
    pub(super) rpc: Value,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    /// `params` of what left for the target.
    pub(super) left: Vec<Value>,
    /// Frames to the external target, whole.
    pub(super) frames: Vec<Value>,
    pub(super) result: Result<Value, Refusal>,
    pub(super) decisions: Vec<Decision>,
    /// What each hook was given: its id and the message.
    pub(super) asked: Vec<(usize, Value)>,
}

impl Seen {
    /// The verdicts, in order.
    pub(super) fn verdicts(&self) -> Vec<(usize, HookVerdict)> {
        self.decisions.iter().map(|decision| (decision.hook, decision.verdict)).collect()
    }

    /// The trail that left, if anything did.
    pub(super) fn trail(&self) -> Option<Vec<usize>> {
        self.left.first().map(|params| trail(&params["arguments"]))
    }

    /// The trail of the answer that the caller has.
    pub(super) fn answered_trail(&self) -> Vec<usize> {
        match &self.result {
            Ok(value) => trail(&value["structuredContent"]),
            Err(refusal) => trail(&refusal.rpc["data"]),
        }
    }

    /// What counts for whoever is outside: the wire and the result.
    pub(super) fn outside(&self) -> (&[Value], &[Value], &Result<Value, Refusal>) {
        (&self.left, &self.frames, &self.result)
    }
}

/// Ids of hooks that left their mark in a value.
pub(super) fn trail(value: &Value) -> Vec<usize> {
    serde_json::from_value(value["trail"].clone()).unwrap_or_default()
}

/// Builds the host of a config on the mock, with something changed.
pub(super) fn stage_with(world: &World, change: impl FnOnce(Set) -> Set) -> Stage {
    change(builder(&None, world, "")).build()
}

/// All of a config's host but its start, with these agents besides.
pub(super) fn builder(engine: &Isolate, world: &World, agents: &str) -> Set {
    let fails = world.fails;
    let shop = move |method: &str, _: &Value| match (method, fails) {
        ("tools/call", true) => vec![error(r#"{"code":-32050,"message":"out of stock","data":{"trail":[]}}"#)],
        ("tools/call", false) => {
            vec![result(r#"{"content":[{"type":"text","text":"sold"}],"structuredContent":{"trail":[],"price":5}}"#)]
        }
        _ => vec![result(r#"{"tools":[{"name":"buy","inputSchema":{"type":"object"}}]}"#)],
    };
    let config = yaml(world).replace("agents:\n", &format!("agents:\n{agents}"));
    let mut set = Set::new(&config).raw("shop", shop).timed("remote", remote(world));
    for (key, target) in declared_beside(world) {
        set = set.hook_on("clerk", &key, &target);
    }
    match engine {
        Some(engine) => {
            let texts = [("policy", policy_js(world)), ("desk", desk_js(world).to_owned()), ("clerk", CLERK_JS.to_owned())];
            texts.iter().fold(set.engine(engine.clone()), |set, (script, text)| set.source(script, text))
        }
        None => natives(set, world),
    }
}

fn natives(set: Set, world: &World) -> Set {
    let hooks = world.hooks.iter().filter(|hook| !hook.remote);
    let set = hooks.fold(set.source("policy", ""), |set, hook| set.native("policy", &format!("h{}", hook.id), native(*hook)));
    let set = set.native("clerk", "Next", constant(json!({"data": {"trail": []}})));
    if world.fails {
        set.native("desk", "buy", Box::new(|_| Box::pin(async { Err(exception("Error", "out of stock")) })))
    } else {
        set.native("desk", "buy", constant(json!({"trail": []})))
    }
}

/// The arguments of the call.
pub(super) fn arguments(target: Target) -> Value {
    match target {
        Target::Agent => json!({"prompt": "go", "trail": []}),
        _ => json!({"trail": []}),
    }
}

/// Runs the call of a config.
pub(super) fn run(engine: &Isolate, world: &World) -> Seen {
    let stage = builder(engine, world, "").build();
    let (server, tool) = world.target.address();
    let result = stage.call(server, tool, arguments(world.target));
    seen(&stage, world, result)
}

fn seen(stage: &Stage, world: &World, result: Result<greenroom::router::Output, greenroom::router::CallError>) -> Seen {
    let boundary = world.target.boundary();
    Seen {
        left: stage.requests(&boundary, "tools/call").into_iter().map(|mut body| body["params"].take()).collect(),
        frames: stage.sent("shop", "tools/call"),
        result: result.map(|output| output.value).map_err(|error| Refusal {
            code: error.code().to_owned(),
            message: stage.placeless(&error.to_string()),
            rpc: serde_json::from_str(&stage.placeless(&serde_json::to_string(&error.to_rpc()).unwrap())).unwrap(),
        }),
        decisions: decisions_at(stage, &boundary),
        asked: asked(stage),
    }
}

fn number(hook: &str) -> Option<usize> {
    hook.rsplit_once("/h")?.1.parse().ok()
}

/// The decisions of hooks on messages at a boundary.
pub(super) fn decisions_at(stage: &Stage, at: &str) -> Vec<Decision> {
    let decisions = stage.events().into_iter().filter_map(|event| match event.kind {
        // An agent's own `Create` and `Next` are decisions, too.
        EventKind::Hook { hook, boundary, phase, verdict, patch, reason, code, .. } if boundary == at => {
            let reason = reason.map(|text| stage.placeless(&text));
            Some(Decision { hook: number(&hook)?, phase, verdict, patch, reason, code })
        }
        _ => None,
    });
    decisions.collect()
}

/// What hooks were given, in the order in which they were asked.
fn asked(stage: &Stage) -> Vec<(usize, Value)> {
    let asked = stage.events().into_iter().filter_map(|event| match event.kind {
        EventKind::Request { boundary, method, body, .. }
            if method == "tools/call" && (boundary == "server.policy" || boundary == "mcp.remote") =>
        {
            let id = body["params"]["name"].as_str().unwrap().trim_start_matches('h').parse().unwrap();
            let message = stage.placeless(&body["params"]["arguments"]["message"].to_string());
            Some((id, serde_json::from_str(&message).unwrap()))
        }
        _ => None,
    });
    asked.collect()
}
