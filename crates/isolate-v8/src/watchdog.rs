//! The watchdog: one thread that looks at every running call once a millisecond and sleeps when there has been none for a while.
//!
//! Invariant: it holds no call alive longer than one tick after its end. It measures processor time of the script's own
//! thread, so a script that waits for the host costs nothing; wall limits are the host's business, on the host's clock.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::control::CallControl;

/// Pause between two looks.
const TICK: Duration = Duration::from_millis(1);
/// Looks without any call before it sleeps: being woken at every call would cost more than the looks.
const IDLE_LOOKS: u32 = 50;

#[derive(Debug, Default)]
struct Watched {
    calls: Vec<Arc<CallControl>>,
    asleep: bool,
    closed: bool,
}

/// The watchdog of one engine.
#[derive(Debug)]
pub(crate) struct Watchdog {
    shared: Arc<(Mutex<Watched>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Watchdog {
    /// Starts its thread.
    pub(crate) fn start() -> std::io::Result<Self> {
        let shared = Arc::new((Mutex::new(Watched::default()), Condvar::new()));
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("v8-watchdog".to_owned()).spawn(move || watch(&theirs))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Watches this call until it is over.
    pub(crate) fn watch(&self, call: Arc<CallControl>) {
        let (watched, bell) = &*self.shared;
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        watched.calls.push(call);
        if watched.asleep {
            bell.notify_one();
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.shared.1.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch(shared: &(Mutex<Watched>, Condvar)) {
    let (watched, bell) = shared;
    let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
    let mut idle_looks = 0;
    while !watched.closed {
        watched.asleep = idle_looks >= IDLE_LOOKS;
        watched = if watched.asleep {
            bell.wait(watched).unwrap_or_else(PoisonError::into_inner)
        } else {
            bell.wait_timeout(watched, TICK).unwrap_or_else(PoisonError::into_inner).0
        };
        watched.calls.retain(|call| call.tick());
        idle_looks = if watched.calls.is_empty() { idle_looks.saturating_add(1).min(IDLE_LOOKS) } else { 0 };
    }
}
