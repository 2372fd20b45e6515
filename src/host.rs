//! The composition root: a config and a set of drivers become a running host.
//!
//! Invariant: a host reaches the world through its drivers alone, and when it is shut down nothing of it is left.
//! Deliberately no reading of files or environment here.

mod reload;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};

use greenroom_boundary::isolate::HandOff;
use greenroom_boundary::llm::{ChatMessage, Role};
use greenroom_boundary::trace::{EventKind, Outcome};
use greenroom_boundary::{AgentId, CancellationToken, Drivers, Scope, ServerName};
use greenroom_harness::host::{Leftovers, TurnError, TurnReply, TurnRequest};
use serde_json::{Value, json};
use tokio_util::task::TaskTracker;

use crate::agents::{AgentServer, Session, TurnFailure, TurnInput, TurnTree, run_turn};
use crate::config::{HostConfig, ServerConfig, ServerKind};
use crate::context::{OutputStream, People};
use crate::router::{CallContext, CallError, ExternalServer, Factory, Router, Server};
use crate::scripts::ScriptLibrary;
use crate::servers::{MetaServer, PROMPTS_SERVER, PromptsServer, ScriptServer, SystemServer};
use crate::sessions::{RootId, RootSession};

use reload::Generations;
pub use reload::{InUse, Reloaded};

/// What every part of a running host shares.
pub struct HostCore {
    /// The config.
    pub config: HostConfig,
    /// The drivers.
    pub drivers: Drivers,
    /// The dispatcher.
    pub router: Router,
    /// Hook scripts.
    pub scripts: ScriptLibrary,
    /// How script threads and the runtime take turns.
    pub hand_off: HandOff,
    /// What outlives a config.
    pub state: Arc<HostState>,
    /// Turns and outside calls that run on this config.
    uses: TaskTracker,
}

/// Makes a server that the embedding program brings along. It is asked once per config, when the server is first needed.
pub type NativeFactory = Arc<dyn Fn() -> Arc<dyn Server> + Send + Sync>;

/// What a host keeps when its config changes.
#[derive(Default)]
pub struct HostState {
    /// The embedding program's servers.
    natives: BTreeMap<ServerName, NativeFactory>,
    /// What persons and teams keep over conversations.
    pub people: People,
    /// The session tree of the host's own turns.
    pub own_root: Arc<RootSession>,
    current: RwLock<Weak<HostCore>>,
    active: Arc<AtomicUsize>,
    roots_begun: AtomicU64,
    roots: Mutex<BTreeMap<RootId, Weak<RootSession>>>,
    living_roots: Arc<()>,
    sessions: Mutex<BTreeMap<String, Arc<Session>>>,
}

impl HostState {
    /// The host of the newest config, unless it is gone.
    pub fn current(&self) -> Option<Arc<HostCore>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// How many session trees of outside clients are in memory, those that have ended included.
    pub fn living_roots(&self) -> usize {
        Arc::strong_count(&self.living_roots) - 1
    }
}

/// Counts a turn until it is dropped.
#[derive(Debug)]
pub struct ActiveTurn(Arc<AtomicUsize>);

impl Drop for ActiveTurn {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl HostCore {
    fn new(
        mut config: HostConfig,
        drivers: Drivers,
        hand_off: HandOff,
        state: Arc<HostState>,
        before: Option<&HostCore>,
    ) -> Arc<Self> {
        for name in state.natives.keys() {
            let entry = config.servers.entry(name.clone());
            entry.or_insert_with(|| ServerConfig::plain(ServerKind::BuiltIn)).kind = ServerKind::BuiltIn;
        }
        for (name, value) in &config.secrets {
            drivers.credentials.register(name.clone(), value.clone());
        }
        let core = Arc::new_cyclic(|core: &Weak<HostCore>| HostCore {
            router: {
                let made = factories(&config, &drivers, core, &state);
                Router::new(&config, made, drivers.clone(), before.map(|before| &before.router))
            },
            scripts: ScriptLibrary::of(&config),
            hand_off,
            state,
            uses: TaskTracker::new(),
            config,
            drivers,
        });
        *core.state.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&core);
        core
    }

