//! The soak itself: sessions side by side, a sample at intervals, a table, a page, a verdict.
//!
//! Invariant: it ends within its time, and says what it did and did not do. Deliberately one process: the hosts and their
//! clients share it, so whatever leaks is seen.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use greenroom::cli::{EngineName, Engines};
use greenroom::drivers::SystemClock;
use greenroom::host::Host;
use greenroom::http::HttpFront;
use greenroom_boundary::clock::sleep;
use greenroom_boundary::{CancellationToken, Clock, IsolateDriver};
use serde_json::json;
use tokio::task::JoinSet;

use super::client::{Counts, Hosts, play};
use super::plan::HostKind;
use super::sample::Sample;
use super::verdict::{RULE, Row, judge};
use super::{chart, world};

const SAMPLE_EVERY: Duration = Duration::from_millis(500);
/// How long the last processes and threads may take to be gone.
const SETTLE: Duration = Duration::from_secs(15);
/// Most surprises that are printed.
const SHOWN: usize = 5;

/// What is soaked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Subject {
    /// Sessions of outside clients, with calls to servers of every kind, some of which crash or hang.
    Router,
}

/// Arguments of `soak`.
#[derive(Debug, Args)]
pub(crate) struct SoakArgs {
    /// What is soaked.
    #[arg(value_enum)]
    subject: Subject,
    /// Sessions in all.
    #[arg(long, default_value_t = 10_000)]
    sessions: usize,
    /// Calls of each session.
    #[arg(long, default_value_t = 20)]
    calls: usize,
    /// Sessions side by side.
    #[arg(long, default_value_t = 16)]
    parallel: usize,
    /// Longest time; sessions that were not begun by then are missing, which fails the soak.
    #[arg(long, default_value_t = 5.0)]
    minutes: f64,
    /// The engine of the scripts.
    #[arg(long, value_enum)]
    engine: Option<EngineName>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Where the page with the curves goes.
    #[arg(long, default_value = "target/soak/router.html")]
    page: PathBuf,
}

/// Everything that was seen.
struct Outcome {
    idle: Sample,
    samples: Vec<Sample>,
    end: Sample,
    counts: Arc<Counts>,
}

pub(crate) fn run(args: &SoakArgs, engines: &Engines) -> anyhow::Result<ExitCode> {
    let Subject::Router = args.subject;
    let engine = engines.get(args.engine)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().context("no runtime")?;
    let outcome = runtime.block_on(soak(args, &engine))?;
    report(args, engine.name(), &outcome)
}

async fn soak(args: &SoakArgs, engine: &Arc<dyn IsolateDriver>) -> anyhow::Result<Outcome> {
    let (stop, mut hosts) = (CancellationToken::new(), Hosts::new());
    for kind in [HostKind::Plain, HostKind::Script, HostKind::Child] {
        let (host, front) = (world::host(kind, engine)?, HttpFront::bind("127.0.0.1:0").await?);
        let url = front.url();
        tokio::spawn(front.run(host.clone(), Vec::new(), stop.clone()));
        hosts.insert(kind, (host, url));
    }
    let hosts = Arc::new(hosts);
    let clock = SystemClock::new();
    // The engine's and the runtime's threads exist from the first use on; they are no leak.
    play_all(args, &hosts, &Arc::default(), args.sessions.min(60), &mut |_| {}).await;
    let idle = settled(&clock, &hosts, engine, None).await;
    let (counts, started) = (Arc::<Counts>::default(), clock.now());
    let (mut samples, mut due) = (Vec::new(), started);
    play_all(args, &hosts, &counts, args.sessions, &mut |counts| {
        let now = clock.now();
        if now < due {
            return;
        }
        due = now.after(SAMPLE_EVERY);
        samples.push(Sample {
            at_s: Duration::from_nanos(now.0 - started.0).as_secs_f64(),
            sessions: counts.sessions.load(Ordering::Relaxed),
            calls: counts.calls.load(Ordering::Relaxed),
            ..sample(&hosts, engine)
        });
    })
    .await;
    let at_s = Duration::from_nanos(clock.now().0 - started.0).as_secs_f64();
    let end = settled(&clock, &hosts, engine, Some(&idle)).await;
    let sessions = counts.sessions.load(Ordering::Relaxed);
    let end = Sample { at_s, sessions, calls: counts.calls.load(Ordering::Relaxed), ..end };
    stop.cancel();
    for (host, _) in hosts.values() {
        host.shutdown().await;
    }
    Ok(Outcome { idle, samples, end, counts })
}

fn sample(hosts: &Hosts, engine: &Arc<dyn IsolateDriver>) -> Sample {
    Sample::take(hosts.values().map(|(host, _): &(Host, String)| host), engine.counters())
}

