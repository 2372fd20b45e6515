//! The real world for a host: drivers, log, environment.
//!
//! Invariant: a host may contact only what its config names. Deliberately no host logic.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use greenroom_boundary::audit::DenyAudit;
use greenroom_boundary::mcp::ServerAddress;
use greenroom_boundary::trace::TraceSink;
use greenroom_boundary::{
    AuditSink, Clock, Credentials, Drivers, Egress, Entropy, IsolateDriver, Llm, McpConnector, Search, Tracer,
};

use crate::config::{AuditTarget, HostConfig, ServerKind, Variables, load_file};
use crate::drivers::audit::{FileAudit, HttpAudit};
use crate::drivers::llm::{LlmProviders, LlmWorld, ProviderSettings};
use crate::drivers::mcp::RealMcp;
use crate::drivers::sandbox::{ChildEnvironment, ChildKeeper, ConfinedCli};
use crate::drivers::search::ConfiguredSearch;
use crate::drivers::{EgressPolicy, FolderWorkspaces, HttpEgress, SystemClock};

/// Starts the log on stderr.
#[expect(clippy::disallowed_methods, reason = "the command line reads the environment")]
pub(super) fn start_logging(verbose: u8) {
    let default = match verbose {
        0 => "warn",
        1 => "greenroom=info,warn",
        _ => "greenroom=debug,info",
    };
    let filter = std::env::var("GREENROOM_LOG").unwrap_or_else(|_| default.to_owned());
    let layer = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::try_new(&filter).unwrap_or_else(|_| default.into()))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // A second start (in tests) keeps the first log.
    let _ = layer.try_init();
}

/// The process's environment, for `${NAME}`.
#[expect(clippy::disallowed_methods, reason = "the command line reads the environment")]
pub(super) fn variables() -> Variables {
    Variables::new(std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?))))
}

/// Loads a config with the process's environment.
pub(super) fn config(path: &Path) -> anyhow::Result<HostConfig> {
    load_file(path, &variables()).map_err(Into::into)
}

/// Real drivers for a config.
pub(super) fn drivers(
    config: &HostConfig,
    engine: Arc<dyn IsolateDriver>,
    entropy: Arc<dyn Entropy>,
    sink: Arc<dyn TraceSink>,
) -> anyhow::Result<Drivers> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let credentials = Credentials::default();
    for (name, value) in &config.secrets {
        credentials.register(name.clone(), value.clone());
    }
    let reach = Reach::of(config, &clock, &credentials)?;
    Ok(Drivers {
        llm: reach.llm,
        mcp: reach.mcp,
        cli: Arc::new(
            ConfinedCli::new(clock.clone(), ChildEnvironment::of_this_process()).kept_by(ChildKeeper::this_program()),
        ),
        isolate: engine,
        tracer: Tracer::new(clock.clone(), sink),
        clock,
        entropy,
        egress: reach.egress,
        search: reach.search,
        workspaces: Arc::new(FolderWorkspaces),
        audit: reach.audit,
        credentials,
    })
}

/// The drivers of a running host for another config: the rest of its world stays.
pub(super) fn drivers_anew(drivers: &Drivers, config: &HostConfig) -> anyhow::Result<Drivers> {
    let reach = Reach::of(config, &drivers.clock, &drivers.credentials)?;
    Ok(Drivers {
        llm: reach.llm,
        mcp: reach.mcp,
        egress: reach.egress,
        search: reach.search,
        audit: reach.audit,
        ..drivers.clone()
    })
}

/// What a config says may be reached.
struct Reach {
    llm: Arc<dyn Llm>,
    mcp: Arc<dyn McpConnector>,
    egress: Arc<dyn Egress>,
    search: Arc<dyn Search>,
    audit: Arc<dyn AuditSink>,
}

impl Reach {
    fn of(config: &HostConfig, clock: &Arc<dyn Clock>, credentials: &Credentials) -> anyhow::Result<Self> {
        let egress: Arc<dyn Egress> = Arc::new(egress_of(config)?);
        let world = LlmWorld { egress: egress.clone(), clock: clock.clone(), credentials: credentials.clone() };
        let providers = provider_settings(config);
        let environment = ChildEnvironment::of_this_process();
        Ok(Self {
            llm: Arc::new(LlmProviders::new(&providers, &world)?),
            mcp: Arc::new(
                RealMcp::new(clock.clone(), egress.clone(), credentials.clone(), environment)
                    .kept_by(ChildKeeper::this_program()),
            ),
            search: Arc::new(ConfiguredSearch::new(&config.search, egress.clone(), clock.clone())?),
            audit: audit_of(config, &egress, clock)?,
            egress: script_egress(config, clock)?,
        })
    }
}

fn audit_of(config: &HostConfig, egress: &Arc<dyn Egress>, clock: &Arc<dyn Clock>) -> anyhow::Result<Arc<dyn AuditSink>> {
    Ok(match config.audit.as_ref().map(|audit| &audit.target) {
        None => Arc::new(DenyAudit),
        Some(AuditTarget::File(path)) => Arc::new(FileAudit::new(path.clone())),
        Some(AuditTarget::Http { url, headers }) => Arc::new(HttpAudit::new(url, headers, egress.clone(), clock.clone())?),
    })
}

fn provider_settings(config: &HostConfig) -> BTreeMap<String, ProviderSettings> {
    config
        .providers
        .iter()
        .map(|(name, provider)| {
            let settings = ProviderSettings {
                dialect: provider.dialect.clone(),
                api_key: provider.api_key.clone(),
                base_url: provider.base_url.clone(),
                headers: provider.headers.clone(),
            };
            (name.to_string(), settings)
        })
        .collect()
}

/// What scripts may fetch: the hosts that `egress.allow` names, and nothing else.
fn script_egress(config: &HostConfig, clock: &Arc<dyn Clock>) -> anyhow::Result<Arc<dyn Egress>> {
    let policy = EgressPolicy::parse(config.egress_allow.iter().map(String::as_str)).context("egress.allow")?;
    Ok(Arc::new(HttpEgress::new(policy, clock.clone())?))
}

/// Allows the addresses that the config names, and nothing else.
fn egress_of(config: &HostConfig) -> anyhow::Result<EgressPolicy> {
    let servers = config.servers.values().filter_map(|server| match &server.kind {
        ServerKind::External(ServerAddress::Http { url, .. }) => Some(url.as_str()),
        _ => None,
    });
    let providers = config.providers.values().filter_map(|provider| provider.base_url.as_deref());
    let audit = config.audit.iter().filter_map(|audit| match &audit.target {
        AuditTarget::Http { url, .. } => Some(url.as_str()),
        AuditTarget::File(_) => None,
    });
    let mut rules = vec!["api.openai.com:443".to_owned()];
    let web = config.search.web.iter().map(|web| web.url.as_str());
    for url in servers.chain(providers).chain(audit).chain(web) {
        let parsed = reqwest::Url::parse(url).with_context(|| format!("{url:?} is no address"))?;
        let host = parsed.host_str().with_context(|| format!("{url:?} names no host"))?;
        rules.push(format!("{host}:{}", parsed.port_or_known_default().unwrap_or(443)));
    }
    EgressPolicy::parse(rules.iter().map(String::as_str)).map_err(Into::into)
}
