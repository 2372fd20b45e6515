//! What a scripted server asks the host.
//!
//! Invariant: one question after the other; the next waits for the answer, unless the script says otherwise or takes the
//! question back. Deliberately no look at the answers: the host's trace has them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use greenroom_boundary::Clock;
use greenroom_boundary::clock::sleep;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use super::answer::{notification_frame, request_frame};
use super::pipe::FromServer;
use super::script::{McpAsk, McpNotification};

#[derive(Default)]
struct Open {
    last_id: u64,
    waiting: BTreeMap<u64, oneshot::Sender<()>>,
}

/// The questions of one connection.
#[derive(Clone)]
pub(super) struct Asks {
    clock: Arc<dyn Clock>,
    to_host: UnboundedSender<FromServer>,
    open: Arc<Mutex<Open>>,
}

impl Asks {
    pub(super) fn new(clock: Arc<dyn Clock>, to_host: UnboundedSender<FromServer>) -> Self {
        Self { clock, to_host, open: Arc::default() }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The host has answered.
    pub(super) fn answered(&self, id: &str) {
        let waiting = id.parse().ok().and_then(|id: u64| self.open().waiting.remove(&id));
        if let Some(waiting) = waiting {
            let _ = waiting.send(());
        }
    }

    /// Sends these notifications, each at its time from now.
    pub(super) async fn tell(&self, notifications: &[McpNotification]) {
        let start = self.clock.now();
        for notification in notifications {
            self.clock.sleep_until(start.after(notification.after.to_std())).await;
            let params = notification.params.clone().map(Value::Object);
            let _ = self.to_host.send(Ok(notification_frame(&notification.method, params)));
        }
    }

    /// Asks these questions.
    pub(super) async fn ask(&self, asks: &[McpAsk]) {
        for ask in asks {
            if ask.after.to_std() > std::time::Duration::ZERO {
                sleep(self.clock.as_ref(), ask.after.to_std()).await;
            }
            let (answer, answered) = oneshot::channel();
            let id = {
                let mut open = self.open();
                open.last_id += 1;
                let id = open.last_id;
                open.waiting.insert(id, answer);
                id
            };
            let params = ask.params.clone().map(Value::Object);
            let _ = self.to_host.send(Ok(request_frame(id, &ask.method, params)));
            if let Some(limit) = ask.cancel_after {
                tokio::select! {
                    biased;
                    _ = answered => {}
                    () = sleep(self.clock.as_ref(), limit.to_std()) => {
                        let params = json!({ "requestId": id, "reason": "the script takes it back" });
                        let _ = self.to_host.send(Ok(notification_frame("notifications/cancelled", Some(params))));
                    }
                }
            } else if !ask.no_wait {
                let _ = answered.await;
            }
        }
    }
}
