//! The host's own hooks: around every request of an outside client, and at the beginning of its session.
//!
//! Invariant: what no hook changed leaves with the bytes it came with; a result whose request or response was changed says
//! so. Deliberately no hooks on notifications of clients: they carry nothing but marks of progress and lists to read again.

use greenroom_boundary::trace::HookPhase;
use greenroom_boundary::{RawJson, SpanId, Tracer};
use greenroom_wire::{RpcError, has_doubled_keys};
use serde_json::{Value, json};

use super::handler::{Front, encode};
use crate::hooks::{Chain, Exchange, Fields, HookFailure, HookRunner, Message, MutationRecord, NoteMode, Side, write_back};
use crate::router::{self, CallContext, CallError, RawParams};

/// Where these hooks look, as traces call it.
const BOUNDARY: &str = "host";

/// Answers a request of an outside client, with the hooks that look at it; the audit stream has it.
pub(super) async fn answer(front: Front) -> Result<RawJson, RpcError> {
    let core = front.core.clone();
    let message = Message::request(front.call.method.clone(), front.call.params.clone());
    let chain = core.router.host_chain(&message);
    let begins = front.call.method == "initialize" && !core.config.host_hooks.session.is_empty();
    if chain.is_empty() && !begins && !core.router.audit().is_on() {
        return front.dispatch().await;
    }
    let cx = front.context();
    let of = (message.method.as_ref(), message.name());
    let entry = core.router.audit().open(&cx, BOUNDARY, of, &message.params);
    let mut record = MutationRecord::at(BOUNDARY);
    record.keep_statuses(entry.is_some());
    let runner = core.router.hook_runner(&cx);
    let looks = Looks { cx: &cx, runner: &runner, span: core.drivers.tracer.span() };
    let result = looks.around(front, &chain, begins, message, &mut record).await;
    if let Some(entry) = entry {
        match &result {
            Ok(raw) => entry.close(Ok(&readable(raw).unwrap_or_default()), &record),
            Err(error) => entry.close(Err((code_of(error), error.message.clone())), &record),
        }
    }
    result
}

/// The stable code in an error's data.
fn code_of(error: &RpcError) -> String {
    let data: Option<Value> = error.data.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok());
    let code = data.as_ref().and_then(|data| data.get("code")?.as_str()).map(str::to_owned);
    code.unwrap_or_else(|| error.code.to_string())
}

struct Looks<'a> {
    cx: &'a CallContext,
    runner: &'a dyn HookRunner,
    span: SpanId,
}

