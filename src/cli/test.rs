//! `greenroom test`: run scenarios and report.
//!
//! Invariant: results, reports and trace files do not depend on how many cases run at once. Exit codes: 0 all well, 1 an
//! expectation failed, 2 a scenario or an argument is invalid, 3 a replay missed, 4 nothing selected, 7 the same seed gave
//! another trace, 9 a case could not be judged.

use std::io::Write as _;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::{Args, ValueEnum as _};
use greenroom_harness::host::HostFactory;
use greenroom_harness::load::ScenarioCase;
use greenroom_harness::report::{HumanStyle, ReporterSpec, render};
use greenroom_harness::run::{RunOptions, SuiteResult, run_suite};
use greenroom_harness::snapshot::{self, SnapshotMode};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::live::RealWorld;
use super::select::Selection;
use super::watch::Watch;
use super::{EngineName, Engines, terminal};
use crate::rehearsal::InProcess;

/// Exit code when the run itself failed.
const EXIT_INTERNAL: u8 = 9;

/// Run scenarios: files, or folders of them.
#[derive(Args, Clone, Debug)]
pub(super) struct TestArgs {
    #[command(flatten)]
    selection: Selection,

    /// Cases that run at once; as many as there are processors if absent.
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Run every case under this seed instead of its own.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Script engine for hooks; the best one of this build if absent.
    #[arg(long, value_enum)]
    engine: Option<EngineName>,

    /// Write one trace per case there, as JSON lines.
    #[arg(long, value_name = "DIR")]
    trace_dir: Option<PathBuf>,

    /// Reports: human, json, junit or tap, each optionally as NAME=FILE; several with commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "human")]
    reporter: Vec<ReporterSpec>,

    /// Write snapshots anew.
    #[arg(long)]
    update: bool,

    /// Run each case twice and compare the traces.
    #[arg(long)]
    check_determinism: bool,

    /// Stay, and run cases again when their scenario, script, config or cassette is saved. Ctrl-C ends it with the exit code
    /// of the newest results.
    #[arg(long)]
    watch: bool,
}

/// Runs the scenarios.
pub(super) fn run(args: &TestArgs, engines: &Engines) -> ExitCode {
    let engine = match engines.get(args.engine) {
        Ok(engine) => engine,
        Err(error) => return fail(EXIT_INTERNAL, &format!("{error:#}")),
    };
    let options = RunOptions {
        seed: args.seed,
        live: Some(Arc::new(RealWorld)),
        snapshots: match (args.update, terminal::in_ci()) {
            (true, _) => SnapshotMode::Update,
            (false, true) => SnapshotMode::Check,
            (false, false) => SnapshotMode::Pending,
        },
        check_determinism: args.check_determinism,
        rerun: rerun(args),
        ..RunOptions::new(engine)
    };
    if args.watch {
        return stay(args, options);
    }
    let cases = match args.selection.load(args.seed, terminal::colour_on_stderr()) {
        Ok(cases) => cases,
        Err(code) => return code,
    };
    let suite = rehearse(&cases, &options, args.jobs);
    match publish(&suite, args) {
        Ok(()) => ExitCode::from(suite.exit_code()),
        Err(message) => fail(EXIT_INTERNAL, &message),
    }
}

/// Runs them again and again.
fn stay(args: &TestArgs, options: RunOptions) -> ExitCode {
    let (selection, seed) = (args.selection.clone(), args.seed);
    let again = args.clone();
    let watch = Watch {
        paths: args.selection.paths.clone(),
        load: Box::new(move || selection.load(seed, terminal::colour_on_stderr())),
        run: Arc::new(move |cases| {
            let suite = rehearse(cases, &options, again.jobs);
            if let Err(message) = publish(&suite, &again) {
                let _ = writeln!(std::io::stderr(), "{message}");
            }
            suite
        }),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(EXIT_INTERNAL, &format!("no runtime: {error}")),
    };
    let code = runtime.block_on(watch.run());
    // A case that is under way when the watch is interrupted is given up.
    runtime.shutdown_background();
    match code {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(EXIT_INTERNAL, &format!("{error:#}")),
    }
}

fn fail(code: u8, message: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "{message}");
    ExitCode::from(code)
}

/// The command that runs a case again, up to the file.
fn rerun(args: &TestArgs) -> String {
    let engine = args.engine.and_then(|engine| engine.to_possible_value());
    engine.map_or_else(|| "greenroom test".to_owned(), |engine| format!("greenroom test --engine {}", engine.get_name()))
}

pub(super) fn rehearse(cases: &[Arc<ScenarioCase>], options: &RunOptions, jobs: Option<NonZeroUsize>) -> SuiteResult {
    let jobs = jobs.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
    // Hidden where standard error is no terminal.
    let bar = ProgressBar::new(cases.len() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    let factory: Arc<dyn HostFactory> = Arc::new(InProcess::default());
    let suite = run_suite(cases, &factory, options, jobs, &|case| {
        if !case.verdict.is_ok() {
            bar.set_message(format!("{} {}", case.verdict, case.id));
        }
        bar.inc(1);
    });
    bar.finish_and_clear();
    suite
}

/// Writes traces and reports, and one JSON line for each case that is not well.
fn publish(suite: &SuiteResult, args: &TestArgs) -> Result<(), String> {
    if let Some(folder) = &args.trace_dir {
        for case in &suite.cases {
            write(&folder.join(format!("{}.jsonl", snapshot::plain(&case.id))), &case.trace)?;
        }
    }
    for spec in &args.reporter {
        let style = HumanStyle { colour: spec.target.is_none() && terminal::colour_on_stdout(), quiet: false };
        let text = render(spec.kind, suite, style);
        match &spec.target {
            Some(file) => write(file, &text)?,
            // A closed pipe is no failure of the run.
            None => drop(std::io::stdout().write_all(text.as_bytes())),
        }
    }
    for case in suite.cases.iter().filter(|case| !case.verdict.is_ok()) {
        let first = case.failures.first();
        let line = json!({
            "code": first.map(|failure| failure.code.as_str()),
            "scenario": case.id,
            "at": first.map(|failure| failure.at.to_string()),
            "rerun": case.rerun,
        });
        let _ = writeln!(std::io::stderr(), "{line}");
    }
    Ok(())
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("{} cannot be written: {error}", file.display());
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder).map_err(cannot)?;
    }
    std::fs::write(file, text).map_err(cannot)
}
