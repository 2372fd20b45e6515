//! The turn of one agent: `Create` -> model or nothing -> tools -> `Next`, delegation included.
//!
//! Invariant: a turn has one request and one response event on its agent's boundary. Tool results reach the model in call
//! order whatever order they came in. `Next` is told of a failure (Yao never called it then). Deliberately one level: a
//! delegate is another turn.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures::future::join_all;
use greenroom_boundary::llm::{ChatMessage, LlmRequest, Role, ToolCall};
use greenroom_boundary::trace::{DelegateVia, EventKind, HookPhase, Outcome};
use greenroom_boundary::{AgentId, BoxFuture, ConnectorName, SpanId, clock};
use serde_json::{Map, Value, json};

use super::call::{AgentCall, call_agent};
use super::delegation::{self, DelegationError};
use super::model::{Answer, NobodyListens, stream_completion};
use super::sampling::SampleSettings;
use super::scripts::{CreateResponse, DelegateRequest, NextResponse, ScriptHook};
use super::toolset::Toolset;
use super::turn_hooks::TurnHooks;
use crate::config::AgentConfig;
use crate::context;
use crate::hooks::{NoteMode, notes};
use crate::host::HostCore;
use crate::router::{CallContext, CallError, OpenExchange, structured};

/// What a turn is asked.
#[derive(Clone, Debug)]
pub struct TurnInput {
    /// The agent.
    pub agent: AgentId,
    /// The new messages.
    pub messages: Vec<ChatMessage>,
    /// Connector instead of the agent's own.
    pub connector: Option<ConnectorName>,
    /// How the work came here; `None` for a person's turn.
    pub via: Option<DelegateVia>,
    /// What a server asks for, if the turn is a sample for it.
    pub sample: Option<SampleSettings>,
}

/// What a turn gave.
#[derive(Clone, Debug, Default)]
pub struct TurnResult {
    /// Final text.
    pub text: String,
    /// `Next`'s data.
    pub data: Value,
    /// The last completion (Yao's shape).
    pub completion: Value,
    /// The tool calls (Yao's shape).
    pub tools: Vec<Value>,
}

impl TurnResult {
    /// Yao's `AgentResponse`, as callers see it.
    pub fn to_response(&self) -> Value {
        json!({"completion": self.completion, "next": self.data, "tools": self.tools})
    }
}

/// Why a turn failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct TurnFailure {
    /// Stable code.
    pub code: String,
    /// What happened.
    pub message: String,
}

impl From<greenroom_boundary::isolate::IsolateError> for TurnFailure {
    fn from(error: greenroom_boundary::isolate::IsolateError) -> Self {
        Self { code: error.code().to_owned(), message: error.to_string() }
    }
}

impl From<DelegationError> for TurnFailure {
    fn from(error: DelegationError) -> Self {
        Self { code: error.code().to_owned(), message: error.to_string() }
    }
}

/// Runs a turn of `input.agent` below `cx`.
pub fn run_turn(core: Arc<HostCore>, cx: CallContext, input: TurnInput) -> BoxFuture<'static, Result<TurnResult, TurnFailure>> {
    Box::pin(async move {
        let Some(agent) = core.config.agents.get(&input.agent).cloned() else {
            let hint = crate::router::nearest(input.agent.as_str(), core.config.agents.keys().map(AgentId::as_str));
            let error = DelegationError::Unknown { name: input.agent.to_string(), hint: crate::router::did_you_mean(hint) };
            return Err(error.into());
        };
        if let Some(via) = input.via {
            let mut policy = core.config.policy.delegation;
            // A server may well ask the agent that called it; what goes round in circles ends at the depth.
            policy.allow_cycles |= via == DelegateVia::Sampling;
            let depth = delegation::check(policy, &cx.delegation, &input.agent)?;
            if let Some(from) = cx.agent.clone().or_else(|| cx.delegation.last().cloned()) {
                let event = EventKind::Delegate { from, to: input.agent.clone(), depth, via };
                core.drivers.tracer.emit(&cx.scope, cx.agent.as_ref(), event);
            }
        }
        let _active = core.active_turn();
        let mut inner = cx.clone();
        inner.scope = cx.tree.scope(&cx.scope, input.agent.as_str());
        inner.delegation.push(input.agent.clone());
        inner.agent = Some(input.agent.clone());
        inner.permissions.clone_from(&agent.permissions);
        inner.tool_call = None;
        inner.timeout = None;
        let span = core.drivers.tracer.span();
        let turn = Turn { core: &core, cx: inner, agent, span, input };
        turn.traced().await
    })
}