    /// Whether a name is an agent's.
    pub fn is_agent(&self, name: &ServerName) -> bool {
        self.config.agents.contains_key(&AgentId::new(name.as_str()))
    }

    pub(crate) fn active_turn(&self) -> ActiveTurn {
        self.state.active.fetch_add(1, Ordering::SeqCst);
        ActiveTurn(self.state.active.clone())
    }

    /// The conversation called `id`, made if it is new.
    pub fn session(&self, id: &str) -> Arc<Session> {
        let mut sessions = self.state.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        sessions.entry(id.to_owned()).or_insert_with(|| Session::new(id)).clone()
    }

    /// Begins the session tree of an outside client.
    pub fn begin_session(&self) -> Arc<RootSession> {
        let id = RootId(self.state.roots_begun.fetch_add(1, Ordering::SeqCst) + 1);
        let root = RootSession::counted(id, &self.state.living_roots);
        self.state.roots.lock().unwrap_or_else(PoisonError::into_inner).insert(root.id, Arc::downgrade(&root));
        root
    }

    /// Ends a session tree: its calls, its servers, its conversation `id`.
    pub async fn end_session(&self, root: &RootSession, id: &str) {
        root.end();
        self.state.roots.lock().unwrap_or_else(PoisonError::into_inner).remove(&root.id);
        self.router.close_root(root.id).await;
        self.state.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// A running host. Its config can be replaced: see [`Host::reload`].
#[derive(Clone)]
pub struct Host(Arc<Generations>);

impl fmt::Debug for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &self.core().config;
        write!(f, "Host({} agents, {} servers)", config.agents.len(), config.servers.len())
    }
}

impl Host {
    /// Sets a host up. Nothing is connected and no script is read until it is needed.
    pub fn start(config: HostConfig, drivers: Drivers, hand_off: HandOff) -> Self {
        Self::start_with(config, drivers, hand_off, [])
    }

    /// The same with servers of the embedding program, called in its own process. Each stands behind the config's entry of
    /// its name, whatever that entry says of a command, an address or a script; hooks, overrides and the deadline of the
    /// entry count. A name without an entry gets a plain one. They stay when the config is replaced.
    pub fn start_with(
        config: HostConfig,
        drivers: Drivers,
        hand_off: HandOff,
        natives: impl IntoIterator<Item = (ServerName, NativeFactory)>,
    ) -> Self {
        let state = HostState { natives: natives.into_iter().collect(), ..HostState::default() };
        let core = HostCore::new(config, drivers, hand_off, Arc::new(state), None);
        Self(Arc::new(Generations::new(core)))
    }

    /// The host of the config that counts now. Whoever works on it for longer takes [`Host::enter`].
    pub fn core(&self) -> Arc<HostCore> {
        self.0.current()
    }

    /// Runs one turn of a person to its end.
    pub async fn turn(&self, turn: TurnRequest, cancel: &CancellationToken) -> TurnReply {
        let (core, _in_use) = self.enter();
        let scope = Scope::new(turn.id.clone());
        let body = json!({"agent": turn.agent, "user": turn.user, "metadata": turn.metadata});
        core.drivers.tracer.emit(&scope, None, EventKind::Stimulus { id: turn.id.clone(), method: "turn".to_owned(), body });
        let session = core.session(turn.chat.as_deref().unwrap_or("default"));
        let mut metadata = turn.metadata;
        let person = core.state.people.of(&mut metadata);
        let tree = TurnTree::of(OutputStream::new(core.drivers.tracer.clone(), None), person);
        let mut cx = CallContext::new(scope.clone(), core.state.own_root.clone(), session, tree, cancel.child_token());
        cx.metadata = metadata;
        let message = ChatMessage::text(Role::User, turn.user);
        let input =
            TurnInput { agent: AgentId::new(turn.agent), messages: vec![message], connector: None, via: None, sample: None };
        let reply = match run_turn(core.clone(), cx, input).await {
            Ok(result) => TurnReply { outcome: Outcome::Ok, text: result.text, data: result.data, error: None },
            Err(failure) => failed(failure, cancel),
        };
        let body = serde_json::to_value(&reply).unwrap_or_default();
        core.drivers.tracer.emit(&scope, None, EventKind::StimulusEnd { id: turn.id, outcome: reply.outcome, body });
        reply
    }

