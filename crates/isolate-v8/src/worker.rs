//! The thread of an isolate: takes jobs, runs them, cleans up, and does the slow work while nobody waits.
//!
//! Invariant: before the host hears of the end of a call, its handle is dead, its host objects are dropped and the thread is back in the
//! pool; a condemned isolate is replaced before the next job.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use greenroom_boundary::isolate::{ContextOps, IsolateError, Isolation, Limits, OpDecl, Script};

use crate::call::{self, Seat, Stop, Task};
use crate::control::{CallControl, KillReason};
use crate::coverage::Counted;
use crate::debugger;
use crate::host_isolate::HostIsolate;
use crate::inspect::{InspectorHub, Port};
use crate::pool::{Pool, WorkerHandle};
use crate::protocol::{HostSender, JobValue, ToHost, ToIsolate, receive, receive_until};
use crate::snapshot::Snapshot;
use crate::spaces::Spaces;
use crate::state::{ActiveCall, set_active};

/// How long a thread stays free before it spends time on a collection of many used contexts.
const QUIET: Duration = Duration::from_millis(2);
/// The same for few.
const LONG_QUIET: Duration = Duration::from_millis(100);

/// What an isolate's thread is told.
pub(crate) enum Order {
    Job(Box<Job>),
    /// A debugger has come, sent something, or gone.
    Look,
}

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
    pub(crate) spaces: Arc<Spaces>,
    pub(crate) snapshot: Snapshot,
    pub(crate) spares: usize,
    /// Where to count what runs, if that is to be counted.
    pub(crate) counted: Option<Arc<Counted>>,
    /// Where debuggers attach, if they may.
    pub(crate) inspector: Option<Arc<InspectorHub>>,
}

/// What a thread tells about itself.
#[derive(Debug, Default)]
pub(crate) struct WorkerStatus {
    /// It has nothing to tidy up: a job would start at once.
    pub(crate) is_ready: AtomicBool,
    /// No call has left anything behind since the last collection.
    pub(crate) is_collected: AtomicBool,
    pub(crate) native_contexts: AtomicUsize,
    pub(crate) kept_contexts: AtomicUsize,
}

/// The thread's main function. With `warm` it makes an isolate with this heap limit at once, else for the first job.
pub(crate) fn main(
    context: &WorkerContext,
    pool: &Pool,
    orders: &Receiver<Order>,
    warm: Option<usize>,
    status: &WorkerStatus,
    port: Option<&Arc<Port>>,
) {
    let mut host = warm.map(|heap_bytes| HostIsolate::new(context, heap_bytes, context.spares));
    while let Some(order) = next_order(host.as_mut(), orders, status) {
        let is_attached = port.is_some_and(|port| attend(context, port, &mut host));
        let Order::Job(mut job) = order else { continue };
        if is_attached && matches!(job.task, Task::Call { .. }) {
            // What a debugger looks at has a context of its own, and no older one.
            job.limits.isolation = Isolation::Context;
        }
        let heap_bytes = job.limits.heap_bytes;
        if job.limits.isolation >= Isolation::Isolate && matches!(job.task, Task::Call { .. }) {
            // Within the thread's isolate, if it has one: V8 wants the younger one gone first, and it is.
            let mut own = HostIsolate::new(context, heap_bytes, 0);
            if run(pool, &mut own, job, status, context.counted.as_deref()).is_none() {
                return;
            }
            continue;
        }
        if host.as_ref().is_some_and(|host| host.heap_bytes != heap_bytes || host.is_worn()) {
            drop(host.take());
            if is_attached {
                host = Some(HostIsolate::inspected(context, heap_bytes, port));
            }
        }
        let serving = host.get_or_insert_with(|| HostIsolate::new(context, heap_bytes, context.spares));
        match run(pool, serving, job, status, context.counted.as_deref()) {
            Some(Fate::Reusable) => {}
            Some(Fate::Condemned) => {
                drop(host.take());
                host = Some(match is_attached {
                    true => HostIsolate::inspected(context, heap_bytes, port),
                    false => HostIsolate::new(context, heap_bytes, context.spares),
                });
            }
            None => return,
        }
    }
}