/// Plays `sessions` sessions, some side by side; `tick` comes after each.
async fn play_all(
    args: &SoakArgs,
    hosts: &Arc<Hosts>,
    counts: &Arc<Counts>,
    sessions: usize,
    tick: &mut (dyn FnMut(&Counts) + Send),
) {
    let clock = SystemClock::new();
    let deadline = clock.now().after(Duration::from_secs_f64(args.minutes.max(0.0) * 60.0));
    let mut running = JoinSet::new();
    for number in 0..sessions {
        if clock.now() >= deadline {
            break;
        }
        if running.len() >= args.parallel.max(1) {
            running.join_next().await;
            tick(counts);
        }
        running.spawn(play(hosts.clone(), counts.clone(), number, args.calls));
    }
    while running.join_next().await.is_some() {
        tick(counts);
    }
}

/// A sample once nothing is under way; at the latest after a while, whatever is left then.
async fn settled(clock: &SystemClock, hosts: &Hosts, engine: &Arc<dyn IsolateDriver>, idle: Option<&Sample>) -> Sample {
    let deadline = clock.now().after(SETTLE);
    loop {
        let now = sample(hosts, engine);
        let calm = now.children + now.connections + now.instances + now.roots + now.script_handles == 0;
        let as_before = idle.is_none_or(|idle| now.fds <= idle.fds && now.threads <= idle.threads);
        if (calm && as_before) || clock.now() >= deadline {
            return now;
        }
        sleep(clock, SAMPLE_EVERY).await;
    }
}

fn report(args: &SoakArgs, engine: &str, outcome: &Outcome) -> anyhow::Result<ExitCode> {
    let rows = judge(&outcome.idle, &outcome.samples, &outcome.end);
    let surprises = outcome.counts.surprises.lock().map(|all| all.clone()).unwrap_or_default();
    let mut faults: Vec<String> = rows.iter().flat_map(|row| row.faults.clone()).collect();
    if outcome.end.sessions < args.sessions {
        faults.push(format!("only {} of {} sessions within {} minutes", outcome.end.sessions, args.sessions, args.minutes));
    }
    if !surprises.is_empty() {
        faults.push(format!("{} sessions did not go as planned", surprises.len()));
    }
    if let Some(folder) = args.page.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(&args.page, chart::page(&rows, &outcome.samples, &summary(outcome, engine), &faults))
        .with_context(|| format!("{} cannot be written", args.page.display()))?;
    if args.json {
        println!("{:#}", as_json(outcome, &faults, &surprises));
    } else {
        println!("{}\n\n{}\nrule: {RULE}", summary(outcome, engine), table(&rows));
        for surprise in surprises.iter().take(SHOWN) {
            println!("surprise: {surprise}");
        }
        for fault in &faults {
            println!("FAILED: {fault}");
        }
        println!("{}; the curves are in {}", if faults.is_empty() { "flat" } else { "not flat" }, args.page.display());
    }
    Ok(ExitCode::from(u8::from(!faults.is_empty())))
}

fn summary(outcome: &Outcome, engine: &str) -> String {
    let (counts, end) = (&outcome.counts, &outcome.end);
    let load = |counter: &std::sync::atomic::AtomicUsize| counter.load(Ordering::Relaxed);
    format!(
        "{} sessions, {} calls in {:.0} s on {engine}; {} child processes started; {} calls failed as planned, {} more after a crash",
        end.sessions,
        end.calls,
        end.at_s,
        load(&counts.children),
        load(&counts.foreseen_failures),
        load(&counts.failed_after_crash),
    )
}

fn table(rows: &[Row]) -> String {
    let mut text = format!("{:<15}{:>9}{:>9}{:>9}{:>9}{:>9}{:>9}\n", "median", "idle", "1st", "2nd", "3rd", "4th", "after");
    for Row { name, idle, quarters: [first, second, third, fourth], end, faults } in rows {
        let mark = if faults.is_empty() { "" } else { "  <-" };
        text.push_str(&format!("{name:<15}{idle:>9}{first:>9}{second:>9}{third:>9}{fourth:>9}{end:>9}{mark}\n"));
    }
    text
}

fn as_json(outcome: &Outcome, faults: &[String], surprises: &[String]) -> serde_json::Value {
    json!({
        "flat": faults.is_empty(),
        "faults": faults,
        "surprises": surprises,
        "children": outcome.counts.children.load(Ordering::Relaxed),
        "idle": outcome.idle,
        "end": outcome.end,
        "samples": outcome.samples,
        "rule": RULE,
    })
}
