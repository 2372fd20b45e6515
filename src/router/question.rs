//! What does not go from a caller to a server's tool: questions and news of servers past their hooks, samples, and requests
//! of other methods.
//!
//! Invariant: the hooks of a server see what it asks and tells as they see what it is asked. Deliberately no policy: who
//! answers a question is the session's business.

use std::sync::Arc;

use greenroom_boundary::trace::EventKind;
use greenroom_boundary::{AgentId, RawJson, Scope, ServerName};
use greenroom_wire::has_doubled_keys;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::ask::RouterHooks;
use super::call::{rpc_error, unreadable};
use super::{CallContext, CallError, Output, RawParams, Router, readable};
use crate::agents::{SAMPLE, Session, TurnTree};
use crate::config::ServerKind;
use crate::context::OutputStream;
use crate::hooks::{Chain, Exchange, HookFailure, Message, MutationRecord, NoteMode, Side, write_back};
use crate::sessions::RootSession;

impl Router {
    /// Sends a request of any method to a server.
    pub async fn request(
        &self,
        cx: &CallContext,
        server: &ServerName,
        method: &str,
        params: Value,
        raw: Option<RawParams>,
    ) -> Result<Output, CallError> {
        self.exchange(cx, server, Message::request(method.to_owned(), params), raw).await
    }

    /// Takes a question of `server` past its hooks to whoever answers it, and the answer back.
    pub(crate) async fn question(
        &self,
        cx: &CallContext,
        server: &ServerName,
        message: Message,
        ask: impl AsyncFnOnce(Message) -> Result<Output, CallError>,
    ) -> Result<Output, CallError> {
        let chain = self.hooks.chain(server, &message.method, "", &cx.hooks);
        if chain.is_empty() {
            return ask(message).await;
        }
        let boundary = format!("mcp.{server}");
        let (runner, mut record) = (RouterHooks { router: self, cx }, MutationRecord::default());
        let exchange = self.hook_exchange(&runner, cx, &boundary);
        let message = exchange.run(&chain.request, Side::Request, message, &mut record).await.map_err(CallError::Hook)?;
        let mut response = message.clone();
        let answered = ask(message).await;
        let mut raw = None;
        match &answered {
            Ok(output) => {
                if output.value.is_null() {
                    return Err(unreadable(&boundary));
                }
                response.result = Some(output.value.clone());
                raw = output.raw.clone().filter(|raw| !has_doubled_keys(raw));
            }
            Err(error) => response.error = serde_json::to_value(error.to_rpc()).ok(),
        }
        let before = response.clone();
        let after = exchange.run(&chain.response, Side::Response, response, &mut record).await.map_err(CallError::Hook)?;
        if answered.is_err() && after == before {
            return answered;
        }
        match (after.result, after.error) {
            (Some(value), _) => {
                let raw = raw.zip(before.result.as_ref()).and_then(|(raw, was)| write_back(&raw, was, &value));
                Ok(noted(Output { value, raw }, &record))
            }
            (None, error) => {
                let was = answered.as_ref().err().map(CallError::to_rpc);
                Err(CallError::Rpc { server: boundary, error: rpc_error(was.as_ref(), error.as_ref()) })
            }
        }
    }

    /// Whether a hook looks at what a server tells.
    pub(crate) fn looks_at(&self, server: &ServerName, method: &str) -> bool {
        !self.news_chain(server, method).request.is_empty()
    }

    /// Takes a notification of `server` past its hooks.
    pub(crate) async fn news(
        &self,
        root: &Arc<RootSession>,
        server: &ServerName,
        message: Message,
    ) -> Result<Message, HookFailure> {
        let chain = self.news_chain(server, &message.method);
        let tree = TurnTree::new(OutputStream::new(self.drivers.tracer.clone(), None));
        let scope = Scope::new(server.as_str());
        let cx = CallContext::new(scope, root.clone(), Session::new(""), tree, root.ended.child_token());
        let boundary = format!("mcp.{server}");
        let runner = RouterHooks { router: self, cx: &cx };
        let mut record = MutationRecord::default();
        self.hook_exchange(&runner, &cx, &boundary).run(&chain.request, Side::Request, message, &mut record).await
    }

