//! `greenroom replay`: a recorded session again, without network, processes or real time, compared event by event.
//!
//! Invariant: what the cassette does not hold is a miss, never a real call. Deliberately the recorded trace is the measure,
//! with times left out, as a live session's times are the machine's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use greenroom_boundary::egress::DenyAll;
use greenroom_boundary::isolate::HandOff;
use greenroom_boundary::trace::TraceEvent;
use greenroom_boundary::{CancellationToken, Clock, Credentials, Drivers, Tracer};
use greenroom_harness::cassette::redact::without_digests;
use greenroom_harness::cassette::{Cassette, RedactionKey, Redactor, Status};
use greenroom_harness::host::TurnRequest;
use greenroom_harness::replay::{RecordedStimulus, Replay, ReplayOptions};
use greenroom_harness::trace::{self, TraceLog};
use greenroom_mocks::{SeededEntropy, VirtualClock};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::recalled::Recalled;
use super::record::trace_path;
use super::terminal::say;
use super::{EngineName, Engines, world};
use crate::Host;
use crate::config::HostConfig;
use crate::front::{self, OutsideCall};
use crate::sessions::RootSession;

/// Most events of a replay.
const MAX_EVENTS: usize = 1_000_000;
/// Exit code of a replay that went another way.
const EXIT_DIVERGED: u8 = 3;

/// Arguments of `replay`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  greenroom replay session.cas -c greenroom.yaml")]
pub(super) struct ReplayArgs {
    /// The cassette.
    cassette: PathBuf,
    /// The config that the session ran under.
    #[arg(short, long)]
    config: PathBuf,
    /// Write the replay's trace here.
    #[arg(long)]
    trace: Option<PathBuf>,
    /// Compare with this trace instead of the one beside the cassette.
    #[arg(long)]
    against: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Script engine.
    #[arg(long, value_enum)]
    engine: Option<EngineName>,
}

/// What a replay found.
pub(super) struct Report {
    pub(super) events: usize,
    pub(super) differences: Vec<String>,
    pub(super) problems: Vec<String>,
    pub(super) trace: String,
    complete: bool,
}

pub(super) fn run(args: &ReplayArgs, engines: &Engines) -> anyhow::Result<ExitCode> {
    let against = args.against.clone().unwrap_or_else(|| trace_path(&args.cassette));
    let report = replay(&args.cassette, &args.config, &against, args.engine, engines)?;
    if let Some(path) = &args.trace {
        std::fs::write(path, &report.trace).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if args.json {
        say(json!({"events": report.events, "differences": report.differences, "problems": report.problems}));
    } else {
        for text in report.problems.iter().chain(&report.differences) {
            say(text);
        }
        let torn = if report.complete { "" } else { " (the recording was cut short)" };
        say(format_args!(
            "{}: {} events, {} differences{torn}",
            args.cassette.display(),
            report.events,
            report.differences.len()
        ));
    }
    let same = report.differences.is_empty() && report.problems.is_empty();
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::from(EXIT_DIVERGED) })
}

/// Replays a cassette and compares it with the trace at `against`.
pub(super) fn replay(
    path: &Path,
    config: &Path,
    against: &Path,
    engine: Option<EngineName>,
    engines: &Engines,
) -> anyhow::Result<Report> {
    let config = world::config(config)?;
    let engine = engines.get(engine)?;
    let cassette = Cassette::load(path)?;
    let Some(started) = cassette.started() else { bail!("{}: the head names no usable start", path.display()) };
    let complete = cassette.status == Status::Complete;
    let clock = VirtualClock::new(started, 0);
    let credentials = Credentials::default();
    // Digests are left out of the comparison, so any key serves.
    let redactor = Redactor::new(credentials.clone(), RedactionKey::new("replay"));
    for (name, value) in &config.secrets {
        credentials.register(name.clone(), value.clone());
    }
    let options = ReplayOptions {
        stimuli: true,
        clock: Some(clock.clone()),
        credentials: credentials.clone(),
        ..ReplayOptions::default()
    };
    let seed = cassette.head.seed;
    let replay = Replay::of(cassette, options);
    let log = TraceLog::new(MAX_EVENTS);
    let shared: Arc<dyn Clock> = Arc::new(clock.clone());
    let drivers = Drivers {
        llm: replay.llm(),
        mcp: replay.mcp(),
        cli: replay.cli(),
        isolate: engine,
        tracer: Tracer::new(shared.clone(), Arc::new(log.clone())),
        clock: shared,
        entropy: Arc::new(SeededEntropy::new(seed)),
        egress: Arc::new(DenyAll),
        search: Arc::new(greenroom_boundary::search::DenySearch),
        workspaces: Arc::new(greenroom_mocks::workspace::MemoryWorkspaces::new(Arc::new(clock.clone()))),
        audit: Arc::new(greenroom_boundary::audit::DenyAudit),
        credentials,
    };
    let runtime = clock.runtime().context("no runtime")?;
    let stuck = Arc::new(Notify::new());
    let idle = stuck.clone();
    clock.set_idle_hook(move || idle.notify_one());
    let stopped = runtime.block_on(drive(config, drivers, &replay, &stuck));
    let events = log.events();
    let text =
        std::fs::read_to_string(against).with_context(|| format!("cannot read the recorded trace {}", against.display()))?;
    let recorded = complete_lines(&text)?;
    // A session that was cut short says nothing about what comes after its end.
    let compared = if complete { events.len() } else { events.len().min(recorded.len()) };
    let differences = differences(&recorded, &events[..compared], &redactor);
    let mut problems: Vec<String> = replay
        .unused()
        .iter()
        .map(|unused| format!("never asked for: #{} {} {}", unused.seq, unused.lane, unused.op))
        .collect();
    if complete || !differences.is_empty() || !problems.is_empty() {
        problems.splice(0..0, replay.problems().iter().map(ToString::to_string).chain(stopped));
    }
    Ok(Report { events: events.len(), differences, problems, trace: trace::to_jsonl(&events), complete })
}

