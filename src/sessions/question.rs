//! What a server asks its client: who answers it, under which limits.
//!
//! Invariant: every question ends: by an answer, by its deadline, by the end of the call that it came from, of the session
//! or of the server's interest. Only what can be answered in a session is offered to the servers of that session.
//! Deliberately no memory of answers: each question is asked anew.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures::future::{join_all, pending};
use greenroom_boundary::clock::timeout_at;
use greenroom_boundary::trace::{EventKind, Outcome};
use greenroom_boundary::{CancellationToken, RawJson, Scope, ServerName};
use greenroom_harness::model::{ElicitationSpec, SamplingSpec};
use greenroom_wire::RpcError;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::{Client, RootSession};
use crate::agents::{Session, TurnTree, choose};
use crate::context::OutputStream;
use crate::hooks::Message;
use crate::host::HostCore;
use crate::router::{CallContext, CallError, OpenExchange, Output, changed, readable};

const SAMPLING: &str = "sampling/createMessage";
const ELICITATION: &str = "elicitation/create";
const ROOTS: &str = "roots/list";

/// A question of a server.
pub(crate) struct Question {
    /// Who asks.
    pub(crate) server: ServerName,
    /// In which session.
    pub(crate) root: Arc<RootSession>,
    /// `sampling/createMessage`, …
    pub(crate) method: String,
    /// Its parameters, as written.
    pub(crate) params: Option<RawJson>,
    /// The server takes it back, or is gone.
    pub(crate) cancel: CancellationToken,
    /// The call under way that it came from, if there is one.
    pub(crate) cause: Option<CallContext>,
    /// The ends of all calls that it may belong to.
    pub(crate) ends: Vec<CancellationToken>,
}

/// Who answers.
enum Answerer {
    Client(Arc<dyn Client>),
    Agent,
    Host(Value),
    Roots(Option<Arc<dyn Client>>),
}

/// The client, if it has the capability.
fn able(root: &RootSession, capability: &str) -> Option<Arc<dyn Client>> {
    root.client().filter(|client| client.capabilities().get(capability).is_some_and(Value::is_object))
}

fn answerer(core: &HostCore, root: &RootSession, method: &str) -> Option<Answerer> {
    let policy = &core.config.policy.questions;
    let has_agents = !core.config.agents.is_empty();
    match (method, policy.sampling, policy.elicitation) {
        (SAMPLING, Some(SamplingSpec::Deny), _) => None,
        (SAMPLING, Some(SamplingSpec::Agent), _) => has_agents.then_some(Answerer::Agent),
        (SAMPLING, Some(SamplingSpec::Client), _) => able(root, "sampling").map(Answerer::Client),
        (SAMPLING, None, _) => {
            let offered = core.config.agents.values().any(|agent| agent.selection.is_given());
            able(root, "sampling").map(Answerer::Client).or_else(|| offered.then_some(Answerer::Agent))
        }
        (ELICITATION, _, ElicitationSpec::Client) => able(root, "elicitation").map(Answerer::Client),
        (ELICITATION, _, ElicitationSpec::Decline) => Some(Answerer::Host(json!({"action": "decline"}))),
        (ELICITATION, _, ElicitationSpec::Cancel) => Some(Answerer::Host(json!({"action": "cancel"}))),
        (ROOTS, ..) => Some(Answerer::Roots(able(root, "roots"))),
        _ => None,
    }
}

/// What the host offers to the servers of a session.
pub(crate) fn capabilities(core: &HostCore, root: &RootSession) -> Value {
    let theirs = |client: &Arc<dyn Client>, name: &str| client.capabilities().get(name).cloned().unwrap_or_default();
    let roots_change = able(root, "roots").is_some_and(|client| theirs(&client, "roots")["listChanged"] == json!(true));
    let mut offered = json!({"roots": {"listChanged": roots_change}});
    match answerer(core, root, SAMPLING) {
        Some(Answerer::Client(client)) => offered["sampling"] = theirs(&client, "sampling"),
        Some(_) => offered["sampling"] = json!({"tools": {}}),
        None => {}
    }
    match answerer(core, root, ELICITATION) {
        Some(Answerer::Client(client)) => offered["elicitation"] = theirs(&client, "elicitation"),
        Some(_) => offered["elicitation"] = json!({"form": {}, "url": {}}),
        None => {}
    }
    offered
}

/// Answers a question.
pub(crate) async fn answer(core: &Arc<HostCore>, question: Question) -> Result<RawJson, RpcError> {
    let Some(answerer) = answerer(core, &question.root, &question.method) else {
        return Err(RpcError::method_not_found(&question.method));
    };
    let params = match &question.params {
        Some(raw) => serde_json::from_str(raw.get()).map_err(|error| RpcError::invalid_params(error.to_string()))?,
        None => Value::Null,
    };
    if let Answerer::Client(client) = &answerer {
        knows_mode(&client.capabilities(), &question.method, &params)?;
    }
    let cx = context(core, &question);
    let _ends_with_this = cx.cancel.clone().drop_guard();
    let message = Message::request(question.method.clone(), params.clone());
    let raw = question.params.clone();
    let asked = async |message: Message| {
        // What hooks may have read in another way than the client would is written anew.
        let raw = raw.and_then(|raw| changed(Some(&raw), &params, &message.params));
        ask(core, &cx, &question.server, answerer, &message, raw).await
    };
    let work = core.router.question(&cx, &question.server, message, asked);
    let clock = &core.drivers.clock;
    let limit = core.config.policy.questions.timeout;
    let answered = tokio::select! {
        biased;
        () = question.cancel.cancelled() => Err(gone("the server took the question back")),
        () = question.root.ended.cancelled() => Err(gone("the session has ended")),
        () = all(&question.ends) => Err(gone("the call that the question came from has ended")),
        answered = timeout_at(clock.as_ref(), clock.now().after(limit), Box::pin(work)) => match answered {
            Ok(answered) => answered.map_err(|error| told(core, &error)),
            Err(_) => Err(RpcError::new(RpcError::TIMEOUT, format!("nobody answered within {} ms", limit.as_millis()))),
        },
    };
    let output = answered?;
    match output.raw {
        Some(raw) => Ok(raw),
        None => to_raw_value(&output.value).map_err(|error| RpcError::internal(error.to_string())),
    }
}

