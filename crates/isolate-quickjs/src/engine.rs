//! The driver.
//!
//! Invariant: a call is counted from its start to the end of its future, whatever way it ends. Deliberately no cache of
//! scripts: reading one costs less than a context.

use std::fmt;
use std::rc::Rc;
use std::sync::{Arc, mpsc};

use async_trait::async_trait;
use greenroom_boundary::CancellationToken;
use greenroom_boundary::isolate::{
    CallRequest, CallValue, ContextOps, HandOff, IsolateCounters, IsolateDriver, IsolateError, Isolation, Limits, OpArgs,
    OpDecl, OpError, OpIndex, PassCtx, Script,
};
use greenroom_boundary::{BoxFuture, RawJson, web};

use crate::link::{Counters, HostSender, Link, OpResult, Shared, ToThread};
use crate::natives::table_text;
use crate::pump::{FromThread, Pump};
use crate::session::{Wanted, run};
use crate::worker::Workers;

/// The QuickJS engine.
pub struct QuickJs {
    table: Arc<str>,
    ops: Arc<[OpDecl]>,
    workers: Arc<Workers>,
    counters: Arc<Counters>,
}

impl QuickJs {
    /// An engine whose scripts see these operations on `ctx`.
    pub fn new(table: &[OpDecl]) -> Self {
        Self { table: Arc::from(table_text(table)), ops: Arc::from(table), workers: Arc::default(), counters: Arc::default() }
    }

    fn start(
        &self,
        script: Arc<Script>,
        wanted: Wanted,
        limits: Limits,
        ctx: Arc<dyn ContextOps>,
        hand_off: HandOff,
        cancel: &CancellationToken,
    ) -> Result<Pump, IsolateError> {
        let has_handle = matches!(wanted, Wanted::Call { pass_ctx: PassCtx::First | PassCtx::Last, .. });
        let shared = Shared::begin(limits, &self.counters, has_handle);
        let (to_thread, from_host) = mpsc::channel::<ToThread>();
        let (to_host, from_thread) = match hand_off {
            HandOff::Strict => {
                let (sender, receiver) = mpsc::channel();
                (HostSender::Strict(sender), FromThread::Strict(receiver))
            }
            HandOff::Concurrent => {
                let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
                (HostSender::Concurrent(sender), FromThread::Concurrent(receiver))
            }
        };
        // From here on the pump counts the call as ended when it is dropped.
        let pump = Pump::new(Arc::clone(&shared), Arc::clone(&ctx), to_thread, from_thread, cancel);
        let table = Arc::clone(&self.table);
        let job = move || {
            let link = Rc::new(Link::new(shared, ctx, to_host, from_host));
            let result = run(&link, &script, &table, &wanted);
            match Rc::try_unwrap(link) {
                Ok(link) => link.finish(result),
                Err(held) => held.tell(result),
            }
        };
        self.workers.run(Box::new(job)).map_err(|error| IsolateError::Engine {
            message: format!("no thread for the script: {error}; allow the process more threads"),
        })?;
        Ok(pump)
    }
}

#[async_trait]
impl IsolateDriver for QuickJs {
    fn name(&self) -> &'static str {
        "quickjs"
    }

    async fn functions(&self, script: &Arc<Script>, limits: &Limits) -> Result<Vec<String>, IsolateError> {
        // Strictly: a load waits for nothing but the script's top level, which its limit on computing bounds.
        let (own, never) = (Arc::clone(script), CancellationToken::new());
        let pump = self.start(own, Wanted::Names, *limits, Arc::new(NoHost(Arc::clone(&self.ops))), HandOff::Strict, &never)?;
        match pump.await.map_err(|error| script.at_source(error))? {
            CallValue::Json(names) => serde_json::from_str(names.get())
                .map_err(|error| IsolateError::Engine { message: format!("names of functions: {error}") }),
            CallValue::Undefined | CallValue::NoSuchFunction => Ok(Vec::new()),
        }
    }

    async fn call(
        &self,
        request: CallRequest,
        ctx: Arc<dyn ContextOps>,
        hand_off: HandOff,
        cancel: &CancellationToken,
    ) -> Result<CallValue, IsolateError> {
        if cancel.is_cancelled() {
            return Err(IsolateError::Cancelled);
        }
        if request.limits.isolation == Isolation::Process {
            return Err(IsolateError::no_process_level(self.name()));
        }
        let CallRequest { script, function, pass_ctx, args, limits } = request;
        if args.iter().any(|arg| arg.get().len() > limits.value_bytes) {
            return Err(IsolateError::ValueLimit { limit_bytes: limits.value_bytes });
        }
        let pump = self.start(Arc::clone(&script), Wanted::Call { function, pass_ctx, args }, limits, ctx, hand_off, cancel)?;
        pump.await.map_err(|error| script.at_source(error))
    }

    fn counters(&self) -> IsolateCounters {
        self.counters.read()
    }
}

impl fmt::Debug for QuickJs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuickJs").field("counters", &self.counters.read()).finish_non_exhaustive()
    }
}

/// The host of a script that is only loaded: time stands at the epoch, chance at zero.
struct NoHost(Arc<[OpDecl]>);

impl ContextOps for NoHost {
    fn data(&self) -> RawJson {
        serde_json::value::to_raw_value(&serde_json::Map::new()).unwrap_or_default()
    }

    fn inline(&self, op: OpIndex, args: OpArgs) -> OpResult {
        let path = self.0.get(op.0).map_or("", |decl| decl.path);
        let nothing = || Err(OpError::new("ERR_LOADING", "a script that is only loaded reaches nothing"));
        web::while_loading(path, &args).unwrap_or_else(nothing)
    }

    fn start(
        &self,
        op: OpIndex,
        args: OpArgs,
        _: Option<Arc<dyn greenroom_boundary::isolate::Callback>>,
    ) -> BoxFuture<'static, OpResult> {
        if self.0.get(op.0).is_some_and(|decl| decl.path == web::SLEEP) {
            return Box::pin(std::future::pending());
        }
        let answer = self.inline(op, args);
        Box::pin(std::future::ready(answer))
    }

    fn console(&self, _: &str, _: &str) {}

    fn now_ms(&self) -> f64 {
        0.0
    }

    fn random(&self) -> f64 {
        0.0
    }

    fn wall_deadline(&self, _: std::time::Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}