/// Sees to it that the thread has an isolate for the debugger that is attached, or none if none is. Whether one is.
fn attend(context: &WorkerContext, port: &Arc<Port>, host: &mut Option<HostIsolate>) -> bool {
    let is_attached = port.session().is_some();
    if host.as_ref().is_some_and(|host| !host.fits_debugger(is_attached)) || (is_attached && host.is_none()) {
        let heap_bytes = host.take().map_or(Limits::default().heap_bytes, |host| host.heap_bytes);
        if is_attached {
            *host = Some(HostIsolate::inspected(context, heap_bytes, Some(port)));
        }
    }
    debugger::look();
    is_attached
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
fn run(pool: &Pool, host: &mut HostIsolate, job: Box<Job>, status: &WorkerStatus, counted: Option<&Counted>) -> Option<Fate> {
    let (mut worker, limits) = (job.worker, job.limits);
    let (to_host, control) = (job.host, job.control);
    let mut report = Report { host: &to_host, control: &control, done: false };
    let is_frozen = limits.isolation == Isolation::Frozen && matches!(job.task, Task::Call { .. });
    host.buffers.set_limit(limits.buffer_bytes.min(limits.heap_bytes));
    let mut seat = host.take_seat(&job.script, is_frozen);
    let no_seat = seat.is_none();
    let mut result = match &mut seat {
        None => Err(Stop::Error(IsolateError::Engine { message: "V8 could not make a context".to_owned() })),
        Some(seat) => {
            let absent = job.ops.absent().into_iter().filter_map(|path| host.state.spaces.find(path)).collect();
            let realm = seat.realm();
            let active = Rc::new(ActiveCall {
                ops: job.ops,
                host: to_host.clone(),
                mailbox: job.mailbox,
                control: Arc::clone(&control),
                limits,
                handle: host.state.handles.borrow_mut().acquire(),
                state: Rc::clone(&host.state),
                nudge: realm.nudge.clone(),
                constructors: realm.constructors.clone(),
                without: realm.without.clone(),
                queue: Rc::clone(&realm.queue),
                absent,
                output_bytes: Cell::new(0),
                next_op: 0.into(),
                pending: RefCell::default(),
                completed: RefCell::default(),
                too_large: RefCell::default(),
            });
            let context = seat.realm().context.clone();
            debugger::announce(&mut host.isolate, &context, &job.script.name);
            let result = execute(host, seat, &active, &job.script, &job.task);
            debugger::withdraw(&mut host.isolate, &context);
            result
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
        let limit_bytes = limits.buffer_bytes.min(limits.heap_bytes);
        result = Err(Stop::Error(IsolateError::HeapLimit { limit_bytes }));
    }
    report.done = true;
    if ending.abandoned {
        return None;
    }
    if let Some(counted) = counted {
        host.count(&job.script, counted);
    }
    let condemned = ending.reason.is_some() || no_seat || host.is_worn();
    let result = match (ending.reason, result) {
        (Some(reason), _) => Err(reason.error(&limits)),
        (None, Ok(value)) => Ok(value),
        (None, Err(Stop::Error(error))) => Err(error),
        (None, Err(Stop::Killed)) => Err(IsolateError::Cancelled),
    };
    let has_failed = result.is_err();
    if limits.isolation < Isolation::Isolate {
        worker.heap_bytes = Some(limits.heap_bytes);
    }
    status.is_ready.store(false, Ordering::Release);
    pool.release(worker);
    to_host.send(ToHost::Finished(result));
    if let Some(seat) = seat.filter(|_| !condemned) {
        host.give_back(seat, has_failed);
    }
    Some(if condemned { Fate::Condemned } else { Fate::Reusable })
}

/// Runs a task between arming and disarming everything that belongs to its call.
fn execute(
    host: &mut HostIsolate,
    seat: &mut Seat,
    active: &Rc<ActiveCall>,
    script: &Arc<Script>,
    task: &Task,
) -> Result<JobValue, Stop> {
    active.control.handle_made();
    set_active(Some(Rc::clone(active)));
    host.guard.set_running(Some(Arc::clone(&active.control)));
    let result = if active.control.begin(host.isolate.thread_safe_handle(), active.limits.cpu) {
        call::run(&mut host.isolate, active, seat, script, task)
    } else {
        Err(Stop::Killed)
    };
    host.guard.set_running(None);
    set_active(None);
    host.state.handles.borrow_mut().release(active.handle);
    active.control.handle_died();
    result
}

fn is_range_error(result: &Result<JobValue, Stop>) -> bool {
    matches!(result, Err(Stop::Error(IsolateError::Js(exception) | IsolateError::Load(exception))) if exception.class == "RangeError")
}

/// Waits for the next job and uses the time: first spare contexts, then, when it stays quiet, a collection. `None`: the engine is gone.
fn next_order(host: Option<&mut HostIsolate>, jobs: &Receiver<Order>, status: &WorkerStatus) -> Option<Order> {
    let Some(host) = host else {
        // Without an isolate there is nothing to tidy up.
        status.is_collected.store(true, Ordering::Relaxed);
        status.is_ready.store(true, Ordering::Release);
        return jobs.recv().ok();
    };
    loop {
        loop {
            match jobs.try_recv() {
                Ok(job) => return Some(job),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) if host.add_spare() => {}
                Err(TryRecvError::Empty) => break,
            }
        }
        host.pump_platform();
        tell(host, status);
        let patience = if host.wants_collection() { QUIET } else { LONG_QUIET };
        let job = if host.has_garbage() { receive_until(jobs, patience) } else { Ok(receive(jobs)?) };
        match job {
            Ok(job) => return Some(job),
            Err(RecvTimeoutError::Disconnected) => return None,
            Err(RecvTimeoutError::Timeout) => {
                status.is_ready.store(false, Ordering::Release);
                host.collect();
            }
        }
    }
}

fn tell(host: &mut HostIsolate, status: &WorkerStatus) {
    status.native_contexts.store(host.native_contexts(), Ordering::Relaxed);
    status.kept_contexts.store(host.kept_contexts(), Ordering::Relaxed);
    status.is_collected.store(!host.has_garbage(), Ordering::Relaxed);
    status.is_ready.store(true, Ordering::Release);
}
