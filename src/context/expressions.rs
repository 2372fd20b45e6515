//! Texts of the config, made when they are needed: instructions, prompt templates.
//!
//! Invariant: code is what the config says; results, arguments and what servers say are put in as data and never looked at
//! again. Code runs in the isolate with the caller's context and the limits of hooks. Deliberately no cache: each turn and
//! each prompt sees the world as it is then.

use std::sync::Arc;

use greenroom_boundary::RawJson;
use greenroom_boundary::isolate::{CallRequest, CallValue, IsolateError, PassCtx};
use greenroom_harness::cassette::stamp;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value, json};

use super::HookContext;
use crate::config::{InstructionSource, ScriptConfig, Template, TemplatePart};
use crate::host::HostCore;
use crate::router::{CallContext, CallError};

/// Why a text could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    /// Stable code.
    pub code: String,
    /// Where, and what happened.
    pub message: String,
}

impl ExpressionError {
    fn new(code: &str, message: String) -> Self {
        Self { code: code.to_owned(), message }
    }
}

impl From<CallError> for ExpressionError {
    fn from(error: CallError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

impl From<ExpressionError> for CallError {
    fn from(error: ExpressionError) -> Self {
        Self::Inner { code: error.code, message: error.message }
    }
}

/// Instructions as they are now.
pub async fn instructions(
    core: &Arc<HostCore>,
    cx: &CallContext,
    source: &InstructionSource,
) -> Result<String, ExpressionError> {
    let none = Map::new();
    let (at, server, prompt, args) = match source {
        InstructionSource::Text(template) => return template_text(core, cx, template, &none).await,
        InstructionSource::Prompt { at, server, prompt, args } => (at, server, prompt, args),
    };
    let mut given = Map::new();
    for (name, template) in args {
        given.insert(name.clone(), Value::String(template_text(core, cx, template, &none).await?));
    }
    let cx = cx.for_code(at)?;
    let result = core.router.get_prompt(&cx, server, prompt, json!({"arguments": given}), None).await.map_err(|error| {
        let message = format!("{at}: the prompt {server}/{prompt} cannot be had: {error}");
        ExpressionError::new(error.code(), message)
    })?;
    prompt_text(&result.value).map_err(|reason| {
        let message = format!("{at}: the prompt {server}/{prompt} cannot be used as instructions: {reason}");
        ExpressionError::new("INSTRUCTIONS_PROMPT", message)
    })
}

/// The only message of a prompt as text; the error says what it has instead.
pub(crate) fn prompt_text(result: &Value) -> Result<String, String> {
    let messages = result.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let [only] = messages else {
        return Err(format!("it has {} messages, it must have exactly one", messages.len()));
    };
    let text = only.pointer("/content/text").and_then(Value::as_str);
    text.map(str::to_owned).ok_or_else(|| "its message is no text".to_owned())
}

/// A text with its placeholders filled; `args` are those of a prompt.
pub async fn template_text(
    core: &Arc<HostCore>,
    cx: &CallContext,
    template: &Template,
    args: &Map<String, Value>,
) -> Result<String, ExpressionError> {
    let mut text = String::new();
    for part in &template.parts {
        match part {
            TemplatePart::Text(literal) => text.push_str(literal),
            TemplatePart::Argument { name, default } => {
                let given = args.get(name).and_then(Value::as_str).filter(|given| !given.is_empty());
                text.push_str(given.or(default.as_deref()).unwrap_or_default());
            }
            TemplatePart::Time => text.push_str(&stamp::format(core.drivers.clock.wall())),
            TemplatePart::Code { source, function } => {
                let Some(script) = &template.script else { continue };
                text.push_str(&value(core, cx, &Code { at: &template.at, script, source, function }, args).await?);
            }
        }
    }
    Ok(text)
}

/// One expression.
struct Code<'a> {
    at: &'a str,
    script: &'a ScriptConfig,
    source: &'a str,
    function: &'a str,
}

impl Code<'_> {
    fn failed(&self, code: &str, message: impl std::fmt::Display) -> ExpressionError {
        ExpressionError::new(code, format!("{}: `${{{}}}`: {message}", self.at, self.source))
    }
}

async fn value(
    core: &Arc<HostCore>,
    cx: &CallContext,
    code: &Code<'_>,
    args: &Map<String, Value>,
) -> Result<String, ExpressionError> {
    let script = core.scripts.load(code.script).map_err(|error| code.failed(error.code(), error))?;
    let encode = |args: &Map<String, Value>| to_raw_value(args).map_err(|error| code.failed("EXPRESSION_ENCODE", error));
    let args: Vec<RawJson> = vec![encode(args)?];
    let limits = core.config.policy.script_limits;
    let request = CallRequest { script, function: code.function.to_owned(), pass_ctx: PassCtx::First, args, limits };
    let cx = cx.for_code(code.at)?;
    let cancel = cx.cancel.clone();
    let _drop_guard = cancel.clone().drop_guard();
    let ctx = Arc::new(HookContext::new(core.clone(), cx));
    match core.drivers.isolate.call(request, ctx, core.hand_off, &cancel).await {
        Ok(CallValue::Json(raw)) => Ok(match serde_json::from_str(raw.get()) {
            Ok(Value::String(text)) => text,
            _ => raw.get().to_owned(),
        }),
        Ok(CallValue::Undefined) => Err(code.failed("EXPRESSION_UNDEFINED", "it is undefined; give it a value, `… ?? \"\"`")),
        Ok(CallValue::NoSuchFunction) => Err(code.failed("EXPRESSION_LOST", "its function is missing; report this")),
        Err(IsolateError::Js(thrown)) => {
            let named = thrown.code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
            Err(code.failed("EXPRESSION_THREW", format!("{}: {}{named}", thrown.class, thrown.message)))
        }
        Err(error) => Err(code.failed(error.code(), error)),
    }
}
