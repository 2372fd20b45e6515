//! The pool of isolate threads: grows on demand up to a cap, reuses free threads, replaces those that were given up.
//!
//! Invariant: a thread is either free (its handle lies here) or has exactly one job (its handle travels in it). At the cap a call waits
//! its turn; its own limits run meanwhile.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use crate::inspect::Port;
use crate::worker::{self, Order, WorkerContext, WorkerStatus};

/// Stack of an isolate's thread. V8 itself keeps to about one megabyte of it; the rest is for native frames.
pub(crate) const STACK_BYTES: usize = 8 << 20;

/// Threads that take turns, so that one can tidy up while another serves.
const TAKING_TURNS: usize = 2;

/// A thread that can take a job.
#[derive(Debug)]
pub(crate) struct WorkerHandle {
    pub(crate) id: u64,
    pub(crate) jobs: Sender<Order>,
    /// The heap limit of the isolate it has, if it has one.
    pub(crate) heap_bytes: Option<usize>,
    pub(crate) status: Arc<WorkerStatus>,
    /// Where a debugger attaches to it, if one may.
    pub(crate) port: Option<Arc<Port>>,
}

#[derive(Debug, Default)]
struct PoolState {
    idle: Vec<WorkerHandle>,
    threads: BTreeMap<u64, (JoinHandle<()>, Arc<WorkerStatus>)>,
    /// Those that were given up and still run.
    given_up: BTreeSet<u64>,
    waiting: VecDeque<oneshot::Sender<Option<WorkerHandle>>>,
    next_id: u64,
    closed: bool,
}

impl PoolState {
    /// Whether the thread was known. Its place is free: somebody who waits may start another.
    fn forget(&mut self, id: u64) -> bool {
        let was_known = self.threads.remove(&id).is_some();
        if was_known && let Some(waiting) = self.waiting.pop_front() {
            let _ = waiting.send(None);
        }
        was_known
    }
}

/// The pool.
#[derive(Debug)]
pub(crate) struct Pool {
    context: Arc<WorkerContext>,
    most_threads: usize,
    state: Mutex<PoolState>,
}