/// An error as a server gets it: what the host's secrets are is none of its business.
fn told(core: &HostCore, error: &CallError) -> RpcError {
    let mut rpc = error.to_rpc();
    rpc.message = core.drivers.credentials.mask(&rpc.message);
    rpc
}

fn gone(why: &str) -> RpcError {
    RpcError::new(RpcError::CANCELLED, why)
}

/// Waits until all of them have ended; without any, for ever.
fn all(ends: &[CancellationToken]) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
    if ends.is_empty() {
        return Box::pin(pending());
    }
    Box::pin(async move { drop(join_all(ends.iter().map(CancellationToken::cancelled)).await) })
}

/// A client is asked in the ways that it has named only.
fn knows_mode(capabilities: &Value, method: &str, params: &Value) -> Result<(), RpcError> {
    let asks_by_url = method == ELICITATION && params.get("mode").and_then(Value::as_str) == Some("url");
    if asks_by_url && capabilities.pointer("/elicitation/url").is_none() {
        return Err(RpcError::invalid_params("the client does not take questions of mode url"));
    }
    Ok(())
}

fn context(core: &HostCore, question: &Question) -> CallContext {
    let cause = question.cause.clone().unwrap_or_else(|| {
        let tree = TurnTree::new(OutputStream::new(core.drivers.tracer.clone(), None));
        let scope = Scope::new(question.server.as_str());
        CallContext::new(scope, question.root.clone(), Session::new(""), tree, question.cancel.child_token())
    });
    // Several calls may be under way: the end of the one that was taken for the cause must not end the question of another.
    let mut cx = CallContext { tool_call: None, progress: None, timeout: None, ..cause };
    cx.cancel = question.cancel.child_token();
    cx
}

async fn ask(
    core: &Arc<HostCore>,
    cx: &CallContext,
    server: &ServerName,
    answerer: Answerer,
    message: &Message,
    raw: Option<RawJson>,
) -> Result<Output, CallError> {
    match answerer {
        Answerer::Client(client) => ask_client(core, cx, client.as_ref(), message, raw).await,
        Answerer::Host(value) => Ok(value.into()),
        Answerer::Agent => {
            let Some(agent) = choose(&core.config, &message.params) else {
                return Err(refused(server, RpcError::method_not_found(SAMPLING)));
            };
            core.router.sample(cx, server, &agent, message.params.clone()).await
        }
        Answerer::Roots(client) => {
            let mut roots = Vec::new();
            if let Some(client) = client {
                let theirs = ask_client(core, cx, client.as_ref(), message, raw).await?;
                let own = core.config.policy.questions.roots.is_empty();
                if own {
                    return Ok(theirs);
                }
                roots.extend(theirs.value.get("roots").and_then(Value::as_array).cloned().unwrap_or_default());
            }
            for uri in &core.config.policy.questions.roots {
                if !roots.iter().any(|root: &Value| root.get("uri").and_then(Value::as_str) == Some(uri)) {
                    roots.push(json!({"uri": uri}));
                }
            }
            Ok(json!({"roots": roots}).into())
        }
    }
}

fn refused(server: &ServerName, error: RpcError) -> CallError {
    CallError::Rpc { server: server.to_string(), error }
}

/// Asks the client; the trace has it as an exchange at the client's boundary.
async fn ask_client(
    core: &HostCore,
    cx: &CallContext,
    client: &dyn Client,
    message: &Message,
    raw: Option<RawJson>,
) -> Result<Output, CallError> {
    let tracer = core.drivers.tracer.clone();
    let (span, boundary, method) = (tracer.span(), client.boundary(), message.method.to_string());
    let params = match raw {
        Some(raw) => Some(raw),
        None if message.params.is_null() => None,
        None => to_raw_value(&message.params).ok(),
    };
    client.ready(&method, &message.params).await;
    let event = EventKind::Request {
        span,
        parent: cx.parent,
        boundary: boundary.clone(),
        method: method.clone(),
        tool_call: None,
        body: json!({"params": message.params}),
    };
    tracer.emit(&cx.scope, cx.agent.as_ref(), event);
    let (scope, agent, left) = (cx.scope.clone(), cx.agent.clone(), Arc::new(AtomicBool::new(true)));
    let open = OpenExchange { tracer, scope, agent, span, boundary: boundary.clone(), method, left };
    match client.request(&message.method, params, &cx.scope, &cx.cancel).await {
        Ok(raw) => {
            // `null` for what cannot be held: hooks then hold it back, and without hooks the bytes go on.
            let value = readable(&raw).map_or(Value::Null, |(value, _)| value);
            open.close(Outcome::Ok, || json!({"result": value}), None);
            Ok(Output { value, raw: Some(raw) })
        }
        Err(error) => {
            let outcome = if error.code == RpcError::CANCELLED { Outcome::Cancelled } else { Outcome::Error };
            open.close(outcome, || json!({"error": error}), None);
            Err(CallError::Rpc { server: boundary, error })
        }
    }
}
