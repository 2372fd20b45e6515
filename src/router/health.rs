//! How an external server is doing: when it may be started again, and what is told of it.
//!
//! Invariant: a server that keeps failing is started ever less often; each change between well and degraded is told once.
//! Deliberately no timers: a server is started again when somebody needs it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use greenroom_boundary::clock::MonoNanos;
use greenroom_boundary::mcp::McpError;
use greenroom_boundary::trace::EventKind;
use greenroom_boundary::{Drivers, Scope, ServerName};
use serde_json::{Value, json};

use super::CallError;

/// The pause before the second restart; it doubles with each failure. The first restart is at once.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// A connection that lived that long was well: its end counts as the first failure.
const LONG_LIFE: Duration = Duration::from_secs(60);

/// How a server is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// Nobody has needed it yet.
    Idle,
    /// It is connected, or part of the host.
    Ready,
    /// It failed, or is too slow.
    Degraded {
        /// Code of the last failure.
        code: String,
        /// When it may be tried again; zero is now.
        retry_in: Duration,
    },
    /// The config does not let it be used.
    Disabled,
}

impl ServerState {
    /// As JSON, without anything that a server or the config said.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Idle => json!({"state": "idle"}),
            Self::Ready => json!({"state": "ready"}),
            Self::Degraded { code, retry_in } => {
                json!({"state": "degraded", "code": code, "retryInMs": whole_millis(*retry_in)})
            }
            Self::Disabled => json!({"state": "disabled"}),
        }
    }
}

/// What is known of one instance of a server.
pub(super) struct Health {
    server: ServerName,
    drivers: Drivers,
    record: Mutex<Record>,
}

#[derive(Default)]
struct Record {
    /// Since when the connection of that number is up.
    up: Option<(u64, MonoNanos)>,
    down_since: MonoNanos,
    failures: u32,
    /// Nothing is told any more: it is being closed.
    retired: bool,
    /// Code of the trouble that was told last.
    trouble: Option<String>,
}

impl Record {
    fn next_try(&self) -> MonoNanos {
        self.down_since.after(pause(self.failures))
    }
}

impl Health {
    pub(super) fn new(server: ServerName, drivers: Drivers) -> Self {
        Self { server, drivers, record: Mutex::default() }
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a start that comes too early after failures.
    pub(super) fn may_start(&self) -> Result<(), CallError> {
        let (record, now) = (self.record(), self.drivers.clock.now());
        let wait = record.next_try().since(now);
        if record.failures == 0 || wait.is_zero() {
            return Ok(());
        }
        Err(CallError::Backoff {
            server: self.server.to_string(),
            failures: record.failures,
            retry_ms: whole_millis(wait),
            last: record.trouble.clone().unwrap_or_default(),
        })
    }

    /// Connection `number` is up.
    pub(super) fn up(&self, number: u64) {
        self.record().up = Some((number, self.drivers.clock.now()));
        self.well();
    }

    /// Connection `number` ended without our doing. What was never up is told by [`Health::failed`].
    pub(super) fn lost(&self, number: u64, why: Option<&McpError>) {
        let now = self.drivers.clock.now();
        {
            let mut record = self.record();
            let Some((_, since)) = record.up.filter(|(up, _)| *up == number) else { return };
            record.up = None;
            record.down_since = now;
            record.failures = if now.since(since) >= LONG_LIFE { 1 } else { record.failures.saturating_add(1) };
        }
        let told = why.map_or_else(|| "it ended the connection".to_owned(), ToString::to_string);
        self.trouble(why.map_or("MCP_CLOSED", McpError::code), &told);
    }

    /// A start failed.
    pub(super) fn failed(&self, error: &CallError) {
        if matches!(
            error,
            CallError::Cancelled { .. } | CallError::Unavailable(McpError::Cancelled { .. } | McpError::Denied { .. })
        ) {
            return;
        }
        {
            let mut record = self.record();
            record.down_since = self.drivers.clock.now();
            record.failures = record.failures.saturating_add(1);
        }
        self.trouble(error.code(), &error.to_string());
    }

    /// It is in trouble; told when that is news.
    pub(super) fn trouble(&self, code: &str, message: &str) {
        {
            let mut record = self.record();
            if record.retired || record.trouble.replace(code.to_owned()).is_some() {
                return;
            }
        }
        let message = self.drivers.credentials.mask(message);
        self.tell("server_degraded", json!({"code": code, "message": message}));
    }

    /// It is well; told when that is news.
    pub(super) fn well(&self) {
        if self.record().trouble.take().is_some() {
            self.tell("server_recovered", json!({}));
        }
    }

    /// It is about to be closed by us: its end is no failure.
    pub(super) fn retire(&self) {
        self.record().retired = true;
    }

    pub(super) fn state(&self) -> ServerState {
        let record = self.record();
        match &record.trouble {
            Some(code) => {
                let wait = if record.up.is_some() { Duration::ZERO } else { record.next_try().since(self.drivers.clock.now()) };
                ServerState::Degraded { code: code.clone(), retry_in: wait }
            }
            None if record.up.is_some() => ServerState::Ready,
            None => ServerState::Idle,
        }
    }

    fn tell(&self, what: &str, body: Value) {
        let event = EventKind::Warning { boundary: format!("mcp.{}", self.server), method: what.to_owned(), body };
        self.drivers.tracer.emit(&Scope::default(), None, event);
    }
}

/// How long a server rests after so many failures in a row.
fn pause(failures: u32) -> Duration {
    match failures.checked_sub(2) {
        None => Duration::ZERO,
        Some(doublings) => FIRST_PAUSE.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX)).min(LONGEST_PAUSE),
    }
}

/// Rounded up, so that a wait of that many milliseconds is long enough.
fn whole_millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses: Vec<u128> = (0..14).map(|failures| pause(failures).as_millis()).collect();
        assert_eq!(pauses, [0, 0, 100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000]);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
    }
}
