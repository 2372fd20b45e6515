//! `ctx.call`, `ctx.prompt`, `ctx.servers`: nanobot's short form of calls.
//!
//! Invariant: every call goes through the router with the caller's context, so hooks, overrides, permissions, depth and
//! cancellation hold. What comes back is data. Deliberately no throwing for `isError`: the caller gets it to look at.

use std::sync::Arc;

use greenroom_boundary::isolate::OpError;
use greenroom_boundary::{AgentId, ServerName};
use serde_json::{Map, Value, json};

use super::arguments::Arguments;
use super::expressions::prompt_text;
use super::mcp_ops::failed;
use super::verbs::FacadeVerb;
use crate::agents::tool_name;
use crate::host::HostCore;
use crate::router::{CallContext, CallError, did_you_mean, nearest};
use crate::servers::PROMPTS_SERVER;

pub(super) async fn run(core: &Arc<HostCore>, cx: &CallContext, verb: FacadeVerb, args: &Arguments) -> Result<Value, OpError> {
    match verb {
        FacadeVerb::Call => {
            let (server, tool) = target(core, args)?;
            let arguments = arguments(core, args, &server)?;
            call(core, cx, &server, &tool, arguments).await
        }
        FacadeVerb::Prompt => {
            let text = args.text(0, "target")?;
            let (server, name) = text.split_once('/').unwrap_or((PROMPTS_SERVER, text));
            let arguments = Value::Object(args.object(1, "arguments")?);
            let prompt =
                core.router.get_prompt(cx, &ServerName::new(server), name, json!({"arguments": arguments}), None).await;
            let prompt = prompt.map_err(|error| failed(&error))?;
            prompt_text(&prompt.value).map(Value::String).map_err(|reason| {
                let message = format!("{}: the prompt {text} cannot be used as text: {reason}", args.what);
                OpError::new("ERR_PROMPT", message)
            })
        }
        FacadeVerb::ServerCall => {
            let (server, tool) = (args.text(0, "server").map(ServerName::new)?, args.text(1, "tool")?);
            call(core, cx, &server, tool, args.object(2, "arguments")?).await
        }
        FacadeVerb::Instructions => {
            let server = args.text(0, "server").map(ServerName::new)?;
            if !core.config.servers.contains_key(&server) && !core.is_agent(&server) {
                let hint = did_you_mean(nearest(server.as_str(), core.config.servers.keys().map(ServerName::as_str)));
                let name = server.to_string();
                return Err(failed(&CallError::UnknownServer { name, hint }));
            }
            Ok(json!(core.router.instructions(cx, &server).await.unwrap_or_default()))
        }
    }
}

/// `server/tool`, an agent's name or `chat-with-NAME`.
fn target(core: &HostCore, args: &Arguments) -> Result<(ServerName, String), OpError> {
    let text = args.text(0, "target")?;
    if let Some((server, tool)) = text.split_once('/') {
        return Ok((ServerName::new(server), tool.to_owned()));
    }
    let agents = &core.config.agents;
    let named = [Some(text), text.strip_prefix("chat-with-")].into_iter().flatten().map(AgentId::new);
    let Some(agent) = named.into_iter().find(|agent| agents.contains_key(agent)) else {
        let hint = did_you_mean(nearest(text, agents.keys().map(AgentId::as_str)));
        let message = format!("{}: {text:?} is no target: write `server/tool`, or an agent's name{hint}", args.what);
        return Err(OpError::new("ERR_TARGET", message));
    };
    Ok((ServerName::new(agent.as_str()), tool_name(&agent)))
}

/// An object; a string is an agent's prompt.
fn arguments(core: &HostCore, args: &Arguments, server: &ServerName) -> Result<Map<String, Value>, OpError> {
    match args.any(1) {
        Value::String(prompt) if core.is_agent(server) => Ok(std::iter::once(("prompt".to_owned(), json!(prompt))).collect()),
        _ => args.object(1, "arguments"),
    }
}

async fn call(
    core: &Arc<HostCore>,
    cx: &CallContext,
    server: &ServerName,
    tool: &str,
    arguments: Map<String, Value>,
) -> Result<Value, OpError> {
    let result = core.router.call(cx, server, tool, Value::Object(arguments)).await.map_err(|error| failed(&error))?.value;
    let content = result.get("content").cloned().unwrap_or_else(|| json!([]));
    let is_error = result.get("isError").and_then(Value::as_bool) == Some(true);
    let mut outcome = json!({"content": content, "isError": is_error});
    let structured = result.get("structuredContent").filter(|value| !value.is_null());
    if let Some(value) = structured {
        outcome["structuredContent"] = value.clone();
    }
    let output = match structured {
        Some(value) => Some(value.clone()),
        None => text_output(core, cx, (server, tool), &result).await,
    };
    if let Some(output) = output {
        outcome["output"] = output;
    }
    Ok(outcome)
}

/// The only text as JSON if it is an object and the tool promises no other form; else the first text.
async fn text_output(core: &HostCore, cx: &CallContext, (server, tool): (&ServerName, &str), result: &Value) -> Option<Value> {
    let items = result.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let first = items.iter().find_map(|item| item.get("text")?.as_str())?;
    if items.len() == 1
        && let Ok(value @ Value::Object(_)) = serde_json::from_str(first)
        && !declares_output(core, cx, server, tool).await
    {
        return Some(value);
    }
    Some(json!(first))
}

/// Whether the tool has an output schema; a list that cannot be had says nothing.
async fn declares_output(core: &HostCore, cx: &CallContext, server: &ServerName, tool: &str) -> bool {
    let tools = core.router.list_tools(cx, server).await.unwrap_or_default();
    tools.iter().any(|spec| spec.get("name").and_then(Value::as_str) == Some(tool) && spec.get("outputSchema").is_some())
}
