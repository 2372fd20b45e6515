//! `greenroom demo`: the shipped scenarios, a fresh recording of real servers and its replay, and an outside client.
//!
//! Invariant: a row says what really happened; a part that cannot run here fails and says what it lacks. Deliberately only
//! a table around what the other subcommands do.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use comfy_table::{Cell, Color, ContentArrangement, Table, presets};
use greenroom_harness::host::HostFactory;
use greenroom_harness::load::{LoadOptions, ScenarioCase, load_suite};
use greenroom_harness::run::{CaseResult, RunOptions, run_case, run_suite};

use super::live::RealWorld;
use super::terminal::say;
use super::{EngineName, Engines};
use crate::rehearsal::InProcess;

mod outside;
mod real;

/// Arguments of `demo`.
#[derive(Debug, Args)]
pub(super) struct DemoArgs {
    /// The scenarios.
    #[arg(default_value = "scenarios")]
    scenarios: PathBuf,
    /// Folder of the Node and Python servers that `./x tools` installs.
    #[arg(long, default_value = ".tools")]
    tools: PathBuf,
    /// Script engine.
    #[arg(long, value_enum)]
    engine: Option<EngineName>,
}

/// A row of the table.
struct Row {
    part: String,
    what: String,
    good: bool,
    detail: String,
    wall: Duration,
}

impl Row {
    fn of(result: &CaseResult) -> Self {
        let first = result.failures.first().map(|failure| format!("; {}: {}", failure.code, failure.message));
        Self {
            part: result.id.clone(),
            what: result.title.clone(),
            good: result.verdict.is_ok(),
            detail: format!("{} events{}", result.events, first.unwrap_or_default()),
            wall: result.wall,
        }
    }
}

pub(super) fn run(args: &DemoArgs, engines: &Engines) -> anyhow::Result<ExitCode> {
    let engine = engines.get(args.engine)?;
    say(format_args!("Greenroom rehearses an MCP host; scripts run on {}.", engine.name()));
    let cases = load(&args.scenarios)?;
    let factory: Arc<dyn HostFactory> = Arc::new(InProcess::default());
    let mut options = RunOptions::new(engine);
    options.live = Some(Arc::new(RealWorld));
    let mut rows: Vec<Row> = run_suite(&cases, &factory, &options, 2, &|_| {}).cases.iter().map(Row::of).collect();
    rows.extend(real::rows(&cases, &factory, &options));
    rows.push(outside::row(&args.tools));
    print(&rows);
    let failed = rows.iter().filter(|row| !row.good).count();
    say(format_args!("{} passed, {failed} failed", rows.len() - failed));
    Ok(ExitCode::from(u8::from(failed > 0)))
}

fn load(path: &Path) -> anyhow::Result<Vec<Arc<ScenarioCase>>> {
    let cases = load_suite(&[path], LoadOptions::default()).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        anyhow::anyhow!("{}", texts.join("\n"))
    })?;
    Ok(cases.into_iter().map(Arc::new).collect())
}

/// Runs one case and says how it went.
fn one(case: &Arc<ScenarioCase>, factory: &Arc<dyn HostFactory>, options: &RunOptions) -> CaseResult {
    run_case(case, factory, options)
}

fn print(rows: &[Row]) {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED).set_content_arrangement(ContentArrangement::Dynamic).set_header([
        "",
        "scenario",
        "what it shows",
        "result",
        "time",
    ]);
    for row in rows {
        let (mark, colour) = if row.good { ("ok", Color::Green) } else { ("FAILED", Color::Red) };
        table.add_row([
            Cell::new(mark).fg(colour),
            Cell::new(&row.part),
            Cell::new(&row.what),
            Cell::new(&row.detail),
            Cell::new(format!("{:.0} ms", row.wall.as_secs_f64() * 1000.0)),
        ]);
    }
    say(&table);
}
