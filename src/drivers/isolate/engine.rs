//! An engine with the level `process` besides its own.
//!
//! Invariant: counters count a call over pipes like any other, and are back at their base when it ends. Within its process a call has
//! the level `isolate`: no level keeps less apart than the one before it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use greenroom_boundary::isolate::{
    CallRequest, CallValue, Callback, ContextOps, HandOff, IsolateCounters, IsolateDriver, IsolateError, Isolation, Limits,
    OpArgs, OpDecl, OpError, OpIndex, Script,
};
use greenroom_boundary::{BoxFuture, CancellationToken, RawJson, web};

use super::exchange::{Exchange, Gave};
use super::messages::{ToChild, WireCall, WireOp};
use super::pool::ChildPool;
use crate::drivers::sandbox::ChildKeeper;

/// An engine, and children that run it.
#[derive(Debug)]
pub struct ProcessIsolates {
    inner: Arc<dyn IsolateDriver>,
    table: &'static [OpDecl],
    pool: ChildPool,
    active: AtomicUsize,
    finished: AtomicU64,
}

impl ProcessIsolates {
    /// `program`, whose `main` calls [`super::serve_if_asked`], serves this engine with this table; a keeper, if there is one, sees to it
    /// that no child outlives the host.
    pub fn new(inner: Arc<dyn IsolateDriver>, table: &'static [OpDecl], program: &Path, keeper: ChildKeeper) -> Self {
        let setup = ToChild::Setup { engine: inner.name().to_owned(), table: table.iter().map(WireOp::from).collect() };
        let pool = ChildPool::new(program.to_string_lossy().into_owned(), keeper, setup);
        Self { inner, table, pool, active: AtomicUsize::new(0), finished: AtomicU64::new(0) }
    }

    async fn run(
        &self,
        script: &Arc<Script>,
        first: ToChild,
        limits: Limits,
        ops: Arc<dyn ContextOps>,
        hand_off: HandOff,
        cancel: &CancellationToken,
    ) -> Result<Gave, IsolateError> {
        self.active.fetch_add(1, Ordering::AcqRel);
        let _active = Active(self);
        let mut wall = ops.wall_deadline(limits.wall);
        let mut busy = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(IsolateError::Cancelled),
            busy = self.pool.take(script) => busy?,
            () = &mut wall => {
                return Err(IsolateError::WallLimit { limit_ms: u64::try_from(limits.wall.as_millis()).unwrap_or(u64::MAX) });
            }
        };
        let exchange = Exchange { child: &mut busy.child, table: self.table, ops, limits, hand_off };
        let result = exchange.drive(&first, wall, cancel).await;
        if result.as_ref().err().is_none_or(is_the_scripts_own) {
            self.pool.give_back(busy);
        } else {
            // Dropped, it is killed.
            drop(busy);
            self.pool.prepare();
        }
        result
    }
}

/// Whether the engine is as well after this error as before.
fn is_the_scripts_own(error: &IsolateError) -> bool {
    match error {
        IsolateError::Load(_)
        | IsolateError::Js(_)
        | IsolateError::ValueLimit { .. }
        | IsolateError::NeverSettles
        | IsolateError::UnhandledRejection(_)
        | IsolateError::NotJson { .. } => true,
        IsolateError::WallLimit { .. }
        | IsolateError::CpuLimit { .. }
        | IsolateError::HeapLimit { .. }
        | IsolateError::OutputLimit { .. }
        | IsolateError::PendingLimit { .. }
        | IsolateError::CallbackLimit { .. }
        | IsolateError::Died { .. }
        | IsolateError::Cancelled
        | IsolateError::Engine { .. } => false,
    }
}

/// Counts a call until it is dropped, however it ends.
struct Active<'a>(&'a ProcessIsolates);

impl Drop for Active<'_> {
    fn drop(&mut self) {
        self.0.finished.fetch_add(1, Ordering::AcqRel);
        self.0.active.fetch_sub(1, Ordering::AcqRel);
    }
}

#[async_trait]
impl IsolateDriver for ProcessIsolates {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    async fn functions(&self, script: &Arc<Script>, limits: &Limits) -> Result<Vec<String>, IsolateError> {
        if limits.isolation != Isolation::Process {
            return self.inner.functions(script, limits).await;
        }
        let limits = Limits { isolation: Isolation::Isolate, ..*limits };
        let first = ToChild::Functions { script: Script::clone(script), limits };
        let never = CancellationToken::new();
        // As in the host: loading waits for nothing but the processor, and the clock of a simulation stands still meanwhile.
        match self.run(script, first, limits, Arc::new(LoadOnly(self.table)), HandOff::Strict, &never).await? {
            Gave::Names(names) => Ok(names),
            Gave::Value(_) => Err(wrong_answer()),
        }
    }

    async fn call(
        &self,
        request: CallRequest,
        ctx: Arc<dyn ContextOps>,
        hand_off: HandOff,
        cancel: &CancellationToken,
    ) -> Result<CallValue, IsolateError> {
        if request.limits.isolation != Isolation::Process {
            return self.inner.call(request, ctx, hand_off, cancel).await;
        }
        let CallRequest { script, function, pass_ctx, args, limits } = request;
        if args.iter().any(|arg| arg.get().len() > limits.value_bytes) {
            return Err(IsolateError::ValueLimit { limit_bytes: limits.value_bytes });
        }
        let limits = Limits { isolation: Isolation::Isolate, ..limits };
        let call = WireCall {
            script: Script::clone(&script),
            function,
            pass_ctx,
            args,
            limits,
            data: ctx.data(),
            absent: ctx.absent().into_iter().map(str::to_owned).collect(),
        };
        match self.run(&script, ToChild::Call(Box::new(call)), limits, ctx, hand_off, cancel).await? {
            Gave::Value(value) => Ok(value),
            Gave::Names(_) => Err(wrong_answer()),
        }
    }

    fn counters(&self) -> IsolateCounters {
        let inner = self.inner.counters();
        let active = self.active.load(Ordering::Acquire);
        IsolateCounters {
            active_calls: inner.active_calls + active,
            live_handles: inner.live_handles + active,
            finished_calls: inner.finished_calls + self.finished.load(Ordering::Acquire),
        }
    }
}

fn wrong_answer() -> IsolateError {
    IsolateError::Engine { message: "the process gave the wrong answer".to_owned() }
}

/// The world of a script that is only loaded: no time, no randomness, nobody who reads its console.
#[derive(Debug)]
struct LoadOnly(&'static [OpDecl]);

impl ContextOps for LoadOnly {
    fn data(&self) -> RawJson {
        RawJson::default()
    }

    fn inline(&self, op: OpIndex, args: OpArgs) -> Result<Option<RawJson>, OpError> {
        let path = self.0.get(op.0).map_or("", |decl| decl.path);
        web::while_loading(path, &args)
            .unwrap_or_else(|| Err(OpError::new("ERR_LOADING", "a script that is only loaded reaches nothing")))
    }

    fn start(
        &self,
        op: OpIndex,
        args: OpArgs,
        _callback: Option<Arc<dyn Callback>>,
    ) -> BoxFuture<'static, Result<Option<RawJson>, OpError>> {
        if self.0.get(op.0).is_some_and(|decl| decl.path == web::SLEEP) {
            return Box::pin(std::future::pending());
        }
        Box::pin(std::future::ready(self.inline(op, args)))
    }

    fn console(&self, _level: &str, _text: &str) {}

    fn now_ms(&self) -> f64 {
        0.0
    }

    fn random(&self) -> f64 {
        0.5
    }

    fn wall_deadline(&self, _wall: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}
