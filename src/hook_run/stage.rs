//! The simulated world of one run: scripted peers, a virtual clock, a host around them.
//!
//! Invariant: no driver here reaches anything real but the script engine. Deliberately rebuilt for each run, so that scripted
//! answers start anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use greenroom_boundary::audit::DenyAudit;
use greenroom_boundary::clock::UnixNanos;
use greenroom_boundary::egress::DenyAll;
use greenroom_boundary::isolate::HandOff;
use greenroom_boundary::llm::{LlmCapabilities, LlmError, LlmRequest, LlmStream};
use greenroom_boundary::mcp::ServerAddress;
use greenroom_boundary::workspace::WorkspaceSpec;
use greenroom_boundary::{
    AgentId, CancellationToken, CliRunner, Clock, ConnectorName, Credentials, Drivers, IsolateDriver, Llm, McpConnector,
    Search, ServerName, Tracer,
};
use greenroom_harness::trace::TraceLog;
use greenroom_mocks::cli::{DenyCli, ScriptedCli};
use greenroom_mocks::llm::{LlmReply, LlmScript, LlmTurn, LlmWhen, ScriptedLlm};
use greenroom_mocks::mcp::{McpSwitch, ScriptedMcp};
use greenroom_mocks::search::ScriptedSearch;
use greenroom_mocks::workspace::MemoryWorkspaces;
use greenroom_mocks::{SeededEntropy, VirtualClock};

use super::defaults::{EchoSearch, EchoServer, Peer};
use super::inputs::{CtxInput, MocksInput};
use crate::config::{AgentConfig, HostConfig, ServerConfig, ServerKind};
use crate::host::{Host, NativeFactory};
use crate::router::Server;

/// What the wall clock shows at the start: 2026-01-01T00:00:00Z, as in scenarios.
const START: UnixNanos = UnixNanos(1_767_225_600_000_000_000);

/// Most events that are kept; nobody reads them here.
const EVENTS: usize = 1;

type Unused = Box<dyn Fn() -> Vec<String>>;

/// One run's world.
pub(super) struct Stage {
    pub(super) host: Host,
    pub(super) clock: VirtualClock,
    pub(super) drivers: Drivers,
    models: Arc<Models>,
    scripts: Vec<(String, Unused)>,
}

/// What the stage is made of.
pub(super) struct Plan<'a> {
    pub(super) mocks: &'a MocksInput,
    pub(super) ctx: &'a CtxInput,
    /// The agent whose hook it is.
    pub(super) agent: &'a str,
    pub(super) engine: &'a Arc<dyn IsolateDriver>,
    pub(super) seed: u64,
    /// Peers that answer by default.
    pub(super) by_default: &'a BTreeSet<Peer>,
}

impl Plan<'_> {
    /// Whether the hook has a workspace or a computer, which only an agent of the config has.
    fn has_place(&self) -> bool {
        self.ctx.workspace.is_some() || self.mocks.cli.is_some()
    }

    /// Whether the hook's agent and a server would have one name.
    pub(super) fn is_ambiguous(&self) -> bool {
        let server = Peer::Server(self.agent.to_owned());
        self.has_place() && (self.mocks.mcp.contains_key(self.agent) || self.by_default.contains(&server))
    }
}

impl Stage {
    pub(super) fn new(plan: &Plan<'_>) -> Self {
        let clock = VirtualClock::new(START, plan.seed);
        let driver: Arc<dyn Clock> = Arc::new(clock.clone());
        let entropy = SeededEntropy::new(plan.seed);
        let mut scripts: Vec<(String, Unused)> = Vec::new();
        let models = Arc::new(Models::new(plan.mocks, &driver, plan.seed, &mut scripts));
        let mut servers: BTreeMap<ServerName, Arc<dyn McpConnector>> = BTreeMap::new();
        for (name, script) in &plan.mocks.mcp {
            let server = ScriptedMcp::new(script.clone(), driver.clone());
            let unused = server.clone();
            scripts.push((format!("mcp.{name}"), Box::new(move || unused.unused())));
            servers.insert(ServerName::new(name), Arc::new(server));
        }
        let search: Arc<dyn Search> = match &plan.mocks.search {
            Some(script) => {
                let search = ScriptedSearch::new(script.clone(), driver.clone());
                let unused = search.clone();
                scripts.push(("search".to_owned(), Box::new(move || unused.unused())));
                Arc::new(search)
            }
            None => Arc::new(EchoSearch),
        };
        let cli: Arc<dyn CliRunner> = match &plan.mocks.cli {
            Some(script) => {
                let runner = ScriptedCli::new(script.clone(), driver.clone());
                let unused = runner.clone();
                scripts.push(("cli".to_owned(), Box::new(move || unused.unused())));
                Arc::new(runner)
            }
            None => Arc::new(DenyCli),
        };
        let workspaces = Arc::new(MemoryWorkspaces::new(driver.clone()));
        let drivers = Drivers {
            llm: models.clone(),
            mcp: Arc::new(McpSwitch::new(servers)),
            cli,
            isolate: plan.engine.clone(),
            tracer: Tracer::new(driver.clone(), Arc::new(TraceLog::new(EVENTS))),
            clock: driver,
            entropy: Arc::new(entropy.derive("host")),
            egress: Arc::new(DenyAll),
            search,
            workspaces,
            audit: Arc::new(DenyAudit),
            credentials: Credentials::default(),
        };
        let host = Host::start_with(config(plan), drivers.clone(), HandOff::Strict, natives(plan.by_default));
        Self { host, clock, drivers, models, scripts }
    }

