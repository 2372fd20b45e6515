//! The dispatcher itself.
//!
//! Invariant: resolve, hook, send, hook, record, in this order, for every server. An exchange that left has exactly one
//! request event and one response event. Deliberately no retries: callers that may repeat decide that.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use greenroom_boundary::trace::{EventKind, Outcome};
use greenroom_boundary::{Drivers, ServerName, SpanId};
use greenroom_wire::has_doubled_keys;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::ask::RouterHooks;
use super::handshake::{HANDSHAKE, told_params};
use super::permitted::{permitted, subject};
use super::slots::{Factory, Instance, Slot};
use super::{
    Answered, CallContext, CallError, CallLimits, OpenExchange, Output, Params, RawParams, Sent, ServerRequest, ServerState,
    nearest, tools,
};
use crate::config::{HostConfig, HostPolicy, ServerConfig};
use crate::hooks::audit::AuditLog;
use crate::hooks::{Chain, Exchange, HookRunner, HookTable, Message, MutationRecord, NoteMode, Side, write_back};
use crate::sessions::RootId;

/// Most hooks that may be running inside each other.
const MAX_HOOK_DEPTH: usize = 8;
/// How far progress may extend a call, as a multiple of its deadline, if the policy does not say.
const CAP_FACTOR: u32 = 4;

/// The one dispatcher of a host.
pub struct Router {
    pub(super) slots: BTreeMap<ServerName, Arc<Slot>>,
    /// The same, for looking one up at each call.
    by_name: HashMap<ServerName, Arc<Slot>>,
    pub(super) hooks: HookTable,
    policy: HostPolicy,
    audit: AuditLog,
    pub(super) drivers: Drivers,
}

impl Router {
    /// A router for `config`. External servers that are the same in the router `before` keep their connections.
    pub(crate) fn new(
        config: &HostConfig,
        factories: Vec<(ServerName, ServerConfig, Factory)>,
        drivers: Drivers,
        before: Option<&Self>,
    ) -> Self {
        // A connection speaks the revision that it was made with.
        let before = before.filter(|before| before.policy.spec == config.policy.spec);
        let hooks = HookTable::of(config);
        let slot = |(name, config, factory): (ServerName, ServerConfig, Factory)| {
            let was = before.and_then(|before| before.slots.get(&name)).map(Arc::as_ref);
            let own = hooks.of_server(&name);
            (name, Arc::new(Slot::new(config, own, factory, was)))
        };
        let slots: BTreeMap<_, _> = factories.into_iter().map(slot).collect();
        let by_name = slots.iter().map(|(name, slot)| (name.clone(), slot.clone())).collect();
        let audit = AuditLog::new(config.audit.as_ref(), &drivers);
        Self { slots, by_name, hooks, policy: config.policy.clone(), audit, drivers }
    }

    pub(super) fn drivers(&self) -> &Drivers {
        &self.drivers
    }

    pub(super) fn policy(&self) -> &HostPolicy {
        &self.policy
    }

    /// Whether some hook may look at messages of this method, whoever calls.
    pub(super) fn is_hooked(&self, server: &ServerName, method: &str) -> bool {
        !self.hooks.chain(server, method, "", &[]).is_empty()
    }

    pub(super) fn slot(&self, name: &ServerName) -> Result<&Slot, CallError> {
        self.by_name.get(name).map(Arc::as_ref).ok_or_else(|| {
            let hint = nearest(name.as_str(), self.slots.keys().map(ServerName::as_str));
            CallError::UnknownServer { name: name.to_string(), hint: did_you_mean(hint) }
        })
    }

    pub(super) async fn exchange(
        &self,
        cx: &CallContext,
        server: &ServerName,
        message: Message,
        raw: Option<RawParams>,
    ) -> Result<Output, CallError> {
        let slot = self.slot(server)?;
        let instance = Self::entered(cx, slot)?;
        self.pass(cx, server, (slot, &instance), message, raw).await
    }

    /// What stands for a server that is about to be asked.
    pub(super) fn entered(cx: &CallContext, slot: &Slot) -> Result<Arc<Instance>, CallError> {
        if cx.hooks.len() > MAX_HOOK_DEPTH {
            return Err(CallError::HookDepth { depth: cx.hooks.len(), path: cx.hooks.join(" > ") });
        }
        slot.instance(&cx.root)
    }

