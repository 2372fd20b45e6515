//! `greenroom.prompts`: the prompts of the config.
//!
//! Invariant: placeholders of a template are its own arguments and nothing else. Deliberately no tools.

use std::sync::Weak;

use async_trait::async_trait;
use greenroom_wire::RpcError;
use serde_json::{Value, json};

use crate::config::{Prompt, Variables};
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

fn rendered(name: &str, prompt: &Prompt, arguments: &Value) -> Result<Value, CallError> {
    let mut variables = Variables::default();
    for (argument, declared) in &prompt.input {
        match arguments.get(argument).and_then(Value::as_str) {
            Some(value) => variables.set(argument.clone(), value),
            None if declared.required => return Err(refused(format!("prompt {name} needs the argument {argument}"))),
            None => variables.set(argument.clone(), ""),
        }
    }
    let text = variables.expand(&prompt.template).map_err(|error| refused(error.to_string()))?;
    let message = json!({"role": "user", "content": {"type": "text", "text": text}});
    Ok(json!({"description": prompt.description, "messages": [message]}))
}

#[async_trait]
impl Server for PromptsServer {
    fn boundary(&self) -> String {
        format!("server.{PROMPTS_SERVER}")
    }

    async fn request(&self, _cx: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        let core = self.core.upgrade();
        if let Some(list) = ListMethod::parse(&request.method) {
            let prompts = core.as_ref().filter(|_| list == ListMethod::Prompts).map(|core| &core.config.prompts);
            (request.sent)();
            return Ok(list.page(prompts.into_iter().flatten().map(|(name, prompt)| shown(name, prompt)).collect()));
        }
        let name = request.params["name"].as_str().unwrap_or_default().to_owned();
        let prompt = core.as_ref().filter(|_| request.method == "prompts/get").and_then(|core| core.config.prompts.get(&name));
        let Some(prompt) = prompt else {
            return Err(refused(format!("unknown prompt: {name}")));
        };
        (request.sent)();
        rendered(&name, prompt, &request.params["arguments"]).map(Output::from)
    }
}