    /// Models that answered by default.
    pub(super) fn defaulted_models(&self) -> Vec<String> {
        let names = self.models.defaulted.lock().unwrap_or_else(PoisonError::into_inner);
        names.iter().map(|name| format!("llm.{name}")).collect()
    }

    /// Scripted answers that nobody asked for.
    pub(super) fn unused(&self) -> Vec<String> {
        let each =
            |(peer, unused): &(String, Unused)| unused().into_iter().map(|turn| format!("{peer} {turn}")).collect::<Vec<_>>();
        self.scripts.iter().flat_map(each).collect()
    }
}

/// The connector of a mocked agent: no config can name it.
fn connector_of(agent: &str) -> String {
    format!("agents.{agent}")
}

fn config(plan: &Plan<'_>) -> HostConfig {
    let mut config = HostConfig::default();
    for name in plan.mocks.mcp.keys() {
        let kind = ServerKind::External(ServerAddress::Simulated);
        config.servers.insert(ServerName::new(name), ServerConfig::plain(kind));
    }
    let asked = plan.by_default.iter().filter_map(|peer| match peer {
        Peer::Agent(name) => Some(name),
        Peer::Server(_) => None,
    });
    for name in plan.mocks.agents.keys().chain(asked) {
        let connector = Some(ConnectorName::new(connector_of(name)));
        config.agents.insert(AgentId::new(name), AgentConfig { connector, chat: true, ..AgentConfig::default() });
    }
    if plan.has_place() {
        let own = config.agents.entry(AgentId::new(plan.agent)).or_default();
        own.workspace = plan.ctx.workspace.clone().map(WorkspaceSpec::Files);
        own.computer = plan.mocks.cli.is_some();
    }
    config
}

fn natives(by_default: &BTreeSet<Peer>) -> Vec<(ServerName, NativeFactory)> {
    let named = by_default.iter().filter_map(|peer| match peer {
        Peer::Server(name) => Some(name.clone()),
        Peer::Agent(_) => None,
    });
    named
        .map(|name| {
            let server = ServerName::new(&name);
            let make: NativeFactory = Arc::new(move || Arc::new(EchoServer(name.clone())) as Arc<dyn Server>);
            (server, make)
        })
        .collect()
}

/// Scripted models; every other one answers that it is a mock.
#[derive(Debug)]
struct Models {
    scripted: BTreeMap<String, Arc<ScriptedLlm>>,
    clock: Arc<dyn Clock>,
    seed: u64,
    defaulted: Mutex<BTreeSet<String>>,
}

impl Models {
    fn new(mocks: &MocksInput, clock: &Arc<dyn Clock>, seed: u64, scripts: &mut Vec<(String, Unused)>) -> Self {
        let entropy = SeededEntropy::new(seed);
        let agents = mocks.agents.iter().map(|(name, script)| (connector_of(name), script));
        let all = mocks.llm.iter().map(|(name, script)| (name.clone(), script)).chain(agents);
        let mut scripted = BTreeMap::new();
        for (name, script) in all {
            let model = Arc::new(ScriptedLlm::new(&name, script.clone(), clock.clone(), &entropy));
            let unused = model.clone();
            let told = if name.starts_with("agents.") { name.clone() } else { format!("llm.{name}") };
            scripts.push((told, Box::new(move || unused.unused())));
            scripted.insert(name, model);
        }
        Self { scripted, clock: clock.clone(), seed, defaulted: Mutex::default() }
    }
}

#[async_trait]
impl Llm for Models {
    fn capabilities(&self) -> LlmCapabilities {
        LlmCapabilities { tools: true, streaming: true }
    }

    async fn stream(&self, request: LlmRequest, cancel: &CancellationToken) -> Result<LlmStream, LlmError> {
        let name = request.connector.as_str().to_owned();
        if let Some(model) = self.scripted.get(&name) {
            return model.stream(request, cancel).await;
        }
        let told = match name.strip_prefix("agents.") {
            Some(agent) => format!("mock answer of agent {agent}"),
            None => {
                self.defaulted.lock().unwrap_or_else(PoisonError::into_inner).insert(name.clone());
                format!("mock answer of {name}")
            }
        };
        let reply = LlmReply { text: Some(told), ..LlmReply::default() };
        let turn = LlmTurn { id: "default".to_owned(), when: LlmWhen::default(), reply, repeat: None };
        let model = ScriptedLlm::new(&name, LlmScript(vec![turn]), self.clock.clone(), &SeededEntropy::new(self.seed));
        model.stream(request, cancel).await
    }
}