    /// Carries a message to a server, past its hooks.
    pub(super) async fn pass(
        &self,
        cx: &CallContext,
        server: &ServerName,
        to: (&Slot, &Instance),
        message: Message,
        raw: Option<RawParams>,
    ) -> Result<Output, CallError> {
        let span = self.drivers.tracer.span();
        if to.0.hooks.is_empty() && !self.audit.is_on() {
            return self.send(cx, to, span, message, raw).await;
        }
        let chain = to.0.hooks.chain(&message.method, message.name(), &cx.hooks);
        // A handshake is nobody's call; what hooks say to it is written down all the same.
        let is_audited = !(chain.is_empty() && message.method == HANDSHAKE);
        let of = (message.method.as_ref(), message.name());
        let entry = if is_audited { self.audit.open(cx, &to.1.boundary, of, &message.params) } else { None };
        let mut record = MutationRecord::default();
        record.keep_statuses(entry.is_some());
        let result = if chain.is_empty() {
            self.send(cx, to, span, message, raw).await
        } else {
            self.hooked(cx, (server, to.0, to.1), span, &chain, (message, raw), &mut record).await
        };
        if let Some(entry) = entry {
            let failed = |error: &CallError| (error.code().to_owned(), error.to_string());
            entry.close(result.as_ref().map(|output| &output.value).map_err(failed), &record);
        }
        result
    }

    async fn hooked(
        &self,
        cx: &CallContext,
        (name, slot, instance): (&ServerName, &Slot, &Instance),
        span: SpanId,
        chain: &Chain,
        (message, raw_params): (Message, Option<RawParams>),
        record: &mut MutationRecord,
    ) -> Result<Output, CallError> {
        let raw_params = raw_params.map(RawParams::unambiguous);
        let boundary = instance.boundary.as_str();
        let runner = RouterHooks { router: self, cx };
        let exchange = Exchange {
            runner: &runner,
            tracer: &self.drivers.tracer,
            scope: &cx.scope,
            agent: cx.agent.as_ref(),
            span,
            boundary,
            depth: cx.hook_depth(),
        };
        let asked = subject(&message).to_owned();
        let message = exchange.run(&chain.request, Side::Request, message, record).await.map_err(CallError::Hook)?;
        record.note_sent(&message.params);
        reachable(&slot.config, boundary, &message)?;
        if subject(&message) != asked {
            // A hook may send the caller elsewhere, but not where the caller may not go.
            let other = subject(&message);
            permitted(cx, name, &[&tools::shown_name(&slot.config, other), other])?;
        }
        if chain.response.is_empty() {
            let answer = self.send(cx, (slot, instance), span, message, raw_params).await;
            return answer.and_then(|output| recorded(output, record, self.policy.note, boundary));
        }
        let mut response = message.clone();
        let answer = self.send(cx, (slot, instance), span, message, raw_params).await;
        let mut failure = None;
        let mut raw = None;
        match answer {
            // Bytes that no hook can look at do not go past the hooks.
            Ok(output) if output.value.is_null() => return Err(unreadable(boundary)),
            Ok(output) => {
                response.result = Some(output.value);
                raw = output.raw.filter(|raw| !has_doubled_keys(raw));
            }
            // A transport error has no answer that a hook could look at (nanobot).
            Err(error @ (CallError::Unavailable(_) | CallError::Backoff { .. } | CallError::Cancelled { .. })) => {
                return Err(error);
            }
            Err(error) => {
                response.error = serde_json::to_value(error.to_rpc()).ok();
                failure = Some(error);
            }
        }
        let before = response.clone();
        let after = exchange.run(&chain.response, Side::Response, response, record).await.map_err(CallError::Hook)?;
        if after == before {
            return match (failure, after.result) {
                (Some(error), _) => Err(error),
                (None, value) => recorded(Output { value: value.unwrap_or_default(), raw }, record, self.policy.note, boundary),
            };
        }
        let result = match (after.result, after.error) {
            (Some(value), _) => {
                let raw = raw.zip(before.result.as_ref()).and_then(|(raw, was)| write_back(&raw, was, &value));
                recorded(Output { value, raw }, record, self.policy.note, boundary)
            }
            (None, error) => {
                let was = failure.as_ref().map(CallError::to_rpc);
                Err(CallError::Rpc { server: boundary.to_owned(), error: rpc_error(was.as_ref(), error.as_ref()) })
            }
        };
        record.note_original(before.result.or(before.error));
        result
    }

