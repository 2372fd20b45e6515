//! The threads that scripts run on.
//!
//! Invariant: a thread runs one call at a time, and a waiting call keeps its thread, so a nested call never waits for its
//! caller's. Deliberately no upper bound: the host bounds how many calls it makes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};

type Job = Box<dyn FnOnce() + Send>;

/// Stack of a thread, in bytes.
pub(crate) const STACK_BYTES: usize = 4 << 20;
/// Threads kept for later calls.
const KEPT: usize = 8;

/// A job, and the way to give its thread the next one. While a thread is idle only the pool holds that way, so the threads
/// end with the pool.
struct Task {
    job: Job,
    again: mpsc::Sender<Task>,
}

/// The idle threads.
#[derive(Default)]
pub(crate) struct Workers {
    idle: Mutex<Vec<mpsc::Sender<Task>>>,
}

impl Workers {
    /// Runs a job on an idle thread or on a new one.
    pub(crate) fn run(self: &Arc<Self>, mut job: Job) -> std::io::Result<()> {
        while let Some(worker) = self.take_idle() {
            match worker.send(Task { job, again: worker.clone() }) {
                Ok(()) => return Ok(()),
                Err(mpsc::SendError(unsent)) => job = unsent.job,
            }
        }
        let (sender, receiver) = mpsc::channel();
        let home = Arc::downgrade(self);
        std::thread::Builder::new()
            .name("greenroom-quickjs".to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || serve(&receiver, &home))?;
        // The thread just started holds the other end.
        drop(sender.send(Task { job, again: sender.clone() }));
        Ok(())
    }

    fn take_idle(&self) -> Option<mpsc::Sender<Task>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

fn serve(tasks: &mpsc::Receiver<Task>, home: &Weak<Workers>) {
    while let Ok(Task { job, again }) = tasks.recv() {
        // A panic ends this call alone: the host sees that its thread's end is gone.
        let outcome = catch_unwind(AssertUnwindSafe(job));
        let Some(home) = home.upgrade().filter(|_| outcome.is_ok()) else { return };
        let mut idle = home.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() >= KEPT {
            return;
        }
        idle.push(again);
    }
}
