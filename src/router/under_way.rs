//! The calls under way on a connection: what a server asks meanwhile comes from one of them.
//!
//! Invariant: a call is in the table exactly while it is under way. Deliberately a guess where several are: the protocol
//! does not say which one a question belongs to.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use greenroom_boundary::CancellationToken;

use super::CallContext;

#[derive(Default)]
struct Calls {
    next: u64,
    open: BTreeMap<u64, (CallContext, CancellationToken)>,
}

/// The calls under way.
#[derive(Clone, Default)]
pub(super) struct UnderWay(Arc<Mutex<Calls>>);

impl UnderWay {
    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call that is under way until the guard is dropped.
    pub(super) fn begin(&self, cx: &CallContext) -> Begun {
        let mut calls = self.lock();
        let key = calls.next;
        calls.next += 1;
        calls.open.insert(key, (cx.clone(), CancellationToken::new()));
        Begun { calls: self.clone(), key }
    }

    /// The call that a question comes from, and the ends of all that it may come from. Of several the one with the longest
    /// way is taken, so that no loop hides behind a call that happens to run beside it.
    pub(super) fn cause(&self) -> (Option<CallContext>, Vec<CancellationToken>) {
        let calls = self.lock();
        let cause = calls.open.values().max_by_key(|(cx, _)| cx.delegation.len());
        let ends = calls.open.values().map(|(_, end)| end.clone()).collect();
        (cause.map(|(cx, _)| cx.clone()), ends)
    }
}

/// Ends a call when it is dropped.
pub(super) struct Begun {
    calls: UnderWay,
    key: u64,
}

impl Drop for Begun {
    fn drop(&mut self) {
        let ended = self.calls.lock().open.remove(&self.key);
        if let Some((_, end)) = ended {
            end.cancel();
        }
    }
}
