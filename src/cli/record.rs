//! `greenroom record`: a real session to a cassette, or a scenario's cassettes made anew.
//!
//! Invariant: what is recorded is on disk event by event, secrets masked; a killed recording keeps its complete events.
//! Deliberately the session's trace lies beside the cassette, so that a replay can be compared with it.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use clap::Args;
use greenroom_boundary::isolate::HandOff;
use greenroom_boundary::trace::{NoTrace, TraceEvent, TraceSink};
use greenroom_boundary::{CancellationToken, Drivers, Entropy as _, Tracer};
use greenroom_harness::cassette::line::HostInfo;
use greenroom_harness::cassette::{RedactionKey, Redactor};
use greenroom_harness::host::TurnRequest;
use greenroom_harness::load::{LoadOptions, load_suite};
use greenroom_harness::record::{HeadSpec, Recording, RecordingCli, RecordingLlm, RecordingMcp, RecordingTap, let_in};
use greenroom_harness::run::{RunOptions, run_suite};
use greenroom_harness::trace;
use greenroom_mocks::SeededEntropy;
use greenroom_wire::FrameDuplex;
use greenroom_wire::http::server::{Acceptor, Refusal, ServerOptions, SessionInfo};

use super::live::RealWorld;
use super::serve::stop_on_interrupt;
use super::terminal::say;
use super::{EngineName, Engines, world};
use crate::Host;
use crate::drivers::OsEntropy;
use crate::front::{self, Arrival};
use crate::http::HttpFront;
use crate::rehearsal::InProcess;

/// Arguments of `record`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  greenroom record -c greenroom.yaml -o session.cas --turn 'desk=How much is invoice A-17?'\n  \
                        greenroom record -c greenroom.yaml -o session.cas --listen 127.0.0.1:8080\n  \
                        greenroom record scenarios/real"
)]
pub(super) struct RecordArgs {
    /// Scenarios whose cassettes are made anew from their live drivers.
    scenarios: Vec<PathBuf>,
    /// The config of a session to record.
    #[arg(short, long, required_unless_present = "scenarios")]
    config: Option<PathBuf>,
    /// The cassette of the session.
    #[arg(short, long, required_unless_present = "scenarios")]
    output: Option<PathBuf>,
    /// Run this turn, AGENT=TEXT (repeatable, in order).
    #[arg(long)]
    turn: Vec<String>,
    /// Serve outside clients at this address until interrupted.
    #[arg(short, long, conflicts_with = "turn")]
    listen: Option<String>,
    /// Script engine.
    #[arg(long, value_enum)]
    engine: Option<EngineName>,
}

pub(super) fn run(args: &RecordArgs, engines: &Engines) -> anyhow::Result<ExitCode> {
    if !args.scenarios.is_empty() {
        return scenarios(args, engines);
    }
    match (&args.config, &args.output) {
        (Some(config), Some(output)) => session(args, config, output, engines),
        _ => bail!("give scenarios, or --config and --output"),
    }
}

fn scenarios(args: &RecordArgs, engines: &Engines) -> anyhow::Result<ExitCode> {
    let cases = load_suite(&args.scenarios, LoadOptions::default()).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}", texts.join("\n"))
    })?;
    let cases: Vec<_> = cases.into_iter().map(Arc::new).collect();
    let mut options = RunOptions::new(engines.get(args.engine)?);
    options.live = Some(Arc::new(RealWorld));
    options.record = true;
    let factory: Arc<dyn greenroom_harness::host::HostFactory> = Arc::new(InProcess::default());
    let suite = run_suite(&cases, &factory, &options, 1, &|result| {
        say(format_args!("{} {}", result.verdict.as_str(), result.id));
        for failure in &result.failures {
            say(format_args!("  {}: {}", failure.code, failure.message));
        }
    });
    Ok(ExitCode::from(suite.exit_code()))
}

/// Writes each event of the trace at once, secrets masked like the cassette's.
struct TraceFile {
    file: std::sync::Mutex<std::fs::File>,
    redactor: Redactor,
}

impl TraceSink for TraceFile {
    fn emit(&self, event: TraceEvent) {
        use std::io::Write as _;
        let line = self.redactor.json(&trace::line(&event));
        let mut file = self.file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Err(error) = writeln!(file, "{line}") {
            tracing::error!("the trace cannot be written: {error}");
        }
    }
}

/// Where the trace of a cassette lies.
pub(super) fn trace_path(cassette: &Path) -> PathBuf {
    let mut name = cassette.as_os_str().to_owned();
    name.push(".trace.jsonl");
    PathBuf::from(name)
}

