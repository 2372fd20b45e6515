//! `ctx.agent`: other agents.
//!
//! Invariant: a call is a turn of the other agent, with its own tools and hooks, within the limits of delegation. A failed
//! turn is in the result's `error` and `code`. Deliberately no `skip`: what the other agent says goes to the client's stream.

use std::sync::Arc;

use greenroom_boundary::isolate::{Callback, OpError};
use greenroom_boundary::llm::ChatMessage;
use greenroom_boundary::trace::DelegateVia;
use greenroom_boundary::{AgentId, ConnectorName};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::arguments::Arguments;
use super::batch::{self, Combinator, Ended, Request};
use super::chunks::{OnChunk, SharedCallback};
use super::mcp_ops::batch_requests;
use super::verbs::AgentVerb;
use crate::agents::{self, AgentCall, TextListener, TurnFailure, TurnResult};
use crate::host::HostCore;
use crate::router::CallContext;

/// What is asked of another agent.
struct Asked {
    agent: AgentId,
    messages: Vec<ChatMessage>,
    connector: Option<ConnectorName>,
    metadata: Map<String, Value>,
}

pub(super) async fn run(
    core: &Arc<HostCore>,
    cx: &CallContext,
    verb: AgentVerb,
    args: &Arguments,
    callback: Option<Arc<dyn Callback>>,
) -> Result<Value, OpError> {
    let callback = callback.map(SharedCallback::new);
    let how = match verb {
        AgentVerb::Call => {
            let asked = asked(args, args.text(0, "agentId")?, args.any(1), args.any(2), "")?;
            let head = head(&asked.agent);
            let mut cx = cx.clone();
            cx.cancel = cx.cancel.child_token();
            let ended = turn(core.clone(), cx, asked, OnChunk::new(callback.clone(), Vec::new()), callback.is_some()).await;
            return batch::entry(head, ended).map(Value::Object);
        }
        AgentVerb::All => Combinator::All,
        AgentVerb::Any => Combinator::Any,
        AgentVerb::Race => Combinator::Race,
    };
    args.object(1, "options")?;
    let mut requests = Vec::new();
    for (index, request) in batch_requests(args)?.iter().enumerate() {
        let at = format!("requests[{index}].");
        let null = Value::Null;
        let field = |key: &str| request.get(key).unwrap_or(&null);
        let asked = asked(args, args.key_text(request, &at, "agent")?, field("messages"), field("options"), &at)?;
        let head = head(&asked.agent);
        let on_chunk = OnChunk::new(callback.clone(), vec![json!(asked.agent), json!(index)]);
        let cancel = cx.cancel.child_token();
        let (core, mut cx) = (core.clone(), cx.clone());
        cx.cancel = cancel.clone();
        let work = Box::pin(turn(core, cx, asked, on_chunk, callback.is_some()));
        requests.push(Request { head, cancel, work });
    }
    batch::run(how, requests).await
}

fn head(agent: &AgentId) -> Map<String, Value> {
    std::iter::once(("agent_id".to_owned(), json!(agent))).collect()
}

fn asked(args: &Arguments, agent: &str, messages: &Value, options: &Value, at: &str) -> Result<Asked, OpError> {
    let options = args.object_of(options, &format!("{at}options"))?;
    let inside = format!("{at}options.");
    Ok(Asked {
        agent: AgentId::new(agent),
        messages: args.messages_of(messages, &format!("{at}messages"))?,
        connector: args.key_optional_text(&options, &inside, "connector")?.map(ConnectorName::new),
        metadata: args.object_of(options.get("metadata").unwrap_or(&Value::Null), &format!("{inside}metadata"))?,
    })
}

/// Lets the text of the turns in `cx` come here, too.
fn overhear(cx: &mut CallContext) -> mpsc::UnboundedReceiver<String> {
    let (send, receive) = mpsc::unbounded_channel();
    let outer = cx.progress.take();
    cx.progress = Some(Arc::new(move |step| {
        // Progress of tools comes here as well; only text of models has this mark.
        if let (Some(text), true) = (&step.message, step.of_model) {
            drop(send.send(text.clone()));
        }
        if let Some(outer) = &outer {
            outer(step);
        }
    }));
    receive
}

/// Runs the turn; its text also goes to the callback, which may stop it.
async fn turn(core: Arc<HostCore>, mut cx: CallContext, asked: Asked, mut on_chunk: OnChunk, listens: bool) -> Ended {
    let cancel = cx.cancel.clone();
    let mut pieces = listens.then(|| overhear(&mut cx));
    let call = AgentCall {
        agent: asked.agent,
        messages: asked.messages,
        connector: asked.connector,
        metadata: asked.metadata,
        via: DelegateVia::Script,
    };
    let mut work = Box::pin(agents::call_agent(&core, &cx, call));
    let result = loop {
        let Some(receive) = &mut pieces else { break (&mut work).await };
        tokio::select! {
            biased;
            Some(piece) = receive.recv() => {
                if !on_chunk.text(&piece).await {
                    cancel.cancel();
                    pieces = None;
                }
            }
            result = &mut work => {
                while let Ok(piece) = receive.try_recv() {
                    if !on_chunk.text(&piece).await {
                        break;
                    }
                }
                break result;
            }
        }
    };
    ended(result, &on_chunk)
}

fn ended(result: Result<TurnResult, TurnFailure>, on_chunk: &OnChunk) -> Ended {
    if let Some(error) = on_chunk.thrown() {
        return Ended::Threw(error);
    }
    match result {
        Ok(result) => {
            let mut fields = Map::new();
            fields.insert("content".to_owned(), json!(result.text));
            fields.insert("response".to_owned(), result.to_response());
            Ended::Well(fields)
        }
        Err(_) if on_chunk.stopped => {
            Ended::Failed { code: "STOPPED".to_owned(), message: "onChunk stopped the turn".to_owned() }
        }
        Err(failure) => Ended::Failed { code: failure.code, message: failure.message },
    }
}
