//! The host's side of `ctx` during one hook call.
//!
//! Invariant: it acts with the rights and the cancellation of the call that runs the hook; when the call ends, its work is
//! cancelled. Deliberately no state of its own that outlives the call.

use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::isolate::{Callback, ContextOps, OpArgs, OpDecl, OpError, OpIndex};
use greenroom_boundary::trace::EventKind;
use greenroom_boundary::{BoxFuture, RawJson, clock};
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::delta::DeltaAction;
use super::output::{Author, SendError};
use super::table::op_at;
use super::verbs::{ComputerVerb, MemorySpace, Op, OutputVerb};
use super::watch::{ContextWatch, WatchedCallback};
use super::{Memory, agent_ops, facade_ops, llm_ops, mcp_ops, memory_ops, place_ops, search_ops, web_ops};
use crate::host::HostCore;
use crate::router::CallContext;

/// `ctx` for one call of a hook.
pub struct HookContext {
    core: Arc<HostCore>,
    cx: CallContext,
    watch: Option<Arc<dyn ContextWatch>>,
}

impl HookContext {
    /// `ctx` for a hook that runs in `cx`.
    pub fn new(core: Arc<HostCore>, cx: CallContext) -> Self {
        Self { core, cx, watch: None }
    }

    /// The same, somebody looking on.
    #[must_use]
    pub fn watched(self, watch: Arc<dyn ContextWatch>) -> Self {
        Self { watch: Some(watch), ..self }
    }

    fn run_inline(&self, op: Op, args: &Arguments) -> Result<Value, OpError> {
        match op {
            Op::Output(verb) => self.output(verb, args),
            Op::Memory(space, verb) => memory_ops::run(self.memory(space, args)?, self.core.drivers.clock.now(), verb, args),
            Op::Trace(verb) => self.cx.tree.trace.run(&self.cx.tree.output, self.author(), verb, args),
            Op::Workspace(verb) => place_ops::workspace(&self.core, &self.cx, verb, args),
            Op::Computer(verb) if verb != ComputerVerb::Exec => place_ops::computer(&self.core, &self.cx, verb, args),
            Op::Mcp(_) | Op::Agent(_) | Op::Facade(_) | Op::Llm(_) | Op::Search(_) | Op::Computer(_) | Op::Web(_) => {
                Err(OpError::new("ERR_MUST_WAIT", format!("{} must be awaited", args.what)))
            }
        }
    }

    fn author(&self) -> Author<'_> {
        Author { scope: &self.cx.scope, agent: self.cx.agent.as_ref() }
    }

    fn output(&self, verb: OutputVerb, args: &Arguments) -> Result<Value, OpError> {
        let stream = &self.cx.tree.output;
        let author = self.author();
        let id = || args.text(0, "messageId");
        let delta = |action, path: Option<&str>| Ok(stream.delta(author, id()?, args.any(1), action, path));
        let sent = match verb {
            OutputVerb::Send => stream.send(author, args.any(0), args.optional_text(1, "blockId")?),
            OutputVerb::SendStream => stream.open(author, args.any(0), args.optional_text(1, "blockId")?),
            OutputVerb::Append => delta(DeltaAction::Append, args.optional_text(2, "path")?)?,
            OutputVerb::Replace => delta(DeltaAction::Replace, None)?,
            OutputVerb::Merge => delta(DeltaAction::Merge, args.optional_text(2, "path")?)?,
            OutputVerb::Set => delta(DeltaAction::Set, Some(args.text(2, "path")?))?,
            OutputVerb::End => stream.end(author, id()?, args.optional_text(1, "finalContent")?),
            OutputVerb::EndBlock => {
                stream.end_block(author, args.text(0, "blockId")?);
                return Ok(Value::Null);
            }
            OutputVerb::MessageId => Ok(stream.message_id()),
            OutputVerb::BlockId => Ok(stream.block_id()),
            OutputVerb::ThreadId => Ok(stream.thread_id()),
        };
        sent.map(Value::String).map_err(|error| {
            let class = if matches!(error, SendError::NotAMessage { .. }) { "TypeError" } else { "Error" };
            OpError { code: error.code().to_owned(), message: format!("{}: {error}", args.what), class }
        })
    }

    fn memory(&self, space: MemorySpace, args: &Arguments) -> Result<&Memory, OpError> {
        let person = &self.cx.tree.person;
        let (memory, id) = match space {
            MemorySpace::Context => return Ok(&self.cx.tree.context_memory),
            MemorySpace::Chat => return Ok(&self.cx.session.chat_memory),
            MemorySpace::User => (&person.user_memory, "user_id"),
            MemorySpace::Team => (&person.team_memory, "team_id"),
        };
        memory
            .as_ref()
            .ok_or_else(|| OpError::new("ERR_NO_MEMORY", format!("{}: the request does not say `authorized.{id}`", args.what)))
    }
}