impl Pool {
    pub(crate) fn new(context: WorkerContext, most_threads: usize) -> Arc<Self> {
        Arc::new(Self { context: Arc::new(context), most_threads: most_threads.max(1), state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A free thread, preferably with an isolate of this heap limit; a new one if none is free; at the cap it waits.
    pub(crate) async fn acquire(self: &Arc<Self>, heap_bytes: usize) -> Result<WorkerHandle, String> {
        loop {
            let turn = {
                let mut state = self.lock();
                if self.context.inspector.is_some()
                    && let Some(first) = (0..state.idle.len()).min_by_key(|index| state.idle[*index].id)
                {
                    // A person attaches to one thread; calls that are not within others shall come there.
                    return Ok(state.idle.remove(first));
                }
                let fits = |worker: &WorkerHandle| worker.heap_bytes == Some(heap_bytes);
                let ready =
                    state.idle.iter().rposition(|worker| fits(worker) && worker.status.is_ready.load(Ordering::Acquire));
                let fitting = ready.or_else(|| state.idle.iter().position(fits));
                if fitting.is_some() && ready.is_none() {
                    self.add_companion(&mut state, heap_bytes);
                }
                let fresh = fitting.or_else(|| state.idle.iter().rposition(|worker| worker.heap_bytes.is_none()));
                if let Some(index) = fresh {
                    return Ok(state.idle.remove(index));
                }
                if state.threads.len() < self.most_threads {
                    return self.spawn(&mut state, None);
                }
                if let Some(worker) = state.idle.pop() {
                    return Ok(worker);
                }
                let (sender, receiver) = oneshot::channel();
                state.waiting.push_back(sender);
                receiver
            };
            if let Ok(Some(worker)) = turn.await {
                return Ok(worker);
            }
        }
    }

    /// All free threads are tidying up: from now on one more takes turns with them. It gets ready by itself, so this call does not wait.
    fn add_companion(self: &Arc<Self>, state: &mut PoolState, heap_bytes: usize) {
        if state.threads.len() < self.most_threads.min(TAKING_TURNS)
            && let Ok(worker) = self.spawn(state, Some(heap_bytes))
        {
            // Behind the others: `position` above must not choose it before it is ready.
            state.idle.push(worker);
        }
    }

    /// Makes the first thread now, so that a debugger finds it.
    pub(crate) fn begin(self: &Arc<Self>) -> Result<(), String> {
        let mut state = self.lock();
        let worker = self.spawn(&mut state, None)?;
        state.idle.push(worker);
        Ok(())
    }

    /// What all threads tell about themselves.
    pub(crate) fn statuses(&self) -> Vec<Arc<WorkerStatus>> {
        self.lock().threads.values().map(|(_, status)| Arc::clone(status)).collect()
    }

    fn spawn(self: &Arc<Self>, state: &mut PoolState, warm: Option<usize>) -> Result<WorkerHandle, String> {
        let id = state.next_id;
        state.next_id += 1;
        let (sender, receiver) = mpsc::channel();
        let port = self.context.inspector.as_ref().map(|hub| hub.add(id, sender.clone()));
        let pool = Arc::clone(self);
        let their_port = port.clone();
        let status = Arc::new(WorkerStatus::default());
        let theirs = Arc::clone(&status);
        let thread = std::thread::Builder::new().name(format!("v8-isolate-{id}")).stack_size(STACK_BYTES);
        let thread = thread
            .spawn(move || {
                let _gone = Gone { pool: &pool, id };
                worker::main(&pool.context, &pool, &receiver, warm, &theirs, their_port.as_ref());
            })
            .map_err(|error| format!("no thread for an isolate: {error}"))?;
        state.threads.insert(id, (thread, Arc::clone(&status)));
        Ok(WorkerHandle { id, jobs: sender, heap_bytes: warm, status, port })
    }

    /// Takes a free thread back.
    pub(crate) fn release(&self, worker: WorkerHandle) {
        if let Some(port) = &worker.port {
            port.set_mailbox(None);
        }
        let mut state = self.lock();
        let mut worker = Some(worker);
        while let Some(waiting) = state.waiting.pop_front() {
            match waiting.send(worker.take()) {
                Ok(()) => return,
                Err(back) => worker = back,
            }
        }
        if let Some(worker) = worker
            && !state.closed
        {
            state.idle.push(worker);
        }
    }

    /// Forgets a thread that does not react to a kill; somebody who waits may start another.
    pub(crate) fn give_up(&self, id: u64) {
        self.detach(id);
        let mut state = self.lock();
        if state.forget(id) {
            state.given_up.insert(id);
        }
    }

    /// Forgets a thread that ended; somebody who waits may start another.
    pub(crate) fn write_off(&self, id: u64) {
        self.detach(id);
        let mut state = self.lock();
        state.forget(id);
        state.given_up.remove(&id);
    }

    fn detach(&self, id: u64) {
        if let Some(hub) = &self.context.inspector {
            hub.remove(id);
        }
    }

    /// How many threads were given up and still run.
    pub(crate) fn given_up_threads(&self) -> usize {
        self.lock().given_up.len()
    }

    /// Ends all threads that are not given up, and waits for them.
    pub(crate) fn close(&self) {
        let threads = {
            let mut state = self.lock();
            state.closed = true;
            state.idle.clear();
            std::mem::take(&mut state.threads)
        };
        if let Some(hub) = &self.context.inspector {
            threads.keys().for_each(|id| hub.remove(*id));
        }
        for (thread, _) in threads.into_values() {
            let _ = thread.join();
        }
    }
}

/// Runs at the end of a thread, however it ends.
struct Gone<'a> {
    pool: &'a Pool,
    id: u64,
}

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        self.pool.write_off(self.id);
    }
}