    fn news_chain(&self, server: &ServerName, method: &str) -> Chain {
        self.hooks.chain(server, method, "", &[])
    }

    fn hook_exchange<'a>(&'a self, runner: &'a RouterHooks<'_>, cx: &'a CallContext, boundary: &'a str) -> Exchange<'a> {
        Exchange {
            runner,
            tracer: &self.drivers.tracer,
            scope: &cx.scope,
            agent: cx.agent.as_ref(),
            span: self.drivers.tracer.span(),
            boundary,
            depth: cx.hook_depth(),
        }
    }

    /// Asks `agent` for the sample that `server` wants.
    pub(crate) async fn sample(
        &self,
        cx: &CallContext,
        server: &ServerName,
        agent: &AgentId,
        params: Value,
    ) -> Result<Output, CallError> {
        let mut cx = cx.clone();
        // The server is a step of the way: a loop through it is seen, and has its name in the path.
        cx.delegation.push(AgentId::new(server.as_str()));
        cx.agent = None;
        self.exchange(&cx, &ServerName::new(agent.as_str()), Message::request(SAMPLE, params), None).await
    }

    /// Sets the least level of log messages at the servers of a session that log and are connected.
    pub(crate) async fn set_log_level(&self, cx: &CallContext, params: &Value) {
        for (name, server) in self.connected(&cx.root) {
            if server.offers("logging") {
                // A server that does not set its level keeps sending; what the client does not want is dropped here.
                let _ = self.request(cx, &name, "logging/setLevel", params.clone(), None).await;
            }
        }
    }

    /// Tells all connected servers of a session something, past the hooks of each.
    pub(crate) async fn tell(&self, root: &Arc<RootSession>, method: &str, params: Option<&RawValue>) {
        for (name, server) in self.connected(root) {
            if !self.looks_at(&name, method) {
                server.tell(method, params);
                continue;
            }
            let value = params.and_then(|raw| readable(&raw.to_owned())).map(|(value, _)| value).unwrap_or_default();
            match self.news(root, &name, Message::request(method.to_owned(), value.clone())).await {
                Ok(message) if message.params == value => server.tell(method, params),
                Ok(message) => server.tell(method, changed(params, &value, &message.params).as_deref()),
                Err(failure) => {
                    let body = json!({"notification": method, "code": failure.code, "message": failure.message});
                    let (boundary, method) = (format!("mcp.{name}"), "notification_withheld".to_owned());
                    let event = EventKind::Warning { boundary, method, body };
                    self.drivers.tracer.emit(&Scope::new(name.as_str()), None, event);
                }
            }
        }
    }

    /// Whether a server of a session is connected and has a capability.
    pub(crate) fn offers(&self, root: &RootSession, server: &ServerName, capability: &str) -> bool {
        self.connected(root).into_iter().any(|(name, handle)| name == *server && handle.offers(capability))
    }

    fn connected(&self, root: &RootSession) -> Vec<(ServerName, Arc<dyn super::Server>)> {
        let external = self.slots.iter().filter(|(_, slot)| matches!(slot.config.kind, ServerKind::External(_)));
        let made = external.filter_map(|(name, slot)| Some((name.clone(), slot.existing(root.id)?.server.clone())));
        made.filter(|(_, server)| server.open_connections() > 0).collect()
    }
}

/// Parameters that hooks have changed, or that have a key twice.
pub(crate) fn changed(raw: Option<&RawValue>, was: &Value, now: &Value) -> Option<RawJson> {
    match raw.filter(|raw| !has_doubled_keys(raw)) {
        Some(raw) => write_back(raw, was, now),
        None => to_raw_value(now).ok(),
    }
}

/// The answer with what hooks changed in its `_meta`; its content is left alone, as it is no tool's.
fn noted(mut output: Output, record: &MutationRecord) -> Output {
    if !record.is_empty() {
        let was = output.raw.as_ref().map(|_| output.value.clone());
        record.write_into(&mut output.value, NoteMode::Meta);
        output.raw = output.raw.zip(was).and_then(|(raw, was)| write_back(&raw, &was, &output.value));
    }
    output
}
