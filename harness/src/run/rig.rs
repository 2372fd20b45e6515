//! Builds the drivers of a case from its `drivers:` section.
//!
//! Invariant: a boundary that the section does not list is denied; a real driver stands only where the section says so.
//! Deliberately no host and no steps.

use std::path::Path;
use std::sync::Arc;

use greenroom_boundary::audit::DenyAudit;
use greenroom_boundary::clock::{MonoNanos, UnixNanos};
use greenroom_boundary::egress::DenyAll;
use greenroom_boundary::search::DenySearch;
use greenroom_boundary::{
    BoxFuture, CliRunner, Clock, Credentials, Drivers, Egress, Entropy, Llm, McpConnector, Search, Tracer,
};
use greenroom_mocks::cli::{DenyCli, ScriptedCli};
use greenroom_mocks::client::{ClientScript, ScriptedClient};
use greenroom_mocks::egress::ScriptedEgress;
use greenroom_mocks::isolate::MockIsolate;
use greenroom_mocks::llm::{DenyLlm, ScriptedLlm};
use greenroom_mocks::mcp::{DenyMcp, ScriptedMcp};
use greenroom_mocks::search::ScriptedSearch;
use greenroom_mocks::workspace::MemoryWorkspaces;
use greenroom_mocks::{SeededEntropy, VirtualClock};

use super::egress::AllowList;
use super::mishaps;
use super::own_isolate::OwnIsolate;
use super::switch::{Named, Retarget};
use super::tapes::{TapeWorld, Tapes};
use super::{LiveDrivers, LiveError, LiveWorld, RunOptions};
use crate::faults::{FaultPlan, FaultyLlm, FaultyMcp};
use crate::live::{HoldingCli, HoldingLlm, HoldingMcp};
use crate::model::{
    CliDriver, ClockDriver, EgressDriver, IdsDriver, IsolateDriver, Live, LlmDriver, McpDriver, Scenario, SearchDriver,
};
use crate::record::{RecordingCli, RecordingLlm, RecordingMcp};
use crate::replay::Replay;
use crate::trace::TraceLog;

/// What the wall clock shows at the start of a scenario that does not say: 2026-01-01T00:00:00Z.
const DEFAULT_START: UnixNanos = UnixNanos(1_767_225_600_000_000_000);

/// A case whose drivers cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(super) struct RigError {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) line: u32,
}

impl RigError {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), line: 1 }
    }

    /// The same, about this line of the scenario.
    pub(super) fn at(self, line: u32) -> Self {
        Self { line, ..self }
    }
}

impl From<LiveError> for RigError {
    fn from(error: LiveError) -> Self {
        Self::new(error.code, error.message)
    }
}

/// The clock of a case.
#[derive(Clone, Debug)]
pub(super) enum StageClock {
    Virtual(VirtualClock),
    System(Arc<dyn Clock>),
}

impl StageClock {
    pub(super) fn driver(&self) -> Arc<dyn Clock> {
        match self {
            Self::Virtual(clock) => Arc::new(clock.clone()),
            Self::System(clock) => clock.clone(),
        }
    }

    pub(super) fn now(&self) -> MonoNanos {
        self.driver().now()
    }

    /// Waits until `deadline`; on the virtual clock, until all that happens at it has happened.
    pub(super) fn sleep_until_last(&self, deadline: MonoNanos) -> BoxFuture<'static, ()> {
        match self {
            Self::Virtual(clock) => clock.sleep_until_last(deadline),
            Self::System(clock) => clock.sleep_until(deadline),
        }
    }

    /// Waits until nothing can happen without time passing. Nobody can know that of a system clock.
    pub(super) async fn settle(&self) {
        match self {
            Self::Virtual(clock) => clock.settle().await,
            Self::System(_) => tokio::task::yield_now().await,
        }
    }

    pub(super) fn pending_timers(&self) -> Option<usize> {
        match self {
            Self::Virtual(clock) => Some(clock.pending_timers()),
            Self::System(_) => None,
        }
    }

    pub(super) fn runtime(&self) -> std::io::Result<tokio::runtime::Runtime> {
        match self {
            Self::Virtual(clock) => clock.runtime(),
            Self::System(_) => tokio::runtime::Builder::new_current_thread().enable_all().build(),
        }
    }
}