    /// Closes every connection and says what was still under way.
    pub async fn shutdown(&self) -> Leftovers {
        let core = self.core();
        let tasks = core.state.active.load(Ordering::SeqCst);
        let connections = self.0.close().await;
        Leftovers { tasks, connections, handles: core.drivers.isolate.counters().live_handles }
    }
}

fn failed(failure: TurnFailure, cancel: &CancellationToken) -> TurnReply {
    let outcome = if cancel.is_cancelled() { Outcome::Cancelled } else { Outcome::Error };
    let error = TurnError { code: failure.code, message: failure.message };
    TurnReply { outcome, text: String::new(), data: Value::Null, error: Some(error) }
}

fn factories(
    config: &HostConfig,
    drivers: &Drivers,
    core: &Weak<HostCore>,
    state: &Arc<HostState>,
) -> Vec<(ServerName, ServerConfig, Factory)> {
    let mut all: Vec<(ServerName, ServerConfig, Factory)> = Vec::new();
    for (name, server) in &config.servers {
        let make: Factory = match state.natives.get(name).cloned() {
            Some(native) => Box::new(move || Ok(native())),
            None => factory(name, server, config, drivers, core, state),
        };
        all.push((name.clone(), server.clone(), make));
    }
    for agent in config.agents.keys() {
        let (core, id) = (core.clone(), agent.clone());
        let make: Factory = Box::new(move || Ok(Arc::new(AgentServer::new(core.clone(), id.clone())) as Arc<dyn Server>));
        all.push((ServerName::new(agent.as_str()), ServerConfig::plain(ServerKind::BuiltIn), make));
    }
    all
}

fn factory(
    name: &ServerName,
    server: &ServerConfig,
    config: &HostConfig,
    drivers: &Drivers,
    core: &Weak<HostCore>,
    state: &Arc<HostState>,
) -> Factory {
    let (name, drivers, core) = (name.clone(), drivers.clone(), core.clone());
    match server.kind.clone() {
        ServerKind::External(address) => {
            let version = config.policy.spec.parse().unwrap_or(greenroom_wire::ProtocolVersion::LATEST);
            let state = state.clone();
            Box::new(move || {
                Ok(Arc::new(ExternalServer::new(name.clone(), address.clone(), version, drivers.clone(), state.clone()))
                    as Arc<dyn Server>)
            })
        }
        ServerKind::Script(script) => {
            let isolation = server.isolation;
            Box::new(move || {
                let server = ScriptServer::new(core.clone(), name.clone(), script.clone()).kept_apart(isolation);
                Ok(Arc::new(server) as Arc<dyn Server>)
            })
        }
        ServerKind::BuiltIn if name.as_str() == "nanobot.system" => {
            Box::new(move || Ok(Arc::new(SystemServer::new(drivers.clone())) as Arc<dyn Server>))
        }
        ServerKind::BuiltIn if name.as_str() == PROMPTS_SERVER => {
            Box::new(move || Ok(Arc::new(PromptsServer::new(core.clone())) as Arc<dyn Server>))
        }
        ServerKind::BuiltIn => Box::new(move || Ok(Arc::new(MetaServer::new(core.clone())) as Arc<dyn Server>)),
        ServerKind::Disabled(reason) => Box::new(move || {
            let message = format!("server {name} is disabled: {reason}");
            Err(CallError::Inner { code: "SERVER_DISABLED".to_owned(), message })
        }),
    }
}
