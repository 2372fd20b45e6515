//! The pool of isolate threads: grows on demand up to a cap, reuses free threads, replaces those that were given up.
//!
//! Invariant: a thread is either free (its handle lies here) or has exactly one job (its handle travels in it). At the cap a call waits
//! its turn; its own limits run meanwhile.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use tokio::sync::oneshot;

use crate::worker::{self, Job, WorkerContext, WorkerStatus};

/// Stack of an isolate's thread. V8 itself keeps to about one megabyte of it; the rest is for native frames.
pub(crate) const STACK_BYTES: usize = 8 << 20;

/// Threads that take turns, so that one can tidy up while another serves.
const TAKING_TURNS: usize = 2;

/// A thread that can take a job.
#[derive(Debug)]
pub(crate) struct WorkerHandle {
    pub(crate) id: u64,
    pub(crate) jobs: Sender<Job>,
    /// The heap limit of the isolate it has, if it has one.
    pub(crate) heap_bytes: Option<usize>,
    pub(crate) status: Arc<WorkerStatus>,
}

#[derive(Debug, Default)]
struct PoolState {
    idle: Vec<WorkerHandle>,
    threads: BTreeMap<u64, (JoinHandle<()>, Arc<WorkerStatus>)>,
    waiting: VecDeque<oneshot::Sender<Option<WorkerHandle>>>,
    next_id: u64,
    closed: bool,
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

    /// What all threads tell about themselves.
    pub(crate) fn statuses(&self) -> Vec<Arc<WorkerStatus>> {
        self.lock().threads.values().map(|(_, status)| Arc::clone(status)).collect()
    }

    fn spawn(self: &Arc<Self>, state: &mut PoolState, warm: Option<usize>) -> Result<WorkerHandle, String> {
        let id = state.next_id;
        state.next_id += 1;
        let (sender, receiver) = mpsc::channel();
        let pool = Arc::clone(self);
        let status = Arc::new(WorkerStatus::default());
        let theirs = Arc::clone(&status);
        let thread = std::thread::Builder::new().name(format!("v8-isolate-{id}")).stack_size(STACK_BYTES);
        let thread = thread
            .spawn(move || {
                let _gone = Gone { pool: &pool, id };
                worker::main(&pool.context, &pool, &receiver, warm, &theirs);
            })
            .map_err(|error| format!("no thread for an isolate: {error}"))?;
        state.threads.insert(id, (thread, Arc::clone(&status)));
        Ok(WorkerHandle { id, jobs: sender, heap_bytes: warm, status })
    }

    /// Takes a free thread back.
    pub(crate) fn release(&self, worker: WorkerHandle) {
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

    /// Forgets a thread, because it ended or because it was given up; somebody who waits may start another.
    pub(crate) fn write_off(&self, id: u64) {
        let mut state = self.lock();
        if state.threads.remove(&id).is_some()
            && let Some(waiting) = state.waiting.pop_front()
        {
            let _ = waiting.send(None);
        }
    }

    /// Ends all threads that are not given up, and waits for them.
    pub(crate) fn close(&self) {
        let threads = {
            let mut state = self.lock();
            state.closed = true;
            state.idle.clear();
            std::mem::take(&mut state.threads)
        };
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
