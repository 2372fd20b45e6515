//! The engine as the host sees it.
//!
//! Invariant: counters return to their base when calls end. It adds nothing to the boundary's contract but its name.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use greenroom_boundary::coverage::ScriptCoverage;
use greenroom_boundary::isolate::{
    CallRequest, CallValue, Callback, ContextOps, HandOff, IsolateCounters, IsolateDriver, IsolateError, Isolation, Limits,
    OpArgs, OpDecl, OpError, OpIndex, Script,
};
use greenroom_boundary::{BoxFuture, CancellationToken, RawJson, web};

use crate::call::Task;
use crate::control::{CallControl, KillReason};
use crate::counters::Counters;
use crate::coverage::Counted;
use crate::inspect::InspectorHub;
use crate::platform::V8Initialised;
use crate::pool::Pool;
use crate::protocol::{JobValue, host_channel};
use crate::pump::Pump;
use crate::snapshot;
use crate::spaces::Spaces;
use crate::values;
use crate::watchdog::Watchdog;
use crate::worker::{Job, Order, WorkerContext, WorkerStatus};

/// How an engine is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V8Options {
    /// Most isolate threads. A script that waits for the host keeps its thread, and so does each hook it is nested in.
    pub most_threads: usize,
    /// Contexts kept ready on each thread; as many again are kept for the script called last, with its top level run already.
    pub spare_contexts: usize,
    /// Whether to count which code of scripts runs, see [`V8Engine::coverage`]. It costs time, and no context is made ready.
    pub coverage: bool,
}

impl Default for V8Options {
    fn default() -> Self {
        Self { most_threads: 64, spare_contexts: 2, coverage: false }
    }
}

/// What an engine's threads hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct V8Census {
    /// Isolate threads.
    pub threads: usize,
    /// Threads beside these whose script did not react to a kill, and that still run.
    pub given_up_threads: usize,
    /// Contexts that V8 has not freed.
    pub native_contexts: usize,
    /// Contexts that are kept on purpose: spares and those of frozen scripts.
    pub kept_contexts: usize,
    /// No thread has anything to tidy up.
    pub are_ready: bool,
    /// No thread holds anything that ended calls may have left behind.
    pub are_collected: bool,
}

/// The V8 engine.
pub struct V8Engine {
    table: &'static [OpDecl],
    pool: Arc<Pool>,
    watchdog: Watchdog,
    counters: Arc<Counters>,
    counted: Option<Arc<Counted>>,
}

impl fmt::Debug for V8Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "V8Engine({:?})", self.counters())
    }
}

impl V8Engine {
    /// Starts an engine for this table of operations: makes the startup snapshot (once per table and process) and the watchdog.
    /// Isolate threads are made when they are needed.
    ///
    /// # Errors
    ///
    /// [`IsolateError::Engine`] when a thread or the snapshot cannot be made.
    pub fn start(init: V8Initialised, table: &'static [OpDecl], options: V8Options) -> Result<Self, IsolateError> {
        Self::start_with(init, table, options, None)
    }

    /// The same; debuggers attach to its threads at the hub, of which the first is made at once.
    ///
    /// # Errors
    ///
    /// As [`V8Engine::start`].
    pub fn start_inspectable(
        init: V8Initialised,
        table: &'static [OpDecl],
        options: V8Options,
        hub: Arc<InspectorHub>,
    ) -> Result<Self, IsolateError> {
        let engine = Self::start_with(init, table, options, Some(hub))?;
        engine.pool.begin().map_err(|message| IsolateError::Engine { message })?;
        Ok(engine)
    }

    fn start_with(
        init: V8Initialised,
        table: &'static [OpDecl],
        options: V8Options,
        inspector: Option<Arc<InspectorHub>>,
    ) -> Result<Self, IsolateError> {
        let engine = |message: String| IsolateError::Engine { message };
        let snapshot = snapshot::of_table(init, table).map_err(engine)?;
        let watchdog = Watchdog::start().map_err(|error| engine(format!("no thread for the watchdog: {error}")))?;
        let spaces = Arc::new(Spaces::of(table));
        let counted: Option<Arc<Counted>> = options.coverage.then(Arc::default);
        let spares = if options.coverage { 0 } else { options.spare_contexts };
        let context = WorkerContext { table, spaces, snapshot, spares, counted: counted.clone(), inspector };
        Ok(Self { table, pool: Pool::new(context, options.most_threads), watchdog, counters: Arc::default(), counted })
    }

    /// What ran of scripts in the calls that have ended, if the engine counts that ([`V8Options::coverage`]).
    pub fn coverage(&self) -> ScriptCoverage {
        let counted = self.counted.as_ref().map(|counted| counted.lock().unwrap_or_else(PoisonError::into_inner).clone());
        counted.unwrap_or_default()
    }

