//! The request side of a call without the call: what hooks would do to a sample.
//!
//! Invariant: the called server is not contacted; without `live`, no external server and no model is either. A hook whose
//! target is one is named as not run. Deliberately no response side: there is no answer to look at.

use std::sync::Arc;

use greenroom_boundary::isolate::HandOff;
use greenroom_boundary::trace::{EventKind, HookVerdict};
use greenroom_boundary::{CancellationToken, Drivers, Scope};
use greenroom_harness::trace::TraceLog;
use serde::Serialize;
use serde_json::{Value, json};

use super::Call;
use crate::Host;
use crate::agents::{Session, TurnTree};
use crate::config::{HostConfig, ServerKind};
use crate::context::OutputStream;
use crate::hooks::{Exchange, HookBinding, HookTarget, Message, MutationRecord, Side};
use crate::router::CallContext;
use crate::sessions::{RootId, RootSession};

/// What one hook did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Step {
    /// Its id.
    pub hook: String,
    /// What it decided.
    pub verdict: HookVerdict,
    /// What it changed, or would have changed (audit): RFC 6902.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Value>,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The code, if it refused or failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// What the request side did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DryRun {
    /// The hooks that were asked, in order.
    pub steps: Vec<Step>,
    /// Those that were not, as their target is external.
    pub not_run: Vec<String>,
    /// The parameters that would be sent; absent if the call is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Value>,
    /// Why it is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// The config for a dry run: nothing in it leaves the process.
pub fn offline(config: &HostConfig) -> HostConfig {
    let mut offline = config.clone();
    for server in offline.servers.values_mut() {
        if matches!(server.kind, ServerKind::External(_)) {
            server.kind = ServerKind::Disabled("a dry run contacts no server; --live does".to_owned());
        }
    }
    for agent in offline.agents.values_mut() {
        agent.connector = None;
    }
    offline
}

/// Whether a target is run without `live`: a script or a built-in server.
fn is_own(config: &HostConfig, target: &HookTarget) -> bool {
    let kind = config.servers.get(&target.server).map(|server| &server.kind);
    matches!(kind, Some(ServerKind::Script(_) | ServerKind::BuiltIn))
}

/// The parameters of the sample: for calls and prompts `arguments` are the arguments, else all parameters there are.
fn sample(call: &Call, arguments: &Value) -> Value {
    match call.method.as_str() {
        "tools/call" | "prompts/get" => json!({"name": call.upstream, "arguments": arguments}),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => json!({"uri": call.upstream}),
        _ => arguments.clone(),
    }
}

/// Runs the request hooks of a call. `log` is the sink of the drivers' tracer.
pub async fn dry_run(
    config: &HostConfig,
    call: &Call,
    arguments: &Value,
    live: bool,
    drivers: Drivers,
    log: &TraceLog,
) -> DryRun {
    let chain = call.chain(config);
    let (asked, left): (Vec<Arc<HookBinding>>, Vec<Arc<HookBinding>>) =
        chain.request.into_iter().partition(|hook| live || is_own(config, &hook.target));
    let tracer = drivers.tracer.clone();
    let host = Host::start(if live { config.clone() } else { offline(config) }, drivers, HandOff::Concurrent);
    let tree = TurnTree::new(OutputStream::new(tracer.clone(), None));
    let cx = CallContext::new(
        Scope::new("dry-run"),
        RootSession::new(RootId::default()),
        Session::new("dry-run"),
        tree,
        CancellationToken::new(),
    );
    let (span, boundary) = (tracer.span(), call.boundary(config));
    let core = host.core();
    let runner = core.router.hook_runner(&cx);
    let exchange =
        Exchange { runner: &runner, tracer: &tracer, scope: &cx.scope, agent: None, span, boundary: &boundary, depth: 0 };
    let message = Message::request(call.method.clone(), sample(call, arguments));
    let result = exchange.run(&asked, Side::Request, message, &mut MutationRecord::default()).await;
    host.shutdown().await;
    let steps = log.events().into_iter().filter_map(|event| match event.kind {
        EventKind::Hook { hook, of, verdict, patch, reason, code, .. } if of == span => {
            Some(Step { hook, verdict, patch, reason, code })
        }
        _ => None,
    });
    let steps = steps.collect();
    let not_run = left.into_iter().map(|hook| hook.id.clone()).collect();
    match result {
        Ok(message) => DryRun { steps, not_run, params: Some(message.params), refused: None },
        Err(failure) => DryRun { steps, not_run, params: None, refused: Some(failure.message) },
    }
}
