//! Where debuggers attach: one target for each isolate thread, one session for each target.
//!
//! Invariant: an engine that nobody may inspect knows nothing of this; without a session a thread runs as ever. With one it has an
//! isolate of its own kind, made when the session began and thrown away when it ends. No V8 types here, and no network.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::protocol::ToIsolate;
use crate::worker::Order;

/// Messages that set up a session, kept to set up the next isolate of the same session.
const SETUP: [&str; 8] = [
    "Runtime.enable",
    "Debugger.enable",
    "Debugger.setAsyncCallStackDepth",
    "Debugger.setBlackboxPatterns",
    "Debugger.setBreakpointByUrl",
    "Debugger.setBreakpointsActive",
    "Debugger.removeBreakpoint",
    "Debugger.setPauseOnExceptions",
];
/// Most of them kept.
const MOST_SETUP: usize = 4096;

/// The targets of an engine.
pub struct InspectorHub {
    ports: Mutex<BTreeMap<u64, Arc<Port>>>,
    url_of: Box<dyn Fn(&str) -> String + Send + Sync>,
}

impl fmt::Debug for InspectorHub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InspectorHub({} targets)", lock(&self.ports).len())
    }
}

/// Why a debugger cannot attach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachError {
    /// There is no such target.
    NoTarget,
    /// Another debugger is attached to it.
    Busy,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl InspectorHub {
    /// A hub for one engine. `url_of` gives the address under which a debugger shall know a script, from its name.
    pub fn new(url_of: impl Fn(&str) -> String + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { ports: Mutex::default(), url_of: Box::new(url_of) })
    }

    /// The threads that can be attached to, by number; calls go to the first one that is free.
    pub fn targets(&self) -> Vec<u64> {
        lock(&self.ports).keys().copied().collect()
    }

    /// Attaches to a thread.
    ///
    /// # Errors
    ///
    /// When there is no such thread, or somebody else is attached to it.
    pub fn attach(&self, target: u64) -> Result<DebugSession, AttachError> {
        let port = lock(&self.ports).get(&target).cloned().ok_or(AttachError::NoTarget)?;
        let (sender, messages) = unbounded_channel();
        {
            let mut state = lock(&port.state);
            if state.out.is_some() {
                return Err(AttachError::Busy);
            }
            state.out = Some(sender);
            state.session += 1;
        }
        port.wake();
        Ok(DebugSession { port, messages })
    }

    pub(crate) fn url_of(&self, name: &str) -> String {
        (self.url_of)(name)
    }

    pub(crate) fn add(&self, target: u64, orders: Sender<Order>) -> Arc<Port> {
        let state = PortState {
            session: 0,
            out: None,
            inbox: VecDeque::new(),
            setup: Vec::new(),
            orders: Some(orders),
            mailbox: None,
            interrupt: None,
        };
        let port = Arc::new(Port { state: Mutex::new(state), bell: Condvar::new() });
        lock(&self.ports).insert(target, Arc::clone(&port));
        port
    }

    pub(crate) fn remove(&self, target: u64) {
        if let Some(port) = lock(&self.ports).remove(&target) {
            lock(&port.state).orders = None;
            port.detach();
        }
    }
}

/// A debugger's session. Dropped, it ends, and a script that it holds goes on.
#[derive(Debug)]
pub struct DebugSession {
    port: Arc<Port>,
    messages: UnboundedReceiver<String>,
}

impl DebugSession {
    /// Gives V8 a message of the DevTools protocol.
    pub fn sender(&self) -> DebugSender {
        DebugSender(Arc::clone(&self.port))
    }

    /// V8's next message; `None` when the target is gone.
    pub async fn recv(&mut self) -> Option<String> {
        self.messages.recv().await
    }
}

impl Drop for DebugSession {
    fn drop(&mut self) {
        self.port.detach();
    }
}

/// The way to V8.
#[derive(Clone, Debug)]
pub struct DebugSender(Arc<Port>);

impl DebugSender {
    /// Gives V8 a message of the DevTools protocol.
    pub fn send(&self, message: String) {
        let mut state = lock(&self.0.state);
        if state.out.is_some() {
            state.inbox.push_back(message);
        }
        drop(state);
        self.0.wake();
    }
}

/// What asks a running script to look here.
type Interrupt = Box<dyn Fn() + Send>;

/// One thread, as a debugger reaches it.
pub(crate) struct Port {
    state: Mutex<PortState>,
    bell: Condvar,
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Port(session {})", lock(&self.state).session)
    }
}

struct PortState {
    /// Number of the session, or of the last one.
    session: u64,
    /// The way to the debugger, while one is attached.
    out: Option<UnboundedSender<String>>,
    inbox: VecDeque<String>,
    setup: Vec<String>,
    /// The way to the thread; taken away when it shall end.
    orders: Option<Sender<Order>>,
    /// The mailbox of the call that runs.
    mailbox: Option<Sender<ToIsolate>>,
    interrupt: Option<Interrupt>,
}

impl Port {
    /// Makes the thread look here, whatever it does: it waits for work, waits for the host, runs a script, or is paused.
    fn wake(&self) {
        let state = lock(&self.state);
        if let Some(orders) = &state.orders {
            let _ = orders.send(Order::Look);
        }
        if let Some(mailbox) = &state.mailbox {
            let _ = mailbox.send(ToIsolate::Look);
        }
        if let Some(interrupt) = &state.interrupt {
            interrupt();
        }
        self.bell.notify_all();
    }

    fn detach(&self) {
        {
            let mut state = lock(&self.state);
            state.out = None;
            state.inbox.clear();
            state.setup.clear();
        }
        self.wake();
    }

    /// The session that is attached.
    pub(crate) fn session(&self) -> Option<u64> {
        let state = lock(&self.state);
        state.out.as_ref().map(|_| state.session)
    }

    /// Tells the debugger something.
    pub(crate) fn tell(&self, message: String) {
        if let Some(out) = &lock(&self.state).out {
            let _ = out.send(message);
        }
    }

    /// The debugger's next message.
    pub(crate) fn next(&self) -> Option<String> {
        let mut state = lock(&self.state);
        let message = state.inbox.pop_front()?;
        let is_setup = SETUP.iter().any(|method| message.contains(&format!("\"{method}\"")));
        if is_setup && state.setup.len() < MOST_SETUP {
            state.setup.push(message.clone());
        }
        Some(message)
    }

    /// What set this session up so far.
    pub(crate) fn setup(&self) -> Vec<String> {
        lock(&self.state).setup.clone()
    }

    /// Waits, but only so long, until there may be a message.
    pub(crate) fn wait(&self, patience: Duration) {
        let state = lock(&self.state);
        if state.inbox.is_empty() && state.out.is_some() {
            drop(self.bell.wait_timeout(state, patience));
        }
    }

    /// A call begins, or (`None`) has ended.
    pub(crate) fn set_mailbox(&self, mailbox: Option<Sender<ToIsolate>>) {
        lock(&self.state).mailbox = mailbox;
    }

    /// How to interrupt the script that runs.
    pub(crate) fn set_interrupt(&self, interrupt: Option<Interrupt>) {
        lock(&self.state).interrupt = interrupt;
    }
}
