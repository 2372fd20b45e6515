//! The host's side of `ctx` during one hook call.
//!
//! Invariant: it acts with the rights and the cancellation of the call that runs the hook; when the call ends, its work is
//! cancelled. Deliberately no state of its own that outlives the call.

use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::isolate::{Callback, ContextOps, OpArgs, OpError, OpIndex};
use greenroom_boundary::trace::EventKind;
use greenroom_boundary::{BoxFuture, RawJson, clock};
use serde_json::{Value, json};

use super::memory_ops;
use super::output::{Author, DeltaAction};
use super::table::{MemorySpace, Op, OutputVerb, op_at};
use super::work_ops;
use crate::host::HostCore;
use crate::router::CallContext;

/// `ctx` for one call of a hook.
pub struct HookContext {
    core: Arc<HostCore>,
    cx: CallContext,
}

impl HookContext {
    /// `ctx` for a hook that runs in `cx`.
    pub fn new(core: Arc<HostCore>, cx: CallContext) -> Self {
        Self { core, cx }
    }

    fn author(&self) -> Author<'_> {
        Author { scope: &self.cx.scope, agent: self.cx.agent.as_ref() }
    }

    fn output(&self, verb: OutputVerb, args: &[Value]) -> Result<Value, OpError> {
        let stream = &self.cx.tree.output;
        let author = self.author();
        let text = |index: usize, name: &str| match args.get(index) {
            Some(Value::String(text)) => Ok(text.as_str()),
            _ => Err(OpError::bad_argument(format!("{name} must be a string"))),
        };
        let optional = |index: usize| args.get(index).and_then(Value::as_str);
        let nothing = Value::Null;
        let content = args.get(1).unwrap_or(&nothing);
        let sent = match verb {
            OutputVerb::Send => stream.send(author, &args[0], optional(1)),
            OutputVerb::SendStream => stream.open(author, &args[0], optional(1)),
            OutputVerb::Append => stream.delta(author, text(0, "messageId")?, content, DeltaAction::Append, optional(2)),
            OutputVerb::Replace => stream.delta(author, text(0, "messageId")?, content, DeltaAction::Replace, None),
            OutputVerb::Merge => stream.delta(author, text(0, "messageId")?, content, DeltaAction::Merge, optional(2)),
            OutputVerb::Set => stream.delta(author, text(0, "messageId")?, content, DeltaAction::Set, Some(text(2, "path")?)),
            OutputVerb::End => stream.end(author, text(0, "messageId")?, optional(1)),
            OutputVerb::EndBlock => {
                stream.end_block(author, text(0, "blockId")?);
                return Ok(Value::Null);
            }
            OutputVerb::MessageId => Ok(stream.message_id()),
            OutputVerb::BlockId => Ok(stream.block_id()),
            OutputVerb::ThreadId => Ok(stream.thread_id()),
        };
        sent.map(Value::String).map_err(|error| OpError::new(error.code(), error.to_string()))
    }
}

/// The arguments of an operation as values.
fn values(args: &OpArgs) -> Result<Vec<Value>, OpError> {
    args.iter()
        .map(|raw| {
            serde_json::from_str(raw.get()).map_err(|error| OpError::bad_argument(format!("an argument is no JSON: {error}")))
        })
        .collect()
}

fn raw(value: &Value) -> Result<Option<RawJson>, OpError> {
    serde_json::value::to_raw_value(value).map(Some).map_err(|error| OpError::new("ERR_ENCODE", error.to_string()))
}

impl ContextOps for HookContext {
    fn data(&self) -> RawJson {
        let agent = self.cx.agent.as_ref().map_or("", |agent| agent.as_str());
        let referer = if self.cx.delegation.len() > 1 { "agent" } else { "api" };
        let data = json!({
            "chat_id": self.cx.session.id,
            "assistant_id": agent,
            "locale": "", "theme": "", "route": "",
            "referer": referer,
            "accept": "standard",
            "client": {"type": "", "user_agent": "", "ip": ""},
            "metadata": self.cx.metadata,
            "authorized": {},
        });
        serde_json::value::to_raw_value(&data).unwrap_or_else(|_| serde_json::value::RawValue::NULL.to_owned())
    }

    fn inline(&self, op: OpIndex, args: OpArgs) -> Result<Option<RawJson>, OpError> {
        let args = values(&args)?;
        let value = match op_at(op) {
            Some((Op::Output(verb), _)) => self.output(verb, &args)?,
            Some((Op::Memory(space, verb), decl)) => {
                let memory = match space {
                    MemorySpace::Context => &self.cx.tree.context_memory,
                    MemorySpace::Chat => &self.cx.session.chat_memory,
                };
                memory_ops::run(memory, verb, decl.path, &args)?
            }
            _ => return Err(OpError::new("ERR_UNKNOWN_OP", format!("operation {} does not exist or must be awaited", op.0))),
        };
        raw(&value)
    }

    fn start(
        &self,
        op: OpIndex,
        args: OpArgs,
        callback: Option<Arc<dyn Callback>>,
    ) -> BoxFuture<'static, Result<Option<RawJson>, OpError>> {
        let (core, cx) = (self.core.clone(), self.cx.clone());
        Box::pin(async move {
            let args = values(&args)?;
            let value = match op_at(op) {
                Some((Op::ListTools, _)) => work_ops::list_tools(&core, &cx, &args).await?,
                Some((Op::CallTool, _)) => work_ops::call_tool(&core, &cx, &args).await?,
                Some((Op::CallAgent, _)) => work_ops::call_agent(&core, &cx, &args).await?,
                Some((Op::StreamLlm, _)) => work_ops::stream_llm(&core, &cx, &args, callback).await?,
                _ => return Err(OpError::new("ERR_UNKNOWN_OP", format!("operation {} does not exist or does not wait", op.0))),
            };
            raw(&value)
        })
    }

    fn console(&self, level: &str, text: &str) {
        let event = EventKind::Console { level: level.to_owned(), text: text.to_owned() };
        self.core.drivers.tracer.emit(&self.cx.scope, self.cx.agent.as_ref(), event);
    }

    fn now_ms(&self) -> f64 {
        self.core.drivers.clock.wall().as_millis() as f64
    }

    fn random(&self) -> f64 {
        self.core.drivers.entropy.unit_f64()
    }

    fn wall_deadline(&self, wall: Duration) -> BoxFuture<'static, ()> {
        clock::sleep(self.core.drivers.clock.as_ref(), wall)
    }
}
