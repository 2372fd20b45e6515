//! `greenroom list`: which scenarios there are.
//!
//! Invariant: what it lists is what `test` with the same arguments runs, in the same order.

use std::io::Write as _;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use greenroom_harness::load::ScenarioCase;
use serde_json::json;

use super::select::Selection;
use super::terminal;

/// How the list looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum ListFormat {
    /// Id, tags and title in columns.
    #[default]
    Human,
    /// One id per line.
    Ids,
    /// One JSON object per line.
    Json,
}

/// List scenarios without running them.
#[derive(Args, Clone, Debug)]
pub(super) struct ListArgs {
    #[command(flatten)]
    selection: Selection,

    /// How the list looks.
    #[arg(long, value_enum, default_value_t)]
    format: ListFormat,
}

/// Prints the list.
pub(super) fn run(args: &ListArgs) -> ExitCode {
    let cases = match args.selection.load(None, terminal::colour_on_stderr()) {
        Ok(cases) => cases,
        Err(code) => return code,
    };
    let width = cases.iter().map(|case| case.id.chars().count()).max().unwrap_or(0);
    let mut stdout = std::io::stdout().lock();
    for case in &cases {
        let line = match args.format {
            ListFormat::Ids => case.id.clone(),
            ListFormat::Human => human(case, width),
            ListFormat::Json => as_json(case),
        };
        if writeln!(stdout, "{line}").is_err() {
            break;
        }
    }
    ExitCode::SUCCESS
}

fn tags(case: &ScenarioCase) -> Vec<&str> {
    case.scenario.tags.iter().map(|tag| tag.as_str()).collect()
}

fn human(case: &ScenarioCase, width: usize) -> String {
    let title = case.scenario.title.as_deref().unwrap_or_default();
    format!("{:<width$}  [{}]  {title}", case.id, tags(case).join(", ")).trim_end().to_owned()
}

fn as_json(case: &ScenarioCase) -> String {
    json!({
        "id": case.id,
        "scenario": case.scenario.id.as_str(),
        "file": case.file.display().to_string(),
        "title": case.scenario.title,
        "tags": tags(case),
        "matrix": case.values,
        "seed": case.scenario.seed,
        "known_failing": case.scenario.known_failing.is_some(),
    })
    .to_string()
}
