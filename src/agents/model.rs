//! One completion: asked, streamed to the client, gathered, traced.
//!
//! Invariant: a request that left has one response event; a stream that ends without its end mark is a failure, never a
//! short answer. Deliberately no retries: a retry after partial output would show the same text twice (Yao).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use async_trait::async_trait;
use futures::StreamExt;
use greenroom_boundary::llm::{ChatMessage, FunctionCall, LlmError, LlmEvent, LlmRequest, Role, ToolCall, Usage};
use greenroom_boundary::trace::{EventKind, Outcome};
use serde_json::{Value, json};

use super::TurnFailure;
use crate::context::Author;
use crate::host::HostCore;
use crate::router::{CallContext, OpenExchange, ProgressUpdate};

/// A whole completion.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The assistant's message.
    pub message: ChatMessage,
    /// Why it ended.
    pub finish: String,
    /// Token counts.
    pub usage: Option<Usage>,
    /// The model asked.
    pub model: String,
}

impl Answer {
    /// Yao's `CompletionResponse`.
    pub fn to_completion(&self) -> Value {
        let mut value =
            json!({"model": self.model, "role": "assistant", "content": self.message.content, "finish_reason": self.finish});
        if !self.message.tool_calls.is_empty() {
            value["tool_calls"] = json!(self.message.tool_calls);
        }
        if let Some(usage) = self.usage {
            let total = usage.input_tokens + usage.output_tokens;
            value["usage"] =
                json!({"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens, "total_tokens": total});
        }
        value
    }
}

#[derive(Default)]
struct Gathered {
    text: String,
    reasoning: String,
    calls: BTreeMap<usize, ToolCall>,
    usage: Option<Usage>,
    finish: Option<String>,
}

impl Gathered {
    fn take(&mut self, event: LlmEvent) {
        match event {
            LlmEvent::Text { delta } => self.text.push_str(&delta),
            LlmEvent::Reasoning { delta } => self.reasoning.push_str(&delta),
            LlmEvent::ToolCall { index, id, name, arguments } => {
                let empty = FunctionCall { name: String::new(), arguments: String::new() };
                let call = self.calls.entry(index).or_insert_with(|| ToolCall {
                    id: String::new(),
                    kind: "function".to_owned(),
                    function: empty,
                });
                if let Some(id) = id {
                    call.id = id;
                }
                if let Some(name) = name {
                    call.function.name.push_str(&name);
                }
                call.function.arguments.push_str(&arguments);
            }
            LlmEvent::Usage(usage) => self.usage = Some(usage),
            LlmEvent::Finish { reason } => self.finish = Some(reason),
        }
    }

    fn answer(self, model: String) -> Answer {
        let content = if self.text.is_empty() && !self.calls.is_empty() { Value::Null } else { Value::String(self.text) };
        let mut message = ChatMessage {
            role: Role::Assistant,
            content,
            tool_calls: self.calls.into_values().collect(),
            tool_call_id: None,
            extra: serde_json::Map::new(),
        };
        if !self.reasoning.is_empty() {
            message.extra.insert("reasoning_content".to_owned(), json!(self.reasoning));
        }
        Answer { message, finish: self.finish.unwrap_or_else(|| "stop".to_owned()), usage: self.usage, model }
    }
}

/// Hears the text of a completion as it comes.
#[async_trait]
pub trait TextListener: Send {
    /// Hears a piece and says whether to go on.
    async fn text(&mut self, delta: &str) -> bool;
}

/// Hears nothing and always goes on.
#[derive(Clone, Copy, Debug, Default)]
pub struct NobodyListens;

#[async_trait]
impl TextListener for NobodyListens {
    async fn text(&mut self, _delta: &str) -> bool {
        true
    }
}

/// Asks a model and streams its text to the client; `listener` hears each piece.
pub async fn stream_completion(
    core: &Arc<HostCore>,
    cx: &CallContext,
    request: LlmRequest,
    listener: &mut dyn TextListener,
) -> Result<Answer, TurnFailure> {
    let tracer = &core.drivers.tracer;
    let span = tracer.span();
    let boundary = format!("llm.{}", request.connector);
    let cancel = cx.cancel.child_token();
    let _drop_guard = cancel.clone().drop_guard();
    if tracer.enabled() {
        let event = EventKind::Request {
            span,
            parent: cx.parent,
            boundary: boundary.clone(),
            method: "chat".to_owned(),
            tool_call: None,
            body: serde_json::to_value(&request).unwrap_or_default(),
        };
        tracer.emit(&cx.scope, cx.agent.as_ref(), event);
    }
    let open = OpenExchange {
        tracer: tracer.clone(),
        scope: cx.scope.clone(),
        agent: cx.agent.clone(),
        span,
        boundary: boundary.clone(),
        method: "chat".to_owned(),
        left: Arc::new(AtomicBool::new(true)),
    };
    let model = request.model.clone();
    let mut gathered = Gathered::default();
    let result = drive(core, cx, request, &cancel, &mut gathered, (&boundary, span), listener).await;
    let (outcome, body) = match &result {
        Ok(()) => (Outcome::Ok, Value::Null),
        Err(LlmError::Cancelled { .. }) => (Outcome::Cancelled, Value::Null),
        Err(error @ LlmError::Truncated { .. }) => {
            (Outcome::Lost, json!({"error": {"code": error.code(), "message": error.to_string()}}))
        }
        Err(error) => (Outcome::Error, json!({"error": {"code": error.code(), "message": error.to_string()}})),
    };
    let usage = gathered.usage;
    let answer = gathered.answer(model);
    let whole = result.is_ok();
    open.close(
        outcome,
        || if whole { json!({"message": answer.message, "finish_reason": answer.finish}) } else { body },
        usage,
    );
    match result {
        Ok(()) => Ok(answer),
        Err(error) => {
            Err(TurnFailure { code: error.code().to_owned(), message: core.drivers.credentials.mask(&error.to_string()) })
        }
    }
}

async fn drive(
    core: &Arc<HostCore>,
    cx: &CallContext,
    request: LlmRequest,
    cancel: &greenroom_boundary::CancellationToken,
    gathered: &mut Gathered,
    (boundary, span): (&str, greenroom_boundary::SpanId),
    listener: &mut dyn TextListener,
) -> Result<(), LlmError> {
    let connector = request.connector.to_string();
    let author = Author { scope: &cx.scope, agent: cx.agent.as_ref() };
    let mut stream = core.drivers.llm.stream(request, cancel).await?;
    let mut message_id: Option<String> = None;
    let result = loop {
        let Some(event) = stream.next().await else {
            break if gathered.finish.is_some() { Ok(()) } else { Err(LlmError::Truncated { connector }) };
        };
        let event = match event {
            Ok(event) => event,
            Err(error) => break Err(error),
        };
        if core.drivers.tracer.enabled() {
            let body = serde_json::to_value(&event).unwrap_or_default();
            core.drivers.tracer.emit(
                &cx.scope,
                cx.agent.as_ref(),
                EventKind::Chunk { span, boundary: boundary.to_owned(), body },
            );
        }
        if let LlmEvent::Text { delta } = &event {
            match &message_id {
                None => message_id = cx.tree.output.open(author, &json!(delta), None).ok(),
                Some(id) => drop(cx.tree.output.append_text(author, id, delta)),
            }
            if let Some(progress) = &cx.progress {
                let told = json!({"agent": cx.agent, "role": "assistant",
                    "item": {"partial": true, "hasMore": true, "type": "text", "text": delta}});
                progress(&ProgressUpdate::completion(delta, &told));
            }
            let go_on = listener.text(delta).await;
            gathered.take(event);
            if !go_on {
                gathered.finish = Some("stopped".to_owned());
                break Ok(());
            }
            continue;
        }
        gathered.take(event);
    };
    if let Some(id) = message_id {
        drop(cx.tree.output.end(author, &id, None));
    }
    result
}