type Unused = Box<dyn Fn() -> Vec<String> + Send>;

/// The drivers of a case, and what will be asked of them at its end.
pub(super) struct Rig {
    pub(super) drivers: Drivers,
    pub(super) tapes: Tapes,
    pub(super) faults: Option<FaultPlan>,
    pub(super) clients: Vec<ScriptedClient>,
    scripts: Vec<(String, Unused)>,
}

impl Rig {
    /// Scripted answers that were never given, by boundary; none if nothing is scripted.
    pub(super) fn unused_script(&self) -> Option<Vec<String>> {
        if self.scripts.is_empty() {
            return None;
        }
        let each = |(boundary, unused): &(String, Unused)| {
            unused().into_iter().map(|turn| format!("{boundary} {turn}")).collect::<Vec<_>>()
        };
        Some(self.scripts.iter().flat_map(each).collect())
    }
}

/// The clock of a scenario under a seed.
pub(super) fn clock(scenario: &Scenario, seed: u64, options: &RunOptions) -> Result<StageClock, RigError> {
    match &scenario.drivers.clock {
        ClockDriver::Virtual(spec) => {
            let start = spec.start.as_deref().map_or(Ok(DEFAULT_START), wall_start)?;
            Ok(StageClock::Virtual(VirtualClock::new(start, seed)))
        }
        ClockDriver::System(_) => Ok(StageClock::System(live(options, "clock")?.clock())),
    }
}

fn wall_start(text: &str) -> Result<UnixNanos, RigError> {
    let full = if text.len() == 20 { text.replace('Z', ".000Z") } else { text.to_owned() };
    crate::cassette::stamp::parse(&full).ok_or_else(|| {
        RigError::new("CLOCK_START", format!("`{text}` is no start for the clock: write it as 2026-08-01T09:00:00Z"))
    })
}

fn live<'o>(options: &'o RunOptions, boundary: &str) -> Result<&'o Arc<dyn LiveDrivers>, RigError> {
    options.live.as_ref().ok_or_else(|| {
        RigError::new("LIVE_UNAVAILABLE", format!("{boundary} asks for a real driver, and this run has none: it is offline"))
    })
}