    /// What its threads hold in V8, as they last told it: when they have had nothing to do for a while.
    pub fn census(&self) -> V8Census {
        let statuses = self.pool.statuses();
        let sum =
            |of: fn(&WorkerStatus) -> &AtomicUsize| statuses.iter().map(|status| of(status).load(Ordering::Relaxed)).sum();
        V8Census {
            threads: statuses.len(),
            given_up_threads: self.pool.given_up_threads(),
            native_contexts: sum(|status| &status.native_contexts),
            kept_contexts: sum(|status| &status.kept_contexts),
            are_ready: statuses.iter().all(|status| status.is_ready.load(Ordering::Acquire)),
            are_collected: statuses.iter().all(|status| status.is_collected.load(Ordering::Relaxed)),
        }
    }

    async fn run(
        &self,
        script: Arc<Script>,
        task: Task,
        limits: Limits,
        ops: Arc<dyn ContextOps>,
        hand_off: HandOff,
        cancel: &CancellationToken,
    ) -> Result<JobValue, IsolateError> {
        let _active = self.counters.call_begins();
        let mut wall = ops.wall_deadline(limits.wall);
        let worker = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(IsolateError::Cancelled),
            worker = self.pool.acquire(limits.heap_bytes) => worker.map_err(|message| IsolateError::Engine { message })?,
            () = &mut wall => return Err(KillReason::Wall.error(&limits)),
        };
        let (host, inbox) = host_channel();
        let (mailbox, their_mailbox) = mpsc::channel();
        let control = Arc::new(CallControl::new(host.clone(), Arc::clone(&self.counters)));
        self.watchdog.watch(Arc::clone(&control));
        let id = worker.id;
        let jobs = worker.jobs.clone();
        if let Some(port) = &worker.port {
            port.set_mailbox(Some(mailbox.clone()));
        }
        let job = Job {
            worker,
            script,
            task,
            limits,
            ops: Arc::clone(&ops),
            control: Arc::clone(&control),
            host,
            mailbox: their_mailbox,
        };
        if jobs.send(Order::Job(Box::new(job))).is_err() {
            return Err(IsolateError::Engine { message: "the isolate's thread is gone".to_owned() });
        }
        let pool = Arc::clone(&self.pool);
        let pump = Pump { inbox, mailbox, control, ops, limits, hand_off, pool, worker: id, ended: false };
        pump.drive(wall, cancel).await
    }
}

impl Drop for V8Engine {
    fn drop(&mut self) {
        self.pool.close();
    }
}

#[async_trait]
impl IsolateDriver for V8Engine {
    fn name(&self) -> &'static str {
        "v8"
    }

    async fn functions(&self, script: &Arc<Script>, limits: &Limits) -> Result<Vec<String>, IsolateError> {
        // Loading waits for nothing but the processor; the caller's thread waits with it, so that a simulation's clock stands still.
        let never = CancellationToken::new();
        let ops = Arc::new(LoadOnly(self.table));
        let listed = self.run(Arc::clone(script), Task::List, *limits, ops, HandOff::Strict, &never).await;
        match listed.map_err(|error| script.at_source(error))? {
            JobValue::Functions(names) => Ok(names),
            JobValue::Called(_) => Err(IsolateError::Engine { message: "the wrong answer came".to_owned() }),
        }
    }

    async fn call(
        &self,
        request: CallRequest,
        ctx: Arc<dyn ContextOps>,
        hand_off: HandOff,
        cancel: &CancellationToken,
    ) -> Result<CallValue, IsolateError> {
        if request.limits.isolation == Isolation::Process {
            return Err(IsolateError::no_process_level(self.name()));
        }
        let CallRequest { script, function, pass_ctx, args, limits } = request;
        let task = Task::Call { function, pass_ctx, args };
        let called = self.run(Arc::clone(&script), task, limits, ctx, hand_off, cancel).await;
        match called.map_err(|error| script.at_source(error))? {
            JobValue::Called(value) => Ok(value),
            JobValue::Functions(_) => Err(IsolateError::Engine { message: "the wrong answer came".to_owned() }),
        }
    }

    fn counters(&self) -> IsolateCounters {
        self.counters.read()
    }
}

/// The world of a script that is only loaded: no time, no randomness, nobody who reads its console.
#[derive(Debug)]
struct LoadOnly(&'static [OpDecl]);

impl ContextOps for LoadOnly {
    fn data(&self) -> RawJson {
        values::null_text()
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
        let answer = self.inline(op, args);
        Box::pin(std::future::ready(answer))
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