struct Turn<'a> {
    core: &'a Arc<HostCore>,
    cx: CallContext,
    agent: AgentConfig,
    span: SpanId,
    input: TurnInput,
}

/// What the middle of a turn gathered, also if it failed.
#[derive(Default)]
struct Middle {
    answer: Option<Answer>,
    tools: Vec<Value>,
    said: Vec<ChatMessage>,
}

impl Turn<'_> {
    fn emit(&self, kind: EventKind) {
        self.core.drivers.tracer.emit(&self.cx.scope, self.cx.agent.as_ref(), kind);
    }

    async fn traced(mut self) -> Result<TurnResult, TurnFailure> {
        let boundary = format!("agent.{}", self.input.agent);
        self.emit(EventKind::Request {
            span: self.span,
            parent: self.cx.parent,
            boundary: boundary.clone(),
            method: "turn".to_owned(),
            tool_call: None,
            body: json!({"messages": self.input.messages, "metadata": self.cx.metadata}),
        });
        let open = OpenExchange {
            tracer: self.core.drivers.tracer.clone(),
            scope: self.cx.scope.clone(),
            agent: self.cx.agent.clone(),
            span: self.span,
            boundary,
            method: "turn".to_owned(),
            left: Arc::new(AtomicBool::new(true)),
        };
        let cancel = self.cx.cancel.clone();
        let result = tokio::select! {
            biased;
            result = self.run() => result,
            () = cancel.cancelled() => Err(cancelled()),
        };
        // Whatever broke off first, a cancelled turn says that it was cancelled.
        let result = if cancel.is_cancelled() { result.map_err(|_| cancelled()) } else { result };
        match &result {
            Ok(turn) => open.close(Outcome::Ok, || json!({"text": turn.text, "data": turn.data}), None),
            Err(failure) if cancel.is_cancelled() => open.close(Outcome::Cancelled, || json!({"code": failure.code}), None),
            Err(failure) => {
                open.close(Outcome::Error, || json!({"code": failure.code, "message": failure.message}), None);
            }
        }
        result
    }

    /// Nothing new is begun once the turn is cancelled: tools that end by it would else lead to the next model call.
    fn going_on(&self) -> Result<(), TurnFailure> {
        if self.cx.cancel.is_cancelled() { Err(cancelled()) } else { Ok(()) }
    }

    async fn run(&mut self) -> Result<TurnResult, TurnFailure> {
        self.cx.parent = Some(self.span);
        if let Some(source) = self.agent.instruction_source.take() {
            let text = context::instructions(self.core, &self.cx, &source).await;
            let text = text.map_err(|error| TurnFailure { code: error.code, message: error.message })?;
            self.agent.instructions = vec![text];
        }
        let hooks = TurnHooks { core: self.core, cx: &self.cx, span: self.span };
        self.agent = hooks.config(&self.agent).await?;
        let history =
            if self.input.via.is_none() && self.agent.chat { self.cx.session.history(&self.input.agent) } else { Vec::new() };
        let mut full = history;
        full.extend(self.input.messages.iter().cloned());
        let script = match &self.agent.script {
            Some(config) => Some(
                self.core
                    .scripts
                    .load(config)
                    .map_err(|error| TurnFailure { code: error.code().to_owned(), message: error.to_string() })?,
            ),
            None => None,
        };
        let mut create = CreateResponse::default();
        if let Some(script) = &script {
            let hook = ScriptHook { core: self.core, cx: &self.cx, script, span: self.span };
            let options = self.hook_options();
            create = hook.call(HookPhase::Create, [json!(full), options]).await?.unwrap_or_default();
            if let Some(metadata) = create.metadata.take() {
                self.cx.metadata.extend(metadata);
            }
            if let Some(delegate) = create.delegate.take() {
                return self.delegate(delegate, DelegateVia::Create).await;
            }
        }
        let mut middle = Middle::default();
        let failure = self.middle(&create, &full, &mut middle).await.err();
        self.going_on()?;
        if let Some(script) = &script {
            let hook = ScriptHook { core: self.core, cx: &self.cx, script, span: self.span };
            let payload = json!({
                "messages": full,
                "completion": middle.answer.as_ref().map(Answer::to_completion),
                "tools": (!middle.tools.is_empty()).then_some(&middle.tools),
                "error": failure.as_ref().map_or("", |failure| failure.message.as_str()),
                "error_code": failure.as_ref().map_or("", |failure| failure.code.as_str()),
            });
            let next: Option<NextResponse> = hook.call(HookPhase::Next, [payload, self.hook_options()]).await?;
            if let Some(delegate) = next.as_ref().and_then(|next| next.delegate.clone()) {
                return self.delegate(delegate, DelegateVia::Next).await;
            }
            if let Some(data) = next.and_then(|next| next.data).filter(|data| !data.is_null()) {
                let mut result = self.finish(middle);
                result.data = data;
                return Ok(result);
            }
        }
        match failure {
            Some(failure) => Err(failure),
            None => Ok(self.finish(middle)),
        }
    }

    fn hook_options(&self) -> Value {
        json!({"connector": self.agent.connector, "metadata": self.cx.metadata})
    }

    fn finish(&self, middle: Middle) -> TurnResult {
        let text = middle.answer.as_ref().map(|answer| answer.message.plain_text()).unwrap_or_default();
        if self.input.via.is_none() && self.agent.chat {
            self.cx.session.remember(&self.input.agent, self.input.messages.iter().cloned().chain(middle.said));
        }
        TurnResult {
            text,
            data: Value::Null,
            completion: middle.answer.as_ref().map(Answer::to_completion).unwrap_or_default(),
            tools: middle.tools,
        }
    }

    async fn delegate(&self, request: DelegateRequest, via: DelegateVia) -> Result<TurnResult, TurnFailure> {
        let options = request.options.unwrap_or_default();
        let call = AgentCall {
            agent: AgentId::new(request.agent_id),
            messages: request.messages,
            connector: options.connector.map(ConnectorName::new),
            metadata: options.metadata.unwrap_or_default(),
            via,
        };
        call_agent(self.core, &self.cx, call).await
    }

    async fn middle(&self, create: &CreateResponse, full: &[ChatMessage], middle: &mut Middle) -> Result<(), TurnFailure> {
        let connector = create
            .connector
            .clone()
            .map(ConnectorName::new)
            .or_else(|| self.input.connector.clone())
            .or_else(|| self.agent.connector.clone());
        let Some(connector) = connector else {
            return Ok(());
        };
        let sample = self.input.sample.as_ref();
        let toolset = match sample {
            Some(sample) if !sample.own_tools => Toolset::default(),
            _ => Toolset::collect(self.core, &self.cx, &self.agent, create.mcp_servers.as_deref()).await,
        };
        let conversation = create.messages.as_deref().filter(|messages| !messages.is_empty()).unwrap_or(full);
        let mut messages: Vec<ChatMessage> =
            self.agent.instructions.iter().map(|text| ChatMessage::text(Role::System, text)).collect();
        messages.extend(conversation.iter().cloned());
        let mut request = LlmRequest {
            connector,
            model: self.agent.model.clone(),
            messages,
            tools: toolset.specs(),
            tool_choice: self.agent.tool_choice.clone(),
            temperature: create.temperature.or(self.agent.temperature),
            max_tokens: create.max_completion_tokens.or(create.max_tokens).or(self.agent.max_tokens),
            params: self.agent.params.clone(),
            agent: Some(self.input.agent.to_string()),
        };
        if let Some(sample) = sample {
            sample.apply(&mut request);
        }
        for _ in 0..self.core.config.policy.max_model_calls {
            self.going_on()?;
            let answer = self.ask(request.clone()).await?;
            let calls = answer.message.tool_calls.clone();
            let said = with_arguments(&answer.message);
            request.messages.push(said.clone());
            middle.said.push(said);
            middle.answer = Some(answer);
            if calls.is_empty() || sample.is_some_and(|sample| sample.is_for_asker(&calls)) {
                return Ok(());
            }
            let results = self.tools(&toolset, &calls).await?;
            for (message, record) in results {
                request.messages.push(message.clone());
                middle.said.push(message);
                middle.tools.push(record);
            }
            request.tool_choice = None;
        }
        let limit = self.core.config.policy.max_model_calls;
        Err(TurnFailure {
            code: "TURN_LIMIT".to_owned(),
            message: format!(
                "the model asked for tools {limit} times in one turn; raise policy.max_model_calls if that is right"
            ),
        })
    }

    async fn ask(&self, request: LlmRequest) -> Result<Answer, TurnFailure> {
        let hooks = TurnHooks { core: self.core, cx: &self.cx, span: self.span };
        let (request, answered) = hooks.request(&self.agent, request).await?;
        let answer = match answered {
            Some(answer) => answer,
            None => stream_completion(self.core, &self.cx, request.clone(), &mut NobodyListens).await?,
        };
        hooks.response(&self.agent, &request, answer).await
    }

    async fn tools(&self, toolset: &Toolset, calls: &[ToolCall]) -> Result<Vec<(ChatMessage, Value)>, TurnFailure> {
        if self.core.config.policy.parallel_tools {
            return Ok(join_all(calls.iter().map(|call| self.tool(toolset, call))).await);
        }
        let mut results = Vec::with_capacity(calls.len());
        for call in calls {
            results.push(self.tool(toolset, call).await);
        }
        Ok(results)
    }

    /// One tool call: the message for the model, and Yao's record of it.
    async fn tool(&self, toolset: &Toolset, call: &ToolCall) -> (ChatMessage, Value) {
        let name = &call.function.name;
        let mut record = json!({"toolcall_id": call.id, "server": "", "tool": name, "arguments": call.function.arguments});
        let text = match self.tool_result(toolset, call, &mut record).await {
            Ok(result) => {
                let failed = result.get("isError").and_then(Value::as_bool) == Some(true);
                let text = model_text(&result, self.core.config.policy.note);
                if failed {
                    record["error"] = json!(text);
                } else {
                    record["result"] = structured(&result).unwrap_or_else(|| json!(text));
                }
                text
            }
            Err(message) => {
                record["error"] = json!(message);
                format!("Error: {message}")
            }
        };
        let mut message = ChatMessage::text(Role::Tool, text);
        message.tool_call_id = Some(call.id.clone());
        if record.get("error").is_some() {
            message.extra.insert("is_error".to_owned(), json!(true));
        }
        (message, record)
    }

    async fn tool_result(&self, toolset: &Toolset, call: &ToolCall, record: &mut Value) -> Result<Value, String> {
        self.going_on().map_err(|failure| failure.message)?;
        let name = &call.function.name;
        let Some(entry) = toolset.names.get(name) else {
            let hint = toolset.names.nearest(name).map(|nearest| format!("; the nearest is {nearest}")).unwrap_or_default();
            return Err(format!("there is no tool named {name}{hint}"));
        };
        record["server"] = json!(entry.server);
        record["tool"] = json!(entry.tool);
        let arguments = parse_arguments(&call.function.arguments)?;
        let mut cx = self.cx.clone();
        cx.tool_call = Some(call.id.clone());
        let retry = self.core.config.policy.tool_retry;
        let mut tries = 0;
        loop {
            let result = self.core.router.call(&cx, &entry.server, &entry.tool, Value::Object(arguments.clone())).await;
            let error = match result {
                Ok(output) => return Ok(output.value),
                Err(error) => error,
            };
            let may_repeat = matches!(error, CallError::Timeout { .. } | CallError::Unavailable(_) | CallError::Backoff { .. })
                && retry.is_some_and(|retry| tries < retry.max && (!retry.idempotent_only || entry.is_idempotent()));
            let Some(retry) = retry.filter(|_| may_repeat && !cx.cancel.is_cancelled()) else {
                return Err(self.core.drivers.credentials.mask(&error.to_string()));
            };
            tries += 1;
            clock::sleep(self.core.drivers.clock.as_ref(), retry.backoff).await;
        }
    }
}