/// The turns that the command line asks for.
fn turns(texts: &[String]) -> anyhow::Result<Vec<TurnRequest>> {
    let turn = |(index, text): (usize, &String)| {
        let (agent, user) = text.split_once('=').with_context(|| format!("--turn {text:?}: write AGENT=TEXT"))?;
        let id = format!("t{}", index + 1);
        Ok(TurnRequest { id, agent: agent.to_owned(), user: user.to_owned(), ..TurnRequest::default() })
    };
    texts.iter().enumerate().map(turn).collect()
}

fn session(args: &RecordArgs, config: &Path, output: &Path, engines: &Engines) -> anyhow::Result<ExitCode> {
    let turns = turns(&args.turn)?;
    if turns.is_empty() && args.listen.is_none() {
        bail!("nothing to record: give --turn AGENT=TEXT, or --listen ADDRESS");
    }
    if output.exists() {
        bail!("{} exists; remove it or choose another name", output.display());
    }
    let config = world::config(config)?;
    let engine = engines.get(args.engine)?;
    // JSON numbers are exact up to 2^53.
    let seed = OsEntropy.next_u64() >> 11;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(async {
        // Before any file is made, so that a busy address leaves none behind.
        let front = match &args.listen {
            Some(address) => Some(HttpFront::bind(address).await.with_context(|| format!("cannot listen at {address}"))?),
            None => None,
        };
        let key = RedactionKey::generate(&OsEntropy);
        let real = world::drivers(&config, engine, Arc::new(SeededEntropy::new(seed)), Arc::new(NoTrace))?;
        let redactor = Redactor::new(real.credentials.clone(), key.clone());
        let head = HeadSpec {
            seed,
            spec: config.policy.spec.clone(),
            host: HostInfo {
                name: "greenroom".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                ..HostInfo::default()
            },
            ..HeadSpec::default()
        };
        let recording = Recording::start(output, head, real.clock.clone(), &OsEntropy, real.credentials.clone(), Some(key))?;
        // After the cassette is claimed, so that a recording that may not start leaves the other's trace alone.
        let path = trace_path(output);
        let file = std::fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let sink: Arc<dyn TraceSink> = Arc::new(TraceFile { file: std::sync::Mutex::new(file), redactor });
        let tap: Arc<dyn TraceSink> = Arc::new(RecordingTap::new(sink, recording.clone()));
        let drivers = Drivers {
            llm: Arc::new(RecordingLlm::new(real.llm.clone(), recording.clone())),
            mcp: Arc::new(RecordingMcp::new(real.mcp.clone(), recording.clone())),
            cli: Arc::new(RecordingCli::new(real.cli.clone(), recording.clone())),
            tracer: Tracer::new(real.clock.clone(), tap),
            ..real
        };
        let real_clock = drivers.clock.clone();
        // Strict turns of scripts and runtime, so that a replay can come to the same order.
        let host = Host::start(config, drivers, HandOff::Strict);
        let mut failed = false;
        if let Some(front) = front {
            eprintln!("recording to {}; MCP at {}; Ctrl-C ends", output.display(), front.url());
            let (clock, entropy) = (real_clock, host.core().drivers.entropy.clone());
            let clients = Arc::new(RecordedClients { host: host.clone(), recording: recording.clone() });
            front.accept(clients, clock, ServerOptions::new(entropy), stop_on_interrupt()).await?;
        }
        for request in turns {
            let reply = host.turn(request, &CancellationToken::new()).await;
            match &reply.error {
                Some(error) => {
                    failed = true;
                    eprintln!("{}: {}", error.code, error.message);
                }
                None if reply.text.is_empty() && !reply.data.is_null() => say(&reply.data),
                None => say(&reply.text),
            }
        }
        host.shutdown().await;
        let report = recording.seal()?;
        eprintln!("{}: {} events, {} exchanges", report.path.display(), report.events, report.exchanges);
        Ok(ExitCode::from(u8::from(failed)))
    })
}

/// Takes outside clients; what they send is let in one by one.
struct RecordedClients {
    host: Host,
    recording: Arc<Recording>,
}

#[async_trait]
impl Acceptor for RecordedClients {
    async fn accept(&self, session: SessionInfo, duplex: FrameDuplex) -> Result<(), Refusal> {
        let (host, duplex) = (self.host.clone(), let_in(&self.recording, duplex));
        // A replay has no address: what hooks see must not depend on one.
        let arrival = Arrival { name: None, streams: session.streams, address: None };
        tokio::spawn(async move { front::serve_as(&host, duplex, arrival).await });
        Ok(())
    }
}