/// Builds all drivers.
pub(super) fn build(
    scenario: &Scenario,
    base: &Path,
    seed: u64,
    clock: &StageClock,
    log: &TraceLog,
    credentials: &Credentials,
    options: &RunOptions,
) -> Result<Rig, RigError> {
    let driver = clock.driver();
    let seeded = SeededEntropy::new(seed);
    let mut scripts: Vec<(String, Unused)> = Vec::new();
    let egress: Arc<dyn Egress> = match &scenario.drivers.egress {
        EgressDriver::Deny(_) => Arc::new(DenyAll),
        EgressDriver::Allow(hosts) => match &options.live {
            Some(live) => live.egress(hosts, &driver)?,
            None => Arc::new(AllowList(hosts.clone())),
        },
        EgressDriver::Script(script) => {
            let scripted = Arc::new(ScriptedEgress::new(script.clone(), driver.clone()));
            let unused = scripted.clone();
            scripts.push(("egress".to_owned(), Box::new(move || unused.unused())));
            scripted
        }
    };
    let entropy: Arc<dyn Entropy> = match &scenario.drivers.ids {
        IdsDriver::Seeded(_) => Arc::new(seeded.derive("host")),
        IdsDriver::System(_) => live(options, "ids")?.entropy(),
    };
    let isolate: Arc<dyn greenroom_boundary::IsolateDriver> = match &scenario.drivers.isolate {
        IsolateDriver::Builtin(_) => Arc::new(OwnIsolate::new(options.engine.clone())),
        IsolateDriver::Script(script) => {
            let engine = Arc::new(MockIsolate::scripted(script.clone()));
            let unused = engine.clone();
            scripts.push(("isolate".to_owned(), Box::new(move || unused.unused())));
            engine
        }
    };
    let search: Arc<dyn Search> = match &scenario.drivers.search {
        Some(SearchDriver::Script(script)) => {
            let search = ScriptedSearch::new(script.clone(), driver.clone());
            let unused = search.clone();
            scripts.push(("search".to_owned(), Box::new(move || unused.unused())));
            Arc::new(search)
        }
        None | Some(SearchDriver::Deny(_)) => Arc::new(DenySearch),
    };
    let workspaces = Arc::new(MemoryWorkspaces::new(driver.clone()));
    let credentials = credentials.clone();
    let world = LiveWorld { clock: driver.clone(), credentials: credentials.clone(), egress: egress.clone() };
    let recorder = seeded.derive("cassette");
    let tape_world = TapeWorld { base, clock, credentials: &credentials, entropy: &recorder, seed, options };
    let tapes = Tapes::open(scenario, &tape_world)?;
    let tracer = Tracer::new(driver.clone(), tapes.sink(log));
    let mut parts = Parts { world, base, options, seeded, tapes, scripts };
    let llm = parts.llms(scenario)?;
    let mcp = parts.servers(scenario)?;
    let cli = parts.runners(scenario)?;
    let Parts { mut scripts, tapes, .. } = parts;
    let client = |(name, script): (&String, &ClientScript)| ScriptedClient::new(name, script.clone(), driver.clone());
    let clients: Vec<ScriptedClient> = scenario.drivers.client.iter().map(client).collect();
    for client in clients.clone() {
        scripts.push((format!("client.{}", client.name()), Box::new(move || client.unused())));
    }
    let faults = mishaps::plan(scenario)?;
    let (llm, mcp) = match &faults {
        None => (llm, mcp),
        Some(plan) => (
            Arc::new(FaultyLlm::new(llm, plan.clone(), driver.clone(), tracer.clone())) as Arc<dyn Llm>,
            Arc::new(FaultyMcp::new(mcp, plan.clone(), driver.clone(), tracer.clone())) as Arc<dyn McpConnector>,
        ),
    };
    Ok(Rig {
        drivers: Drivers {
            llm,
            mcp,
            cli,
            isolate,
            clock: driver,
            entropy,
            egress,
            search,
            workspaces,
            audit: Arc::new(DenyAudit),
            tracer,
            credentials,
        },
        tapes,
        faults,
        clients,
        scripts,
    })
}

struct Parts<'b> {
    world: LiveWorld,
    base: &'b Path,
    options: &'b RunOptions,
    seeded: SeededEntropy,
    tapes: Tapes,
    scripts: Vec<(String, Unused)>,
}

