//! The calls that callers make: one function for each method of MCP, all of them exchanges.
//!
//! Invariant: a caller's params reach the server whole, unknown fields and `_meta` included; only names are put in.
//! Deliberately no lists: those are read page by page, in `lists.rs`.

use std::sync::Arc;

use greenroom_boundary::ServerName;
use serde_json::{Value, json};

use super::params::call_params;
use super::permitted::permitted;
use super::{CallContext, CallError, ListMethod, Output, Params, RawParams, Router, did_you_mean, nearest, structured, tools};
use crate::hooks::Message;

const METHOD: &str = "tools/call";

/// What a tool is called with.
enum Given {
    /// Arguments alone.
    Arguments(Arc<Value>),
    /// Whole parameters, whatever name is in them.
    Params(Value),
}

impl Given {
    /// The parameters with the tool's name at the server in them.
    fn params(self, upstream: &str) -> Value {
        match self {
            Self::Arguments(arguments) => call_params(upstream, Arc::unwrap_or_clone(arguments)),
            Self::Params(mut params) => {
                params["name"] = upstream.into();
                params
            }
        }
    }
}

impl Router {
    /// Calls a tool, by the name that `list_tools` shows.
    pub fn call<'a>(
        &'a self,
        cx: &'a CallContext,
        server: &'a ServerName,
        tool: &'a str,
        arguments: Value,
    ) -> impl Future<Output = Result<Output, CallError>> + Send + 'a {
        self.call_shared(cx, server, tool, Arc::new(arguments))
    }

    /// The same with arguments that others may be reading.
    pub(super) fn call_shared<'a>(
        &'a self,
        cx: &'a CallContext,
        server: &'a ServerName,
        tool: &'a str,
        arguments: Arc<Value>,
    ) -> impl Future<Output = Result<Output, CallError>> + Send + 'a {
        self.call_with(cx, server, tool, Given::Arguments(arguments), None)
    }

    /// Calls a tool with a caller's whole `params`, unknown fields and `_meta` included; only the name is put in. What no
    /// hook changes leaves with the bytes of `raw`.
    pub fn forward<'a>(
        &'a self,
        cx: &'a CallContext,
        server: &'a ServerName,
        tool: &'a str,
        params: Value,
        raw: Option<RawParams>,
    ) -> impl Future<Output = Result<Output, CallError>> + Send + 'a {
        self.call_with(cx, server, tool, Given::Params(params), raw)
    }

    async fn call_with(
        &self,
        cx: &CallContext,
        server: &ServerName,
        tool: &str,
        given: Given,
        raw: Option<RawParams>,
    ) -> Result<Output, CallError> {
        let slot = self.slot(server)?;
        let upstream = tools::upstream_name(&slot.config, tool);
        permitted(cx, server, &[tool, upstream.unwrap_or(tool)])?;
        let Some(upstream) = upstream else {
            let hint = did_you_mean(nearest(tool, tools::shown_names(&slot.config).iter().map(String::as_str)));
            return Err(CallError::UnknownTool { server: server.to_string(), tool: tool.to_owned(), hint });
        };
        let instance = Self::entered(cx, slot)?;
        let to = (slot, &*instance);
        let output = match given {
            Given::Arguments(arguments) if self.is_private(slot) => {
                let asked = (METHOD.into(), Params::call(upstream, arguments), raw);
                self.deliver(cx, to, self.drivers().tracer.span(), asked).await?
            }
            // On its own, so that a private call does not carry the space for it along.
            given => Box::pin(self.pass(cx, server, to, Message::request(METHOD, given.params(upstream)), raw)).await?,
        };
        // On its own, so that a call whose result stays as it is does not carry the space for it along.
        if cx.wants_structure { Ok(Box::pin(self.with_structure(cx, server, tool, output)).await) } else { Ok(output) }
    }

    /// Reads a resource; the caller's `params` name it.
    pub async fn read_resource(
        &self,
        cx: &CallContext,
        server: &ServerName,
        params: Value,
        raw: Option<RawParams>,
    ) -> Result<Output, CallError> {
        permitted(cx, server, &[params.get("uri").and_then(Value::as_str).unwrap_or_default()])?;
        self.exchange(cx, server, Message::request("resources/read", params), raw).await
    }

    /// Renders the prompt `name`, which is put into the caller's `params`.
    pub async fn get_prompt(
        &self,
        cx: &CallContext,
        server: &ServerName,
        name: &str,
        mut params: Value,
        raw: Option<RawParams>,
    ) -> Result<Output, CallError> {
        permitted(cx, server, &[name])?;
        params["name"] = json!(name);
        self.exchange(cx, server, Message::request("prompts/get", params), raw).await
    }

    /// What a server says about its use, which connects it; nothing if it cannot be connected.
    pub async fn instructions(&self, cx: &CallContext, server: &ServerName) -> Option<String> {
        let instance = self.slot(server).and_then(|slot| slot.instance(&cx.root)).ok()?;
        instance.server.offer(cx, ListMethod::Tools).await.ok()?;
        instance.server.instructions()
    }

    /// A text that is one JSON object counts as the structured content, unless the tool says what that looks like: then it
    /// would have given it itself.
    async fn with_structure(&self, cx: &CallContext, server: &ServerName, tool: &str, mut output: Output) -> Output {
        if output.value.get("structuredContent").is_some_and(|value| !value.is_null()) {
            return output;
        }
        let Some(value) = structured(&output.value) else {
            return output;
        };
        let tools = self.list(cx, server, ListMethod::Tools.method()).await.unwrap_or_default();
        let declared = tools.iter().find(|spec| spec.get("name").and_then(Value::as_str) == Some(tool));
        if declared.is_none_or(|spec| spec.get("outputSchema").is_none()) {
            output.value["structuredContent"] = value;
            output.raw = None;
        }
        output
    }
}
