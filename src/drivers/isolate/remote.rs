//! The host's side of `ctx` as a child sees it: every question goes over the pipe.
//!
//! Invariant: what must be answered at once blocks the script's thread until the answer is there; all else waits in a future, and
//! messages leave in the order in which the script asked. Deliberately no limits: the engine and the host have them.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use greenroom_boundary::isolate::{Callback, ContextOps, OpArgs, OpDecl, OpError, OpIndex};
use greenroom_boundary::{BoxFuture, RawJson};
use serde::Serialize;
use tokio::sync::oneshot;

use super::messages::{self, Answer, Outcome, ToHost};

/// How an operation ended.
type OpResult = Result<Option<RawJson>, OpError>;

/// The child's end of the pipes.
#[derive(Debug)]
pub(super) struct Link {
    out: Mutex<File>,
    answers: Mutex<mpsc::Receiver<Answer>>,
    under_way: Mutex<UnderWay>,
}

#[derive(Default)]
struct UnderWay {
    next_id: u64,
    waiting: BTreeMap<u64, oneshot::Sender<Outcome>>,
    callbacks: BTreeMap<u64, Arc<dyn Callback>>,
}

impl std::fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UnderWay({} operations)", self.waiting.len())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    pub(super) fn new(out: File, answers: mpsc::Receiver<Answer>) -> Self {
        Self { out: Mutex::new(out), answers: Mutex::new(answers), under_way: Mutex::default() }
    }

    /// Sends; when the host is gone, the end of the other pipe ends this process.
    pub(super) fn send(&self, message: &impl Serialize) {
        let _ = messages::write(&mut *lock(&self.out), message);
    }

    fn ask(&self, question: &ToHost) -> Option<Answer> {
        self.send(question);
        lock(&self.answers).recv().ok()
    }

    fn number(&self, question: &ToHost) -> f64 {
        match self.ask(question) {
            Some(Answer::Bits(bits)) => f64::from_bits(bits),
            _ => 0.0,
        }
    }

    /// The host says how an operation ended.
    pub(super) fn settled(&self, id: u64, outcome: Outcome) {
        let waiting = {
            let mut under_way = lock(&self.under_way);
            under_way.callbacks.remove(&id);
            under_way.waiting.remove(&id)
        };
        if let Some(waiting) = waiting {
            let _ = waiting.send(outcome);
        }
    }

    /// Nobody waits for this operation any more. Whether it was under way.
    fn forget(&self, id: u64) -> bool {
        let forgotten = {
            let mut under_way = lock(&self.under_way);
            (under_way.waiting.remove(&id), under_way.callbacks.remove(&id))
        };
        forgotten.0.is_some()
    }

    /// The callback of an operation that is under way.
    pub(super) fn callback(&self, id: u64) -> Option<Arc<dyn Callback>> {
        lock(&self.under_way).callbacks.get(&id).cloned()
    }

    /// Forgets what a call left under way.
    pub(super) fn clear(&self) {
        let left = {
            let mut under_way = lock(&self.under_way);
            let next_id = under_way.next_id;
            std::mem::replace(&mut *under_way, UnderWay { next_id, ..UnderWay::default() })
        };
        drop(left);
    }
}

/// Tells the host if an operation is dropped before it ended.
struct Wanted {
    link: Arc<Link>,
    id: u64,
}

impl Drop for Wanted {
    fn drop(&mut self) {
        if self.link.forget(self.id) {
            self.link.send(&ToHost::Cancel { id: self.id });
        }
    }
}

/// The host's side of one call.
#[derive(Debug)]
pub(super) struct RemoteOps {
    link: Arc<Link>,
    data: RawJson,
    absent: Vec<&'static str>,
}

impl RemoteOps {
    /// `absent` are groups as the host names them; one that the table does not have is nobody's.
    pub(super) fn new(link: Arc<Link>, data: RawJson, absent: &[String], table: &'static [OpDecl]) -> Self {
        let known = |group: &String| table.iter().find_map(|op| op.path.get(..group.len()).filter(|start| start == group));
        Self { link, data, absent: absent.iter().filter_map(known).collect() }
    }
}

impl ContextOps for RemoteOps {
    fn data(&self) -> RawJson {
        self.data.clone()
    }

    fn absent(&self) -> Vec<&'static str> {
        self.absent.clone()
    }

    fn inline(&self, op: OpIndex, args: OpArgs) -> OpResult {
        match self.link.ask(&ToHost::Inline { op, args }) {
            Some(Answer::Outcome(outcome)) => outcome.into(),
            _ => Err(OpError::new("ERR_INTERNAL", "the host gave the wrong answer")),
        }
    }

    fn start(&self, op: OpIndex, args: OpArgs, callback: Option<Arc<dyn Callback>>) -> BoxFuture<'static, OpResult> {
        let (sender, outcome) = oneshot::channel();
        let has_callback = callback.is_some();
        let id = {
            let mut under_way = lock(&self.link.under_way);
            let id = under_way.next_id;
            under_way.next_id += 1;
            under_way.waiting.insert(id, sender);
            if let Some(callback) = callback {
                under_way.callbacks.insert(id, callback);
            }
            id
        };
        self.link.send(&ToHost::Start { id, op, args, callback: has_callback });
        let wanted = Wanted { link: Arc::clone(&self.link), id };
        Box::pin(async move {
            let _wanted = wanted;
            match outcome.await {
                Ok(outcome) => outcome.into(),
                Err(_) => Err(OpError::new("ERR_RELEASED", "the call has ended")),
            }
        })
    }

    fn console(&self, level: &str, text: &str) {
        self.link.send(&ToHost::Console { level: level.to_owned(), text: text.to_owned() });
    }

    fn now_ms(&self) -> f64 {
        self.link.number(&ToHost::Now)
    }

    fn random(&self) -> f64 {
        self.link.number(&ToHost::Random)
    }

    /// The host watches it, and kills this process.
    fn wall_deadline(&self, _wall: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}