fn cancelled() -> TurnFailure {
    TurnFailure { code: "TURN_CANCELLED".to_owned(), message: "the turn was cancelled".to_owned() }
}

/// The message as history keeps it: arguments that mean none are written as `{}`, which every provider takes back.
fn with_arguments(message: &ChatMessage) -> ChatMessage {
    let mut message = message.clone();
    for call in &mut message.tool_calls {
        if ["", "null"].contains(&call.function.arguments.trim()) {
            "{}".clone_into(&mut call.function.arguments);
        }
    }
    message
}

/// Absent, blank and `null` arguments mean none; anything but an object is told to the model.
fn parse_arguments(text: &str) -> Result<Map<String, Value>, String> {
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(other) => Err(format!("the arguments must be a JSON object, not {other}")),
        Err(error) => Err(format!("the arguments are not valid JSON: {error}")),
    }
}

/// What the model reads of a result: its structured content, else its text, else its content as JSON. That hooks changed it
/// is said below structured content, too.
fn model_text(result: &Value, note: NoteMode) -> String {
    if let Some(value) = result.get("structuredContent").filter(|value| !value.is_null()) {
        let told = if note == NoteMode::Content { notes(result) } else { [None, None] };
        let lines: Vec<String> = std::iter::once(value.to_string()).chain(told.into_iter().flatten()).collect();
        return lines.join("\n");
    }
    let items = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = items.iter().filter_map(|item| item.get("text")?.as_str()).collect();
    if texts.len() == items.len() { texts.join("\n") } else { Value::Array(items.to_vec()).to_string() }
}