fn unknown(op: OpIndex) -> OpError {
    OpError::new("ERR_UNKNOWN_OP", format!("operation {} does not exist", op.0))
}

fn raw(value: &Value) -> Result<Option<RawJson>, OpError> {
    serde_json::value::to_raw_value(value).map(Some).map_err(|error| OpError::new("ERR_ENCODE", error.to_string()))
}

async fn run_awaiting(
    core: &Arc<HostCore>,
    cx: &CallContext,
    (op, decl): (Op, &OpDecl),
    args: &OpArgs,
    callback: Option<Arc<dyn Callback>>,
) -> Result<Value, OpError> {
    let args = Arguments::read(decl, args)?;
    // Boxed: scripts call scripts, and the largest of these would be on the stack once for each of them.
    match op {
        Op::Mcp(verb) => Box::pin(mcp_ops::run(core, cx, verb, &args)).await,
        Op::Agent(verb) => Box::pin(agent_ops::run(core, cx, verb, &args, callback)).await,
        Op::Facade(verb) => Box::pin(facade_ops::run(core, cx, verb, &args)).await,
        Op::Llm(verb) => Box::pin(llm_ops::run(core, cx, verb, &args, callback)).await,
        Op::Search(verb) => Box::pin(search_ops::run(core, cx, verb, &args)).await,
        Op::Computer(ComputerVerb::Exec) => Box::pin(place_ops::exec(core, cx, &args)).await,
        Op::Output(_) | Op::Memory(..) | Op::Trace(_) | Op::Workspace(_) | Op::Computer(_) | Op::Web(_) => {
            Err(OpError::new("ERR_NEVER_WAITS", format!("{} does not wait", args.what)))
        }
    }
}

impl ContextOps for HookContext {
    fn data(&self) -> RawJson {
        let agent = self.cx.agent.as_ref().map_or("", |agent| agent.as_str());
        let referer = if self.cx.delegation.len() > 1 { "agent" } else { "api" };
        let mut data = json!({
            "chat_id": self.cx.session.id,
            "assistant_id": agent,
            "locale": "", "theme": "", "route": "",
            "referer": referer,
            "accept": "standard",
            "client": {"type": "", "user_agent": "", "ip": ""},
            "metadata": self.cx.metadata,
            "authorized": self.cx.tree.person.authorized,
        });
        if let (Some(watch), Value::Object(data)) = (&self.watch, &mut data) {
            watch.data(data);
        }
        serde_json::value::to_raw_value(&data).unwrap_or_else(|_| serde_json::value::RawValue::NULL.to_owned())
    }

    fn absent(&self) -> Vec<&'static str> {
        let person = &self.cx.tree.person;
        let user = person.user_memory.is_none().then_some("memory.user");
        let team = person.team_memory.is_none().then_some("memory.team");
        let agent = place_ops::agent(&self.core, &self.cx);
        let computer = agent.is_none_or(|agent| !agent.computer).then_some("computer");
        let workspace = agent.is_none_or(|agent| agent.workspace.is_none()).then_some("workspace");
        user.into_iter().chain(team).chain(computer).chain(workspace).collect()
    }

    fn inline(&self, op: OpIndex, args: OpArgs) -> Result<Option<RawJson>, OpError> {
        let Some((op, decl)) = op_at(op) else { return Err(unknown(op)) };
        if let Op::Web(verb) = op {
            return web_ops::ask(&self.core, verb, &args);
        }
        let watched = self.watch.as_ref().map(|watch| (watch, watch.began(op, decl, &args)));
        let result = Arguments::read(decl, &args).and_then(|args| self.run_inline(op, &args));
        if let Some((watch, at)) = watched {
            watch.ended(at, result.as_ref());
        }
        raw(&result?)
    }

    fn start(
        &self,
        op: OpIndex,
        args: OpArgs,
        callback: Option<Arc<dyn Callback>>,
    ) -> BoxFuture<'static, Result<Option<RawJson>, OpError>> {
        if let Some((Op::Web(verb), _)) = op_at(op) {
            return web_ops::start(&self.core, &self.cx, verb, args);
        }
        let (core, cx, watch) = (self.core.clone(), self.cx.clone(), self.watch.clone());
        Box::pin(async move {
            let Some((op, decl)) = op_at(op) else { return Err(unknown(op)) };
            let watched = watch.map(|watch| (watch.began(op, decl, &args), watch));
            let callback = match (&watched, callback) {
                (Some((at, watch)), Some(inner)) => {
                    Some(Arc::new(WatchedCallback { inner, watch: watch.clone(), at: *at }) as Arc<dyn Callback>)
                }
                (_, callback) => callback,
            };
            let result = run_awaiting(&core, &cx, (op, decl), &args, callback).await;
            if let Some((at, watch)) = watched {
                watch.ended(at, result.as_ref());
            }
            raw(&result?)
        })
    }

    fn console(&self, level: &str, text: &str) {
        if let Some(watch) = &self.watch {
            watch.console(level, text);
        }
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