impl Looks<'_> {
    fn exchange<'t>(&'t self, tracer: &'t Tracer) -> Exchange<'t> {
        Exchange {
            runner: self.runner,
            tracer,
            scope: &self.cx.scope,
            agent: None,
            span: self.span,
            boundary: BOUNDARY,
            depth: self.cx.hook_depth(),
        }
    }

    async fn around(
        &self,
        mut front: Front,
        chain: &Chain,
        begins: bool,
        message: Message,
        record: &mut MutationRecord,
    ) -> Result<RawJson, RpcError> {
        let core = front.core.clone();
        let exchange = self.exchange(&core.drivers.tracer);
        let request = exchange.run(&chain.request, Side::Request, message, record).await;
        let request = request.map_err(|failure| front.rpc(&CallError::Hook(failure)))?;
        record.note_sent(&request.params);
        if !chain.request.is_empty() {
            front.call.raw = front.call.raw.take().map(RawParams::unambiguous);
        }
        if request.params != front.call.params {
            front.call.params.clone_from(&request.params);
        }
        let session = if begins { Some(self.session(&front, record).await.map_err(|error| front.rpc(&error))?) } else { None };
        let mut result = front.dispatch().await;
        if let (Some(meta), Ok(raw)) = (session, &result) {
            result = shown(raw, &meta);
        }
        self.response(&front, chain, request, result, record).await
    }

    /// The hooks at the beginning of a session: what they leave of its `_meta` is the session's.
    async fn session(&self, front: &Front, record: &mut MutationRecord) -> Result<Value, CallError> {
        let core = &front.core;
        let meta = front.call.params.get("_meta").filter(|meta| meta.is_object()).cloned().unwrap_or_else(|| json!({}));
        let value = json!({"url": front.call.root.address(), "sessionId": front.call.session, "_meta": meta});
        let check = |value: &Value| if value["_meta"].is_object() { Ok(()) } else { Err("`_meta` is no object".to_owned()) };
        let session = Fields { noun: "session", method: "initialize", value, open: &["_meta"], check };
        // What these hooks say is about the session, not about the handshake's messages.
        let mut own = MutationRecord::default();
        own.keep_statuses(core.router.audit().is_on());
        let exchange = self.exchange(&core.drivers.tracer);
        let session = exchange.run_phase(&core.config.host_hooks.session, HookPhase::Session, session, &mut own).await;
        record.take_statuses(own);
        let meta = session.map_err(CallError::Hook)?.value["_meta"].take();
        core.session(&front.call.session).set_meta(meta.clone());
        Ok(meta)
    }

    /// The hooks on the answer.
    async fn response(
        &self,
        front: &Front,
        chain: &Chain,
        request: Message,
        result: Result<RawJson, RpcError>,
        record: &mut MutationRecord,
    ) -> Result<RawJson, RpcError> {
        let note = front.core.config.policy.note;
        let mut response = request;
        match &result {
            Err(error) if chain.response.is_empty() || error.code == RpcError::CANCELLED => return result,
            Ok(_) if chain.response.is_empty() && (record.is_empty() || note == NoteMode::Off) => return result,
            Ok(raw) => response.result = Some(readable(raw)?),
            Err(error) => response.error = serde_json::to_value(error).ok(),
        }
        let before = response.clone();
        let after = self
            .exchange(&front.core.drivers.tracer)
            .run(&chain.response, Side::Response, response, record)
            .await
            .map_err(|failure: HookFailure| front.rpc(&CallError::Hook(failure)))?;
        if after == before && (record.is_empty() || note == NoteMode::Off || result.is_err()) {
            return match (result, after.result) {
                (Ok(raw), Some(value)) if has_doubled_keys(&raw) => encode(&value),
                (result, _) => result,
            };
        }
        if after != before {
            record.note_original(before.result.clone().or_else(|| before.error.clone()));
        }
        match (after.result, after.error) {
            (Some(mut value), _) => {
                keep_told(before.result.as_ref(), &mut value);
                record.write_into(&mut value, note);
                let raw = result.as_ref().ok().filter(|raw| !has_doubled_keys(raw)).zip(before.result.as_ref());
                raw.and_then(|(raw, was)| write_back(raw, was, &value)).map_or_else(|| encode(&value), Ok)
            }
            (None, error) => Err(router::rpc_error(result.as_ref().err(), error.as_ref())),
        }
    }
}

/// What the calls inside have told of their own hooks is not for the host's hooks to take away.
fn keep_told(before: Option<&Value>, after: &mut Value) {
    let key = crate::hooks::MUTATIONS_KEY;
    let Some(told) = before.and_then(|result| result.get("_meta")?.get(key)) else { return };
    let Value::Object(after) = after else { return };
    let meta = after.entry("_meta").or_insert_with(|| json!({}));
    if !meta.is_object() {
        *meta = json!({});
    }
    meta[key] = told.clone();
}

/// Bytes that no hook can look at do not go past the hooks.
fn readable(raw: &RawJson) -> Result<Value, RpcError> {
    router::readable(raw).map(|(value, _)| value).ok_or_else(|| {
        RpcError::internal("the result cannot be read by the hooks of the host, so it is held back")
            .with_data(&json!({"code": "CALL_UNREADABLE"}))
    })
}

/// The handshake's result with the session's `_meta` where nanobot shows it.
fn shown(raw: &RawJson, meta: &Value) -> Result<RawJson, RpcError> {
    let mut value = readable(raw)?;
    if meta.as_object().is_some_and(|meta| !meta.is_empty()) {
        value["capabilities"]["experimental"]["ai.nanobot"]["session"] = meta.clone();
    }
    encode(&value)
}
