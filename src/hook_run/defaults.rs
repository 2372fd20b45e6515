//! Peers for whom no mock was given: whom a hook asks, and what they answer.
//!
//! Invariant: an answer says that it is a mock's and repeats what was asked. Deliberately no guessing of a server's tools.

use std::collections::BTreeSet;

use async_trait::async_trait;
use greenroom_boundary::search::{SearchAnswer, SearchError, SearchHit, SearchQuery};
use greenroom_boundary::{CancellationToken, Search, ServerName};
use serde_json::{Value, json};

use super::inputs::Inputs;
use crate::config::HostConfig;
use crate::context::{AgentVerb, FacadeVerb, McpVerb, Op};
use crate::router::{CallContext, CallError, ListMethod, Output, Server, ServerRequest};

/// A peer whom a hook asks.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Peer {
    /// A server.
    Server(String),
    /// An agent.
    Agent(String),
}

impl Peer {
    /// As it is told to the user.
    pub(super) fn told(&self) -> String {
        match self {
            Self::Server(name) => format!("mcp.{name}"),
            Self::Agent(name) => format!("agents.{name}"),
        }
    }

    /// Whether the config has it.
    pub(super) fn is_in(&self, config: &HostConfig, inputs: &Inputs) -> bool {
        let (Self::Server(name) | Self::Agent(name)) = self;
        // The hook's own agent is nobody to ask.
        let is_agent = inputs.mocks.agents.contains_key(name);
        match self {
            Self::Server(name) => is_agent || config.servers.contains_key(&ServerName::new(name)),
            Self::Agent(_) => is_agent,
        }
    }
}

/// Whom an operation asks.
pub(super) fn peers(op: Op, args: &[Value]) -> BTreeSet<Peer> {
    let first = args.first();
    let text = || first.and_then(Value::as_str).map(str::to_owned);
    let each = |key: &str| -> Vec<String> {
        let requests = first.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        requests.iter().filter_map(|request| Some(request.get(key)?.as_str()?.to_owned())).collect()
    };
    match op {
        Op::Mcp(McpVerb::All | McpVerb::Any | McpVerb::Race) => each("mcp").into_iter().map(Peer::Server).collect(),
        Op::Mcp(_) | Op::Facade(FacadeVerb::ServerCall | FacadeVerb::Instructions) => {
            text().into_iter().map(Peer::Server).collect()
        }
        Op::Agent(AgentVerb::Call) => text().into_iter().map(Peer::Agent).collect(),
        Op::Agent(_) => each("agent").into_iter().map(Peer::Agent).collect(),
        Op::Facade(FacadeVerb::Call | FacadeVerb::Prompt) => {
            text().into_iter().filter_map(|target| of_target(op, &target)).collect()
        }
        _ => BTreeSet::new(),
    }
}

fn of_target(op: Op, target: &str) -> Option<Peer> {
    match target.split_once('/') {
        Some((server, _)) => Some(Peer::Server(server.to_owned())),
        // A prompt without a server is one of the config.
        None if op == Op::Facade(FacadeVerb::Prompt) => None,
        None => Some(Peer::Agent(target.strip_prefix("chat-with-").unwrap_or(target).to_owned())),
    }
}

/// Answers every request with what was asked.
pub(super) struct EchoServer(pub(super) String);

#[async_trait]
impl Server for EchoServer {
    fn boundary(&self) -> String {
        format!("server.{}", self.0)
    }

    async fn request(&self, _: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        (request.sent)();
        if let Some(list) = ListMethod::parse(&request.method) {
            return Ok(list.page(Vec::new()));
        }
        let params = &request.params;
        let server = &self.0;
        let answer = match &*request.method {
            "tools/call" => {
                let echo = json!({"mock": server, "tool": params["name"], "arguments": params["arguments"]});
                json!({"content": [{"type": "text", "text": echo.to_string()}], "structuredContent": echo})
            }
            "resources/read" => {
                let text = format!("mock resource of {server}");
                json!({"contents": [{"uri": params["uri"], "mimeType": "text/plain", "text": text}]})
            }
            "prompts/get" => {
                let text = format!("mock prompt {} of {server}", params["name"].as_str().unwrap_or_default());
                json!({"messages": [{"role": "user", "content": {"type": "text", "text": text}}]})
            }
            _ => json!({}),
        };
        Ok(answer.into())
    }
}

/// Finds one thing for every question.
#[derive(Debug)]
pub(super) struct EchoSearch;

#[async_trait]
impl Search for EchoSearch {
    async fn search(&self, query: SearchQuery, _: &CancellationToken) -> Result<SearchAnswer, SearchError> {
        let content = format!("mock result of {} for {:?}", query.kind.name(), query.query);
        let hit = SearchHit { title: Some("mock".to_owned()), content, ..SearchHit::default() };
        Ok(SearchAnswer { hits: vec![hit], total: 1 })
    }
}