impl Parts<'_> {
    fn llms(&mut self, scenario: &Scenario) -> Result<Arc<dyn Llm>, RigError> {
        let mut all: Vec<(String, Arc<dyn Llm>)> = Vec::new();
        for (name, driver) in &scenario.drivers.llm {
            let made: Arc<dyn Llm> = match driver {
                LlmDriver::Script(script) => {
                    let model = Arc::new(ScriptedLlm::new(name, script.clone(), self.world.clock.clone(), &self.seeded));
                    let unused = model.clone();
                    self.scripts.push((format!("llm.{name}"), Box::new(move || unused.unused())));
                    model
                }
                LlmDriver::Live(peer) => self.live_llm(name, peer)?,
                LlmDriver::Replay(replay) => self.replay(&replay.cassette)?.llm(),
                LlmDriver::Record(record) => match self.tapes.recording(&record.cassette).cloned() {
                    Some(recording) => Arc::new(RecordingLlm::new(self.live_llm(name, &record.live)?, recording)),
                    None => self.replay(&record.cassette)?.llm(),
                },
                LlmDriver::Deny(_) => Arc::new(DenyLlm),
            };
            all.push((name.clone(), made));
        }
        Ok(Arc::new(Named::<dyn Llm>::new(all)))
    }

    fn live_llm(&self, name: &str, peer: &Live) -> Result<Arc<dyn Llm>, RigError> {
        let inner = live(self.options, &format!("llm.{name}"))?.llm(name, peer, &self.world)?;
        Ok(Arc::new(HoldingLlm::new(inner, self.world.clock.clone())))
    }

    fn servers(&mut self, scenario: &Scenario) -> Result<Arc<dyn McpConnector>, RigError> {
        let mut all: Vec<(String, Arc<dyn McpConnector>)> = Vec::new();
        for (name, driver) in &scenario.drivers.mcp {
            let made: Arc<dyn McpConnector> = match driver {
                McpDriver::Script(script) => {
                    let server = ScriptedMcp::new(script.clone(), self.world.clock.clone());
                    let unused = server.clone();
                    self.scripts.push((format!("mcp.{name}"), Box::new(move || unused.unused())));
                    Arc::new(server)
                }
                McpDriver::Live(peer) => self.live_server(name, peer)?,
                McpDriver::Replay(replay) => self.replay(&replay.cassette)?.mcp(),
                McpDriver::Record(record) => match self.tapes.recording(&record.cassette).cloned() {
                    Some(recording) => Arc::new(RecordingMcp::new(self.live_server(name, &record.live)?, recording)),
                    None => self.replay(&record.cassette)?.mcp(),
                },
                McpDriver::Deny(_) => Arc::new(DenyMcp),
            };
            all.push((name.clone(), made));
        }
        Ok(Arc::new(Named::<dyn McpConnector>::new(all)))
    }

    fn live_server(&self, name: &str, peer: &Live) -> Result<Arc<dyn McpConnector>, RigError> {
        let inner = live(self.options, &format!("mcp.{name}"))?.mcp(&self.world);
        let inner = Arc::new(Retarget { address: Retarget::address(peer, self.base), inner });
        Ok(Arc::new(HoldingMcp::new(inner, self.world.clock.clone())))
    }

    fn live_runner(&self, name: &str, peer: &Live) -> Result<Arc<dyn CliRunner>, RigError> {
        let inner = live(self.options, &format!("cli.{name}"))?.cli(peer, &self.world);
        Ok(Arc::new(HoldingCli::new(inner, self.world.clock.clone())))
    }

    fn replay(&self, cassette: &str) -> Result<Arc<Replay>, RigError> {
        self.tapes.replay(cassette).cloned().ok_or_else(|| {
            RigError::new("CASSETTE_BOTH", format!("{cassette} is being recorded and cannot be replayed in the same run"))
        })
    }

    fn runners(&mut self, scenario: &Scenario) -> Result<Arc<dyn CliRunner>, RigError> {
        let mut all: Vec<(String, Arc<dyn CliRunner>)> = Vec::new();
        for (name, driver) in &scenario.drivers.cli {
            let made: Arc<dyn CliRunner> = match driver {
                CliDriver::Script(script) => {
                    let runner = ScriptedCli::new(script.clone(), self.world.clock.clone());
                    let unused = runner.clone();
                    self.scripts.push((format!("cli.{name}"), Box::new(move || unused.unused())));
                    Arc::new(runner)
                }
                CliDriver::Live(peer) => self.live_runner(name, peer)?,
                CliDriver::Replay(replay) => self.replay(&replay.cassette)?.cli(),
                CliDriver::Record(record) => match self.tapes.recording(&record.cassette).cloned() {
                    Some(recording) => Arc::new(RecordingCli::new(self.live_runner(name, &record.live)?, recording)),
                    None => self.replay(&record.cassette)?.cli(),
                },
                CliDriver::Deny(_) => Arc::new(DenyCli),
            };
            all.push((name.clone(), made));
        }
        Ok(Arc::new(Named::<dyn CliRunner>::new(all)))
    }
}
