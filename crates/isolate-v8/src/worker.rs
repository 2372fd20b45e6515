//! The thread of an isolate: takes jobs, runs them, cleans up, and does the slow work while nobody waits.
//!
//! Invariant: before the host hears of the end of a call, its handle is dead, its host objects are dropped and the thread is back in the
//! pool; a condemned isolate is replaced before the next job.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use greenroom_boundary::isolate::{ContextOps, IsolateError, Limits, OpDecl, Script};

use crate::call::{self, Stop, Task};
use crate::control::{CallControl, KillReason};
use crate::host_isolate::HostIsolate;
use crate::pool::{Pool, WorkerHandle};
use crate::protocol::{HostSender, JobValue, ToHost, ToIsolate};
use crate::realm::Realm;
use crate::snapshot::Snapshot;
use crate::state::ActiveCall;

/// How long a thread stays free before it spends time on a collection.
const QUIET: Duration = Duration::from_millis(2);

/// One job for an isolate's thread.
pub(crate) struct Job {
    pub(crate) worker: WorkerHandle,
    pub(crate) script: Arc<Script>,
    pub(crate) task: Task,
    pub(crate) limits: Limits,
    pub(crate) ops: Arc<dyn ContextOps>,
    pub(crate) control: Arc<CallControl>,
    pub(crate) host: HostSender,
    pub(crate) mailbox: Receiver<ToIsolate>,
}

/// What every thread of an engine needs.
#[derive(Debug)]
pub(crate) struct WorkerContext {
    pub(crate) table: &'static [OpDecl],
    pub(crate) snapshot: Snapshot,
    pub(crate) spares: usize,
}

/// Why a thread stopped serving with an isolate.
#[expect(clippy::large_enum_variant, reason = "one per isolate, and moved on at once")]
enum Served {
    /// The thread ends: the engine is gone, or the host has given the thread up.
    Over,
    /// A new isolate is needed, for this job if there is one.
    Replace(Option<Job>),
}

/// The thread's main function.
pub(crate) fn main(context: &WorkerContext, pool: &Pool, jobs: &Receiver<Job>) {
    let mut next = None;
    while let Some(job) = next.take().or_else(|| jobs.recv().ok()) {
        let heap_bytes = job.limits.heap_bytes;
        let host = HostIsolate::new(context.table, context.snapshot, heap_bytes, context.spares);
        match serve(pool, host, job, jobs) {
            Served::Over => return,
            Served::Replace(job) => next = job,
        }
    }
}

/// Serves jobs with one isolate.
fn serve(pool: &Pool, mut host: HostIsolate, mut job: Job, jobs: &Receiver<Job>) -> Served {
    let heap_bytes = job.limits.heap_bytes;
    loop {
        match run(pool, &mut host, job) {
            Some(Fate::Reusable) => {}
            Some(Fate::Condemned) => return Served::Replace(None),
            None => return Served::Over,
        }
        match next_job(&mut host, jobs) {
            None => return Served::Over,
            Some(next) if next.limits.heap_bytes != heap_bytes || host.is_worn() => return Served::Replace(Some(next)),
            Some(next) => job = next,
        }
    }
}

/// Whether an isolate may be used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Reusable,
    Condemned,
}

/// Makes sure that the host hears of the end, even if this thread panics.
struct Report<'a> {
    host: &'a HostSender,
    control: &'a CallControl,
    done: bool,
}

impl Drop for Report<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.control.finish();
            self.control.handle_died();
            let message = "the isolate's thread panicked; its report says where".to_owned();
            self.host.send(ToHost::Finished(Err(IsolateError::Engine { message })));
        }
    }
}

/// Runs one job to its end and reports it. `None`: the host has given this thread up.
fn run(pool: &Pool, host: &mut HostIsolate, job: Job) -> Option<Fate> {
    let (mut worker, limits) = (job.worker, job.limits);
    let (to_host, control) = (job.host, job.control);
    let mut report = Report { host: &to_host, control: &control, done: false };
    let realm = host.take_realm();
    let no_realm = realm.is_none();
    let mut result = match realm {
        None => Err(Stop::Error(IsolateError::Engine { message: "V8 could not make a context".to_owned() })),
        Some(realm) => {
            let active = Rc::new(ActiveCall {
                ops: job.ops,
                host: to_host.clone(),
                mailbox: job.mailbox,
                control: Arc::clone(&control),
                limits,
                handle: host.state.handles.borrow_mut().acquire(),
                nudge: realm.nudge.clone(),
                next_op: 0.into(),
                pending: RefCell::default(),
                completed: RefCell::default(),
                too_large: RefCell::default(),
            });
            execute(host, &realm, &active, &job.script, &job.task)
        }
    };
    // One huge object may lie beyond the limit without V8's asking; it must not come to rest there.
    if host.is_over_limit() {
        control.kill(KillReason::Heap);
    }
    let ending = control.finish();
    host.state.rejections.borrow_mut().clear();
    host.isolate.clear_kept_objects();
    if host.buffers.take_refused() && is_range_error(&result) {
        result = Err(Stop::Error(IsolateError::HeapLimit { limit_bytes: limits.heap_bytes }));
    }
    report.done = true;
    if ending.abandoned {
        return None;
    }
    let condemned = ending.reason.is_some() || no_realm || host.is_worn();
    let result = match (ending.reason, result) {
        (Some(reason), _) => Err(reason.error(&limits)),
        (None, Ok(value)) => Ok(value),
        (None, Err(Stop::Error(error))) => Err(error),
        (None, Err(Stop::Killed)) => Err(IsolateError::Cancelled),
    };
    worker.heap_bytes = Some(limits.heap_bytes);
    pool.release(worker);
    to_host.send(ToHost::Finished(result));
    Some(if condemned { Fate::Condemned } else { Fate::Reusable })
}

/// Runs a task between arming and disarming everything that belongs to its call.
fn execute(
    host: &mut HostIsolate,
    realm: &Realm,
    active: &Rc<ActiveCall>,
    script: &Arc<Script>,
    task: &Task,
) -> Result<JobValue, Stop> {
    active.control.handle_made();
    *host.state.call.borrow_mut() = Some(Rc::clone(active));
    host.guard.set_running(Some(Arc::clone(&active.control)));
    let result = if active.control.begin(host.isolate.thread_safe_handle(), active.limits.cpu) {
        call::run(&mut host.isolate, &host.state, realm, active, script, task)
    } else {
        Err(Stop::Killed)
    };
    host.guard.set_running(None);
    *host.state.call.borrow_mut() = None;
    host.state.handles.borrow_mut().release(active.handle);
    active.control.handle_died();
    result
}

fn is_range_error(result: &Result<JobValue, Stop>) -> bool {
    matches!(result, Err(Stop::Error(IsolateError::Js(exception) | IsolateError::Load(exception))) if exception.class == "RangeError")
}

/// Waits for the next job and uses the time: first spare contexts, then, when it stays quiet, a collection. `None`: the engine is gone.
fn next_job(host: &mut HostIsolate, jobs: &Receiver<Job>) -> Option<Job> {
    loop {
        match jobs.try_recv() {
            Ok(job) => return Some(job),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) if host.add_spare() => {}
            Err(TryRecvError::Empty) => break,
        }
    }
    host.pump_platform();
    if host.wants_collection() {
        match jobs.recv_timeout(QUIET) {
            Ok(job) => return Some(job),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => host.collect(),
        }
    }
    jobs.recv().ok()
}
