//! A script as a server: each of its functions is a tool.
//!
//! Invariant: a tool call is one function call in a fresh context with the tool's arguments and the caller's `ctx`: what the
//! function does has the caller's permissions, depth and cancellation. Functions that call each other come to an end.
//! Arguments are checked against what the function's types or comments say. Deliberately no check of what it returns.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use greenroom_boundary::ServerName;
use greenroom_boundary::isolate::{CallRequest, CallValue, IsolateError, Isolation, Limits, PassCtx};
use serde_json::{Value, json};

use crate::config::ScriptConfig;
use crate::context::HookContext;
use crate::host::HostCore;
use crate::router::{CallContext, CallError, ListMethod, Output, Server, ServerRequest};
use crate::scripts::{LoadedScript, Signature};

/// The server of one script.
pub struct ScriptServer {
    core: Weak<HostCore>,
    name: ServerName,
    config: ScriptConfig,
    isolation: Option<Isolation>,
}

impl ScriptServer {
    /// The server called `name`.
    pub fn new(core: Weak<HostCore>, name: ServerName, config: ScriptConfig) -> Self {
        Self { core, name, config, isolation: None }
    }

    /// The same server, its calls kept apart otherwise than the policy says.
    pub fn kept_apart(self, isolation: Option<Isolation>) -> Self {
        Self { isolation, ..self }
    }

    fn open(&self) -> Result<(Arc<HostCore>, Arc<LoadedScript>), CallError> {
        let core = self.core.upgrade().ok_or_else(|| CallError::Inner {
            code: "HOST_CLOSED".to_owned(),
            message: "the host is shutting down".to_owned(),
        })?;
        let script = core
            .scripts
            .loaded(&self.config)
            .map_err(|error| CallError::Inner { code: error.code().to_owned(), message: error.to_string() })?;
        Ok((core, script))
    }

    async fn page(&self, list: ListMethod, request: ServerRequest) -> Result<Output, CallError> {
        if list != ListMethod::Tools {
            (request.sent)();
            return Ok(list.page(Vec::new()));
        }
        let (core, loaded) = self.open()?;
        let limits = core.config.policy.script_limits;
        let limits = Limits { isolation: self.isolation.unwrap_or(limits.isolation), ..limits };
        (request.sent)();
        let functions = core.drivers.isolate.functions(&loaded.script, &limits).await.map_err(|error| Self::failed(&error))?;
        let tools =
            functions.iter().filter(|name| loaded.tools.offers(name)).map(|name| tool(name, loaded.tools.signature(name)));
        Ok(list.page(tools.collect()))
    }

    fn failed(error: &IsolateError) -> CallError {
        CallError::Inner { code: error.code().to_owned(), message: error.to_string() }
    }
}

#[async_trait]
impl Server for ScriptServer {
    fn boundary(&self) -> String {
        format!("server.{}", self.name)
    }

    async fn request(&self, cx: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        if let Some(list) = ListMethod::parse(&request.method) {
            return self.page(list, request).await;
        }
        let (core, loaded) = self.open()?;
        let function = request.params["name"].as_str().unwrap_or_default().to_owned();
        let unknown = || CallError::UnknownTool { server: self.name.to_string(), tool: function.clone(), hint: String::new() };
        if request.method != "tools/call" || !loaded.tools.offers(&function) {
            return Err(unknown());
        }
        if !cx.asks_hook
            && let problems = loaded.tools.problems(&function, &request.params["arguments"])
            && !problems.is_empty()
        {
            (request.sent)();
            return Ok(bad_arguments(&problems).into());
        }
        let arguments = serde_json::value::to_raw_value(&request.params["arguments"])
            .map_err(|error| CallError::Inner { code: "CALL_ENCODE".to_owned(), message: error.to_string() })?;
        let cx = cx.for_code(&format!("{}/{function}", self.name))?;
        (request.sent)();
        let limits = core.config.policy.script_limits;
        let limits = Limits { isolation: self.isolation.unwrap_or(limits.isolation), ..limits };
        let (script, called) = (loaded.script.clone(), loaded.tools.function(&function));
        let call = CallRequest { script, function: called, pass_ctx: PassCtx::Last, args: vec![arguments], limits };
        let cancel = cx.cancel.clone();
        let _drop_guard = cancel.clone().drop_guard();
        let ctx = Arc::new(HookContext::new(core.clone(), cx));
        let value = core.drivers.isolate.call(call, ctx, core.hand_off, &cancel).await.map_err(|error| Self::failed(&error))?;
        match value {
            CallValue::NoSuchFunction => Err(unknown()),
            CallValue::Undefined => Ok(json!({"content": []}).into()),
            CallValue::Json(raw) => {
                // Nested too deep for a reader: a hook's answer that nobody can read must not pass for no answer.
                let value: Value = serde_json::from_str(raw.get()).map_err(|error| CallError::Inner {
                    code: "SCRIPT_RESULT".to_owned(),
                    message: format!("{}/{function} returned a value that cannot be read: {error}", self.name),
                })?;
                let mut result = json!({"content": [{"type": "text", "text": raw.get()}]});
                if value.is_object() {
                    result["structuredContent"] = value;
                }
                Ok(result.into())
            }
        }
    }
}

/// A function as `tools/list` shows it.
fn tool(name: &str, signature: Option<&Signature>) -> Value {
    let mut tool = json!({"name": name});
    if let Some(description) = signature.and_then(|it| it.description.as_deref()) {
        tool["description"] = description.into();
    }
    tool["inputSchema"] = signature.and_then(|it| it.schema.clone()).unwrap_or_else(|| json!({"type": "object"}));
    tool
}

/// What a caller can do better: a result, so that a model reads it and tries again.
fn bad_arguments(problems: &[String]) -> Value {
    let text = format!("SCRIPT_ARGUMENTS: the arguments do not fit the tool's schema: {}", problems.join("; "));
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}