    async fn send(
        &self,
        cx: &CallContext,
        (slot, instance): (&Slot, &Instance),
        span: SpanId,
        message: Message,
        raw: Option<RawParams>,
    ) -> Result<Output, CallError> {
        if self.drivers.tracer.enabled() {
            return Box::pin(self.send_traced(cx, (slot, instance), span, message, raw)).await;
        }
        self.deliver(cx, (slot, instance), span, (message.method, message.params.into(), raw)).await
    }

    /// Whether nobody looks at what is said to a server: no hook, no audit, no trace, and the server is in this process.
    pub(super) fn is_private(&self, slot: &Slot) -> bool {
        slot.hooks.is_empty() && !slot.is_external() && !self.audit.is_on() && !self.drivers.tracer.enabled()
    }

    /// Asks a server, and tells nobody.
    pub(super) fn deliver(
        &self,
        cx: &CallContext,
        (slot, instance): (&Slot, &Instance),
        span: SpanId,
        (method, params, raw): (Cow<'static, str>, Params, Option<RawParams>),
    ) -> impl Future<Output = Result<Output, CallError>> + Send {
        let (inner, limits) = (cx.inside(span), self.limits(cx, slot));
        let request = ServerRequest { method, params, raw, limits, sent: Box::new(|| {}), answered: None };
        let server = instance.server.clone();
        async move { server.request(&inner, request).await }
    }

    async fn send_traced(
        &self,
        cx: &CallContext,
        (slot, instance): (&Slot, &Instance),
        span: SpanId,
        message: Message,
        raw: Option<RawParams>,
    ) -> Result<Output, CallError> {
        let (inner, limits) = (cx.inside(span), self.limits(cx, slot));
        let boundary = instance.boundary.clone();
        let left = Arc::new(AtomicBool::new(false));
        let sent = self.sent(cx, &boundary, span, &message, left.clone());
        let open = Arc::new(OpenExchange {
            tracer: self.drivers.tracer.clone(),
            scope: cx.scope.clone(),
            agent: cx.agent.clone(),
            span,
            boundary,
            method: message.method.to_string(),
            left,
        });
        let arrived = open.clone();
        let answered: Answered = Box::new(move |result| close(&arrived, result));
        let (method, params) = (message.method, message.params.into());
        let request = ServerRequest { method, params, raw, limits, sent, answered: Some(answered) };
        let result = instance.server.request(&inner, request).await;
        close(&open, result.as_ref().map(|output| &output.value));
        result
    }

    pub(super) fn limits(&self, cx: &CallContext, slot: &Slot) -> CallLimits {
        if let Some(timeout) = cx.timeout {
            return CallLimits { timeout, cap: timeout };
        }
        let timeout = slot.config.timeout.unwrap_or(self.policy.tool_timeout);
        let cap = self.policy.tool_timeout_cap.unwrap_or(timeout.saturating_mul(CAP_FACTOR));
        CallLimits { timeout: timeout.min(cap), cap }
    }

    fn sent(&self, cx: &CallContext, boundary: &str, span: SpanId, message: &Message, left: Arc<AtomicBool>) -> Sent {
        let event = EventKind::Request {
            span,
            parent: cx.parent,
            boundary: boundary.to_owned(),
            method: message.method.to_string(),
            tool_call: cx.tool_call.clone(),
            body: json!({"params": told_params(&message.method, &message.params)}),
        };
        let (tracer, scope, agent) = (self.drivers.tracer.clone(), cx.scope.clone(), cx.agent.clone());
        Box::new(move || {
            left.store(true, Ordering::SeqCst);
            tracer.emit(&scope, agent.as_ref(), event);
        })
    }

    /// Where exchanges are written down.
    pub(crate) fn audit(&self) -> &AuditLog {
        &self.audit
    }

    /// The hooks of the host on a message of an outside client.
    pub(crate) fn host_chain(&self, message: &Message) -> Chain {
        self.hooks.host_chain(&message.method, message.name())
    }

    /// Asks hooks on behalf of a caller.
    pub(crate) fn hook_runner<'a>(&'a self, cx: &'a CallContext) -> impl HookRunner + 'a {
        RouterHooks { router: self, cx }
    }

    /// How the servers of the config are doing for one session tree, in order of their names.
    pub fn health(&self, root: RootId) -> Vec<(ServerName, ServerState)> {
        self.slots.iter().map(|(name, slot)| (name.clone(), slot.health(root))).collect()
    }

    /// Connections open to external servers.
    pub fn open_connections(&self) -> usize {
        self.slots.values().flat_map(|slot| slot.instances()).map(|instance| instance.server.open_connections()).sum()
    }

    /// Instances of external servers: one for each session tree that uses one.
    pub fn external_instances(&self) -> usize {
        let external = self.slots.values().filter(|slot| slot.is_external());
        external.map(|slot| slot.instances().len()).sum()
    }

    /// Closes what was made for one session tree.
    pub async fn close_root(&self, root: RootId) {
        for slot in self.slots.values() {
            if let Some(instance) = slot.remove(root) {
                instance.server.close().await;
            }
        }
    }

    /// Closes the servers that the router `after` does not share.
    pub(crate) async fn close_replaced(&self, after: &Self) {
        for (name, slot) in &self.slots {
            if after.slots.get(name).is_some_and(|kept| kept.shares_with(slot)) {
                continue;
            }
            for instance in slot.instances() {
                instance.server.close().await;
            }
        }
        self.audit.close().await;
    }

    /// Closes every server.
    pub async fn close(&self) {
        for instance in self.slots.values().flat_map(|slot| slot.instances()) {
            instance.server.close().await;
        }
        self.audit.close().await;
    }
}

/// Traces how an exchange ended, unless that was done when its answer arrived.
fn close(open: &OpenExchange, result: Result<&Value, &CallError>) {
    match result {
        Ok(value) => open.end(Outcome::Ok, || json!({"result": value}), None),
        Err(error) => open.end(outcome_of(error), || json!({"error": error.to_rpc()}), None),
    }
}

/// A hook may call another tool, but none that the overrides hide.
fn reachable(config: &ServerConfig, boundary: &str, message: &Message) -> Result<(), CallError> {
    let tool = message.params.get("name").and_then(Value::as_str).unwrap_or_default();
    if message.method != "tools/call" || config.tool_overrides.is_empty() || config.tool_overrides.contains_key(tool) {
        return Ok(());
    }
    let hint = "; a hook asked for it, and the overrides of this server hide it".to_owned();
    Err(CallError::UnknownTool { server: boundary.to_owned(), tool: tool.to_owned(), hint })
}

pub(super) fn unreadable(boundary: &str) -> CallError {
    let message = format!("{boundary} answered with a result that hooks cannot read, so it is held back");
    CallError::Inner { code: "CALL_UNREADABLE".to_owned(), message }
}

/// The result with what hooks did to it and its request. One that cannot be read cannot be told so: it is held back.
fn recorded(mut output: Output, record: &MutationRecord, note: NoteMode, boundary: &str) -> Result<Output, CallError> {
    if !record.is_empty() && note != NoteMode::Off {
        if output.value.is_null() {
            return Err(unreadable(boundary));
        }
        let was = output.raw.as_ref().map(|_| output.value.clone());
        record.write_into(&mut output.value, note);
        output.raw = output.raw.zip(was).and_then(|(raw, was)| write_back(&raw, &was, &output.value));
    }
    Ok(output)
}

/// The error that a hook made, with the bytes of what it left alone of the one that there `was`.
pub(crate) fn rpc_error(was: Option<&greenroom_wire::RpcError>, error: Option<&Value>) -> greenroom_wire::RpcError {
    let written = was.zip(error).and_then(|(was, now)| {
        let raw = to_raw_value(was).ok().filter(|raw| !has_doubled_keys(raw))?;
        let (was, _) = super::readable(&raw)?;
        serde_json::from_str(write_back(&raw, &was, now)?.get()).ok()
    });
    written
        .or_else(|| serde_json::from_value(error?.clone()).ok())
        .unwrap_or_else(|| greenroom_wire::RpcError::internal("a hook returned an error without code and message"))
}

pub(crate) fn outcome_of(error: &CallError) -> Outcome {
    match error {
        CallError::Timeout { .. } => Outcome::Timeout,
        CallError::Cancelled { .. } => Outcome::Cancelled,
        CallError::Unavailable(_) | CallError::Backoff { .. } => Outcome::Lost,
        _ => Outcome::Error,
    }
}

pub(crate) fn did_you_mean(nearest: Option<&str>) -> String {
    nearest.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default()
}