/// The events of a trace file; a torn last line is left out.
fn complete_lines(text: &str) -> anyhow::Result<Vec<TraceEvent>> {
    let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
    trace::parse(whole).map_err(Into::into)
}

/// Gives the recorded inputs to a host. The answer says where it stopped, if nothing could happen any more: what should
/// come next waits for something that this host did not do.
async fn drive(config: HostConfig, drivers: Drivers, replay: &Arc<Replay>, stuck: &Notify) -> Option<String> {
    let host = Host::start(config, drivers, HandOff::Strict);
    let mut tasks = JoinSet::new();
    let mut sessions: BTreeMap<String, (Arc<RootSession>, Recalled)> = BTreeMap::new();
    let tracer = host.core().drivers.tracer.clone();
    let inputs = replay.stimuli().len();
    let mut given = 0;
    let everything = async {
        while given < inputs {
            let Some(stimulus) = replay.next_stimulus().await else { break };
            given += 1;
            let (host, replay) = (host.clone(), replay.clone());
            let session = stimulus.body.get("session").and_then(Value::as_str).unwrap_or_default().to_owned();
            let begin = || (host.core().begin_session(), Recalled::new(&replay, tracer.clone(), &session));
            let from = sessions.entry(session.clone()).or_insert_with(begin).clone();
            tasks.spawn(async move {
                let seq = stimulus.seq;
                answer(&host, from, stimulus).await;
                replay.stimulus_ended(seq);
            });
        }
        while tasks.join_next().await.is_some() {}
    };
    let ended = tokio::select! {
        biased;
        () = everything => true,
        () = stuck.notified() => false,
    };
    if ended {
        host.shutdown().await;
        return None;
    }
    Some(format!("the replay came to a stop: it gave {given} of {inputs} recorded inputs, and nothing more could happen"))
}

async fn answer(host: &Host, (root, client): (Arc<RootSession>, Recalled), stimulus: RecordedStimulus) {
    let body = &stimulus.body;
    let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    if stimulus.kind == "turn" {
        let metadata = body.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
        let turn = TurnRequest { id: stimulus.scope, agent: text("agent"), user: text("user"), metadata, chat: None };
        host.turn(turn, &CancellationToken::new()).await;
    } else if stimulus.kind.starts_with("notifications/") {
        let params = body.get("params").filter(|params| !params.is_null()).and_then(|params| to_raw_value(params).ok());
        front::told(host, &root, &text("session"), &stimulus.kind, params.as_deref());
    } else {
        let params = body.get("params").cloned().unwrap_or_default();
        let hello = (stimulus.kind == "initialize").then(|| client.introduced(&params));
        let progress = body.get("progressToken").map(|token| (token.clone(), client.progress(token.clone())));
        let call = OutsideCall {
            id: stimulus.scope,
            root: root.clone(),
            session: text("session"),
            method: stimulus.kind,
            params,
            raw: None,
            cancel: CancellationToken::new(),
            progress,
        };
        // The answer is in the trace.
        let answered = front::answer(host, call).await;
        if let Some(client) = hello.filter(|_| answered.is_ok()) {
            root.introduce(Arc::new(client));
        }
    }
}

/// Where two traces part, times aside; at most the first 10 places are told.
fn differences(recorded: &[TraceEvent], replayed: &[TraceEvent], redactor: &Redactor) -> Vec<String> {
    const TOLD: usize = 10;
    let stable = |event: &TraceEvent| without_digests(&redactor.json(&trace::line(&TraceEvent { vt: 0, ..event.clone() })));
    let mut found = Vec::new();
    for index in 0..recorded.len().max(replayed.len()) {
        let (left, right) = (recorded.get(index).map(stable), replayed.get(index).map(stable));
        if left != right {
            let show =
                |line: Option<String>| line.unwrap_or_else(|| "nothing".to_owned()).chars().take(300).collect::<String>();
            found.push(format!("#{index}\n  recorded {}\n  replayed {}", show(left), show(right)));
            if found.len() == TOLD {
                break;
            }
        }
    }
    found
}
