//! `ctx.mcp`: servers and their tools, resources and prompts.
//!
//! Invariant: every call goes through the router like anyone's, with the same hooks and limits. A failed tool is a failure,
//! never a value (Yao ignored `isError`). Lists are whole: the host has read every page. Deliberately no samples.

use std::sync::Arc;

use futures::future::join_all;
use greenroom_boundary::ServerName;
use greenroom_boundary::isolate::OpError;
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::batch::{self, Combinator, Ended, Request};
use super::verbs::McpVerb;
use crate::host::HostCore;
use crate::router::{CallContext, CallError};

pub(super) async fn run(core: &Arc<HostCore>, cx: &CallContext, verb: McpVerb, args: &Arguments) -> Result<Value, OpError> {
    let router = &core.router;
    match verb {
        McpVerb::ListTools => {
            let server = listed(args)?;
            Ok(json!({"tools": router.list_tools(cx, &server).await.map_err(|error| failed(&error))?}))
        }
        McpVerb::ListResources => {
            let server = listed(args)?;
            Ok(json!({"resources": router.list(cx, &server, "resources/list").await.map_err(|error| failed(&error))?}))
        }
        McpVerb::ListPrompts => {
            let server = listed(args)?;
            Ok(json!({"prompts": router.list(cx, &server, "prompts/list").await.map_err(|error| failed(&error))?}))
        }
        McpVerb::ReadResource => {
            let (server, uri) = (server(args)?, args.text(1, "uri")?);
            Ok(router.read_resource(cx, &server, json!({"uri": uri}), None).await.map_err(|error| failed(&error))?.value)
        }
        McpVerb::GetPrompt => {
            let (server, name) = (server(args)?, args.text(1, "name")?);
            let arguments = Value::Object(args.object(2, "arguments")?);
            Ok(router
                .get_prompt(cx, &server, name, json!({"arguments": arguments}), None)
                .await
                .map_err(|error| failed(&error))?
                .value)
        }
        McpVerb::CallTool => {
            let (server, tool) = (server(args)?, args.text(1, "tool")?);
            call(core, cx, &server, tool, args.object(2, "arguments")?).await
        }
        McpVerb::CallTools => {
            let server = server(args)?;
            let mut values = Vec::new();
            for (tool, arguments) in calls(args)? {
                values.push(call(core, cx, &server, &tool, arguments).await?);
            }
            Ok(Value::Array(values))
        }
        McpVerb::CallToolsParallel => {
            let server = server(args)?;
            let calls = calls(args)?;
            let started = calls.into_iter().map(|(tool, arguments)| {
                let server = &server;
                async move { call(core, cx, server, &tool, arguments).await }
            });
            join_all(started).await.into_iter().collect::<Result<_, _>>().map(Value::Array)
        }
        McpVerb::All => batch::run(Combinator::All, requests(core, cx, args)?).await,
        McpVerb::Any => batch::run(Combinator::Any, requests(core, cx, args)?).await,
        McpVerb::Race => batch::run(Combinator::Race, requests(core, cx, args)?).await,
    }
}

fn server(args: &Arguments) -> Result<ServerName, OpError> {
    args.text(0, "server").map(ServerName::new)
}

/// The server of a list operation, whose cursor is there for Yao's signature only.
fn listed(args: &Arguments) -> Result<ServerName, OpError> {
    if args.optional_text(1, "cursor")?.is_some() {
        let message = format!("{}: a list is always whole and gives no cursor; leave it out", args.what);
        return Err(OpError::new("ERR_CURSOR", message));
    }
    server(args)
}

pub(super) fn failed(error: &CallError) -> OpError {
    OpError::new(error.code(), error.to_string())
}

/// A tool and its arguments.
type ToolCall = (String, Map<String, Value>);

/// The `{ name, arguments }` of several calls.
fn calls(args: &Arguments) -> Result<Vec<ToolCall>, OpError> {
    let read = |(index, value): (usize, &Value)| {
        let Value::Object(call) = value else { return Err(args.wrong(&format!("calls[{index}]"), "an object", value)) };
        let at = format!("calls[{index}].");
        let tool = args.key_text(call, &at, "name")?.to_owned();
        let arguments = args.object_of(call.get("arguments").unwrap_or(&Value::Null), &format!("{at}arguments"))?;
        Ok((tool, arguments))
    };
    args.list(1, "calls")?.iter().enumerate().map(read).collect()
}

fn requests(core: &Arc<HostCore>, cx: &CallContext, args: &Arguments) -> Result<Vec<Request>, OpError> {
    let mut requests = Vec::new();
    for (index, request) in batch_requests(args)?.into_iter().enumerate() {
        let at = format!("requests[{index}].");
        let server = args.key_text(&request, &at, "mcp")?.to_owned();
        let tool = args.key_text(&request, &at, "tool")?.to_owned();
        let arguments = args.object_of(request.get("arguments").unwrap_or(&Value::Null), &format!("{at}arguments"))?;
        let mut head = Map::new();
        head.insert("mcp".to_owned(), json!(server));
        head.insert("tool".to_owned(), json!(tool));
        let cancel = cx.cancel.child_token();
        let (core, mut cx) = (core.clone(), cx.clone());
        cx.cancel = cancel.clone();
        let work = Box::pin(async move {
            match call(&core, &cx, &ServerName::new(server), &tool, arguments).await {
                Ok(value) => Ended::Well(std::iter::once(("result".to_owned(), value)).collect()),
                Err(error) => Ended::Failed { code: error.code, message: error.message },
            }
        });
        requests.push(Request { head, cancel, work });
    }
    Ok(requests)
}

/// The requests of any family, within the limit.
pub(super) fn batch_requests(args: &Arguments) -> Result<Vec<Map<String, Value>>, OpError> {
    let requests = args.requests(0)?;
    if requests.len() > batch::MAX_REQUESTS {
        let message = format!("{}: {} requests, the most are {}", args.what, requests.len(), batch::MAX_REQUESTS);
        return Err(OpError::new("ERR_BATCH_LIMIT", message));
    }
    Ok(requests)
}

async fn call(
    core: &Arc<HostCore>,
    cx: &CallContext,
    server: &ServerName,
    tool: &str,
    arguments: Map<String, Value>,
) -> Result<Value, OpError> {
    let output = core.router.call(cx, server, tool, Value::Object(arguments)).await.map_err(|error| failed(&error))?;
    if output.value.get("isError").and_then(Value::as_bool) == Some(true) {
        let text =
            output.value.pointer("/content/0/text").and_then(Value::as_str).unwrap_or("the tool failed without a message");
        return Err(OpError::new("ERR_TOOL", format!("{server}/{tool}: {text}")));
    }
    Ok(parsed(&output.value))
}

/// A tool's result as a script sees it: structured content, else its content items, unwrapped if there is one.
fn parsed(result: &Value) -> Value {
    if let Some(structured) = result.get("structuredContent").filter(|value| !value.is_null()) {
        return structured.clone();
    }
    let items = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut values: Vec<Value> = items.iter().map(parsed_item).collect();
    match values.len() {
        0 => Value::Null,
        1 => values.remove(0),
        _ => Value::Array(values),
    }
}

fn parsed_item(item: &Value) -> Value {
    match item.get("type").and_then(Value::as_str) {
        Some("text") => {
            let text = item.get("text").and_then(Value::as_str).unwrap_or_default();
            serde_json::from_str(text).unwrap_or_else(|_| json!(text))
        }
        Some("resource") => item.get("resource").cloned().unwrap_or_default(),
        _ => item.clone(),
    }
}
