//! `ctx.llm`: models.
//!
//! Invariant: a provider's failure is in the result's `error` and `code`, only wrong arguments and what a callback throws are
//! thrown. A stream that `onChunk` stops is a success that says `stopped`. Deliberately no tools: a script asks a model, it
//! does not run an agent.

use std::sync::Arc;

use greenroom_boundary::ConnectorName;
use greenroom_boundary::isolate::{Callback, OpError};
use greenroom_boundary::llm::LlmRequest;
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::batch::{self, Combinator, Ended, Request};
use super::chunks::{OnChunk, SharedCallback};
use super::mcp_ops::batch_requests;
use super::verbs::LlmVerb;
use crate::agents;
use crate::host::HostCore;
use crate::router::CallContext;

pub(super) async fn run(
    core: &Arc<HostCore>,
    cx: &CallContext,
    verb: LlmVerb,
    args: &Arguments,
    callback: Option<Arc<dyn Callback>>,
) -> Result<Value, OpError> {
    let callback = callback.map(SharedCallback::new);
    let how = match verb {
        LlmVerb::Stream => {
            let connector = args.text(0, "connector")?;
            let request = completion(cx, args, connector, args.any(1), args.object(2, "options")?, "")?;
            let ended = stream(core, cx, request, OnChunk::new(callback, Vec::new())).await;
            return batch::entry(head(connector), ended).map(Value::Object);
        }
        LlmVerb::All => Combinator::All,
        LlmVerb::Any => Combinator::Any,
        LlmVerb::Race => Combinator::Race,
    };
    args.object(1, "options")?;
    let mut requests = Vec::new();
    for (index, request) in batch_requests(args)?.iter().enumerate() {
        let at = format!("requests[{index}].");
        let connector = args.key_text(request, &at, "connector")?.to_owned();
        let options = args.object_of(request.get("options").unwrap_or(&Value::Null), &format!("{at}options"))?;
        let completion = completion(cx, args, &connector, request.get("messages").unwrap_or(&Value::Null), options, &at)?;
        let on_chunk = OnChunk::new(callback.clone(), vec![json!(connector), json!(index)]);
        let cancel = cx.cancel.child_token();
        let (core, mut cx) = (core.clone(), cx.clone());
        cx.cancel = cancel.clone();
        let work = Box::pin(async move { stream(&core, &cx, completion, on_chunk).await });
        requests.push(Request { head: head(&connector), cancel, work });
    }
    batch::run(how, requests).await
}

fn head(connector: &str) -> Map<String, Value> {
    std::iter::once(("connector".to_owned(), json!(connector))).collect()
}

fn completion(
    cx: &CallContext,
    args: &Arguments,
    connector: &str,
    messages: &Value,
    mut options: Map<String, Value>,
    at: &str,
) -> Result<LlmRequest, OpError> {
    let number = |value: Option<Value>, name: &str| match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or_else(|| args.wrong(&format!("{at}options.{name}"), "a number", &value)),
    };
    let temperature = number(options.shift_remove("temperature"), "temperature")?;
    let max_tokens = number(options.shift_remove("max_tokens"), "max_tokens")?.map(|max| max as u64);
    Ok(LlmRequest {
        connector: ConnectorName::new(connector),
        model: String::new(),
        messages: args.messages_of(messages, &format!("{at}messages"))?,
        tools: Vec::new(),
        tool_choice: None,
        temperature,
        max_tokens,
        params: options,
        agent: cx.agent.as_ref().map(ToString::to_string),
    })
}

async fn stream(core: &Arc<HostCore>, cx: &CallContext, request: LlmRequest, mut on_chunk: OnChunk) -> Ended {
    let answer = agents::stream_completion(core, cx, request, &mut on_chunk).await;
    if let Some(error) = on_chunk.thrown() {
        return Ended::Threw(error);
    }
    match answer {
        Ok(answer) => {
            let mut fields = Map::new();
            fields.insert("content".to_owned(), json!(answer.message.plain_text()));
            fields.insert("response".to_owned(), answer.to_completion());
            fields.insert("stopped".to_owned(), json!(on_chunk.stopped));
            Ended::Well(fields)
        }
        Err(failure) => Ended::Failed { code: failure.code, message: failure.message },
    }
}
