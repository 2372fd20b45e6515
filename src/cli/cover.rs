//! `greenroom cover`: which of the things that can happen to hooks these scenarios show, or what ran of their scripts.
//!
//! Invariant: of hooks only scenarios that are well count; the others are named, and the exit code is theirs. Exit codes besides
//! those of `test`: 1 if `--strict` and something that can be reached is not covered.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use greenroom_harness::cover::{DeclaredHook, HookCoverage, HookReport, render_html, render_text};
use greenroom_harness::host::HostFactory as _;
use greenroom_harness::load::ScenarioCase;
use greenroom_harness::run::{RunOptions, SuiteResult, base};
use greenroom_harness::trace::parse;

use super::live::RealWorld;
use super::select::Selection;
use super::{EngineName, Engines, terminal, test};
use crate::rehearsal::InProcess;
use crate::script_coverage::{self, ScriptReport};

/// Measure what scenarios show of hook paths, or what they run of hook scripts.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Examples:\n  greenroom cover --hooks scenarios --strict --html hooks.html\n  greenroom cover --scripts scenarios --lcov scripts.info"
)]
#[group(id = "what", required = true, args = ["hooks", "scripts"])]
pub(super) struct CoverArgs {
    /// Measure the paths of hooks.
    #[arg(long)]
    hooks: bool,

    /// Measure the code of hook scripts: functions, lines and blocks.
    #[arg(long)]
    scripts: bool,

    #[command(flatten)]
    selection: Selection,

    /// Fail if a reachable cell is not covered, or a function or line did not run.
    #[arg(long)]
    strict: bool,

    /// Print JSON.
    #[arg(long)]
    json: bool,

    /// Write a heat map there, as one HTML page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write what ran of scripts that are files there, for LCOV's tools.
    #[arg(long, value_name = "FILE", requires = "scripts")]
    lcov: Option<PathBuf>,

    /// Cases that run at once; as many as there are processors if absent.
    #[arg(short, long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Run every case under this seed instead of its own.
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Script engine for hooks; the best one of this build if absent.
    #[arg(long, value_enum)]
    engine: Option<EngineName>,
}

/// Runs the scenarios and reports.
pub(super) fn run(args: &CoverArgs, engines: &Engines) -> anyhow::Result<ExitCode> {
    if args.scripts { scripts(args, engines) } else { hooks(args, engines) }
}

fn hooks(args: &CoverArgs, engines: &Engines) -> anyhow::Result<ExitCode> {
    let cases = match args.selection.load(args.seed, terminal::colour_on_stderr()) {
        Ok(cases) => cases,
        Err(code) => return Ok(code),
    };
    let options = RunOptions { seed: args.seed, live: Some(Arc::new(RealWorld)), ..RunOptions::new(engines.get(args.engine)?) };
    let suite = test::rehearse(&cases, &options, args.jobs);
    let report = measure(&cases, &suite)?;
    if let Some(file) = &args.html {
        std::fs::write(file, render_html(&report)).with_context(|| format!("{} cannot be written", file.display()))?;
    }
    terminal::say(if args.json { serde_json::to_string_pretty(&report)? } else { render_text(&report).trim_end().to_owned() });
    for case in suite.cases.iter().filter(|case| !case.verdict.is_ok()) {
        eprintln!("{} {} does not count; `{}` shows why", case.verdict, case.id, case.rerun);
    }
    Ok(match suite.exit_code() {
        0 if args.strict && !report.is_full() => ExitCode::from(1),
        code => ExitCode::from(code),
    })
}

/// What ran of scripts counts whatever came of its scenario.
fn scripts(args: &CoverArgs, engines: &Engines) -> anyhow::Result<ExitCode> {
    let cases = match args.selection.load(args.seed, terminal::colour_on_stderr()) {
        Ok(cases) => cases,
        Err(code) => return Ok(code),
    };
    let counting = engines.counting(args.engine)?;
    let options = RunOptions { seed: args.seed, live: Some(Arc::new(RealWorld)), ..RunOptions::new(counting.engine.clone()) };
    let suite = test::rehearse(&cases, &options, args.jobs);
    let report = ScriptReport::of(&counting.coverage(), &|path| std::fs::read_to_string(path).ok());
    for (file, text) in
        [(&args.html, script_coverage::render_html(&report)), (&args.lcov, script_coverage::render_lcov(&report))]
    {
        if let Some(file) = file {
            std::fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))?;
        }
    }
    let text = script_coverage::render_text(&report);
    terminal::say(if args.json { serde_json::to_string_pretty(&report)? } else { text.trim_end().to_owned() });
    for case in suite.cases.iter().filter(|case| !case.verdict.is_ok()) {
        eprintln!("{} {}; `{}` shows why", case.verdict, case.id, case.rerun);
    }
    Ok(match suite.exit_code() {
        0 if args.strict && !report.is_full() => ExitCode::from(1),
        code => ExitCode::from(code),
    })
}

fn measure(cases: &[Arc<ScenarioCase>], suite: &SuiteResult) -> anyhow::Result<HookReport> {
    let factory = InProcess::default();
    let by_id: BTreeMap<&str, &Arc<ScenarioCase>> = cases.iter().map(|case| (case.id.as_str(), case)).collect();
    let mut coverage = HookCoverage::default();
    for result in suite.cases.iter().filter(|result| result.verdict.is_ok()) {
        let Some(case) = by_id.get(result.id.as_str()) else { continue };
        let declared: Vec<DeclaredHook> = factory.declared_hooks(&case.scenario.host, base(case))?;
        let events = parse(&result.trace).with_context(|| format!("the trace of {}", result.id))?;
        coverage.add(case.scenario.id.as_str(), &declared, &events);
    }
    Ok(coverage.report())
}
