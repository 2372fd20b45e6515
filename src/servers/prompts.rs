//! `greenroom.prompts`: the prompts of the config.
//!
//! Invariant: what a caller gives as an argument is data, whatever stands in it; only the template is code. Deliberately no
//! tools.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use greenroom_wire::RpcError;
use serde_json::{Map, Value, json};

use crate::config::{Prompt, Template};
use crate::context::template_text;
use crate::host::HostCore;
use crate::router::{CallContext, CallError, ListMethod, Output, Server, ServerRequest};

/// Its name at the router.
pub const PROMPTS_SERVER: &str = "greenroom.prompts";

/// The server.
pub struct PromptsServer {
    core: Weak<HostCore>,
}

impl PromptsServer {
    /// The server of a host.
    pub fn new(core: Weak<HostCore>) -> Self {
        Self { core }
    }
}

fn refused(message: String) -> CallError {
    CallError::Rpc { server: PROMPTS_SERVER.to_owned(), error: RpcError::invalid_params(message) }
}

fn shown(name: &str, prompt: &Prompt) -> Value {
    let arguments = prompt
        .input
        .iter()
        .map(|(name, argument)| json!({"name": name, "description": argument.description, "required": argument.required}));
    json!({"name": name, "description": prompt.description, "arguments": arguments.collect::<Vec<_>>()})
}

/// The declared arguments, as text.
fn given(name: &str, prompt: &Prompt, arguments: &Value) -> Result<Map<String, Value>, CallError> {
    let mut given = Map::new();
    for (argument, declared) in &prompt.input {
        match arguments.get(argument).and_then(Value::as_str) {
            Some(value) => given.insert(argument.clone(), json!(value)),
            None if declared.required => return Err(refused(format!("prompt {name} needs the argument {argument}"))),
            None => given.insert(argument.clone(), json!("")),
        };
    }
    Ok(given)
}

async fn rendered(
    core: &Arc<HostCore>,
    cx: &CallContext,
    (prompt, template): (&Prompt, &Template),
    given: &Map<String, Value>,
) -> Result<Value, CallError> {
    let text = template_text(core, cx, template, given).await?;
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    Ok(json!({"description": prompt.description, "messages": [message]}))
}

#[async_trait]
impl Server for PromptsServer {
    fn boundary(&self) -> String {
        format!("server.{PROMPTS_SERVER}")
    }

    async fn request(&self, cx: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        let core = self.core.upgrade();
        if let Some(list) = ListMethod::parse(&request.method) {
            let prompts = core.as_ref().filter(|_| list == ListMethod::Prompts).map(|core| &core.config.prompts);
            (request.sent)();
            return Ok(list.page(prompts.into_iter().flatten().map(|(name, prompt)| shown(name, prompt)).collect()));
        }
        let name = request.params["name"].as_str().unwrap_or_default().to_owned();
        let core = core.as_ref().filter(|_| request.method == "prompts/get");
        let found = core.and_then(|core| Some((core, core.config.prompts.get(&name)?, core.config.templates.get(&name)?)));
        let Some((core, prompt, template)) = found else {
            return Err(refused(format!("unknown prompt: {name}")));
        };
        let given = given(&name, prompt, &request.params["arguments"])?;
        (request.sent)();
        rendered(core, cx, (prompt, template), &given).await.map(Output::from)
    }
}
