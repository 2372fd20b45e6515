//! A script as a server: each of its functions is a tool.
//!
//! Invariant: a tool call is one function call in a fresh context with the tool's arguments and the caller's `ctx`: what the
//! function does has the caller's permissions, depth and cancellation. Functions that call each other come to an end.
//! Deliberately no schemas from types yet: every tool takes an open object.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use greenroom_boundary::ServerName;
use greenroom_boundary::isolate::{CallRequest, CallValue, IsolateError, Isolation, Limits, PassCtx, Script};
use serde_json::{Value, json};

use crate::config::ScriptConfig;
use crate::context::HookContext;
use crate::host::HostCore;
use crate::router::{CallContext, CallError, ListMethod, Output, Server, ServerRequest};

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

    fn open(&self) -> Result<(Arc<HostCore>, Arc<Script>), CallError> {
        let core = self.core.upgrade().ok_or_else(|| CallError::Inner {
            code: "HOST_CLOSED".to_owned(),
            message: "the host is shutting down".to_owned(),
        })?;
        let script = core
            .scripts
            .load(&self.config)
            .map_err(|error| CallError::Inner { code: error.code().to_owned(), message: error.to_string() })?;
        Ok((core, script))
    }

    async fn page(&self, list: ListMethod, request: ServerRequest) -> Result<Output, CallError> {
        if list != ListMethod::Tools {
            (request.sent)();
            return Ok(list.page(Vec::new()));
        }
        let (core, script) = self.open()?;
        let limits = core.config.policy.script_limits;
        let limits = Limits { isolation: self.isolation.unwrap_or(limits.isolation), ..limits };
        (request.sent)();
        let functions = core.drivers.isolate.functions(&script, &limits).await.map_err(|error| Self::failed(&error))?;
        Ok(list.page(functions.into_iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect()))
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
        let (core, script) = self.open()?;
        let function = request.params["name"].as_str().unwrap_or_default().to_owned();
        let unknown = || CallError::UnknownTool { server: self.name.to_string(), tool: function.clone(), hint: String::new() };
        if request.method != "tools/call" {
            return Err(unknown());
        }
        let arguments = serde_json::value::to_raw_value(&request.params["arguments"])
            .map_err(|error| CallError::Inner { code: "CALL_ENCODE".to_owned(), message: error.to_string() })?;
        let cx = cx.for_code(&format!("{}/{function}", self.name))?;
        (request.sent)();
        let limits = core.config.policy.script_limits;
        let limits = Limits { isolation: self.isolation.unwrap_or(limits.isolation), ..limits };
        let call = CallRequest { script, function: function.clone(), pass_ctx: PassCtx::Last, args: vec![arguments], limits };
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
