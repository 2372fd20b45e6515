//! Choosing scenarios: paths and a filter, shared by the commands that run or list them.
//!
//! Invariant: a file that cannot be loaded stops everything before anything runs. Deliberately no running.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use greenroom_harness::filter::Filter;
use greenroom_harness::load::{LoadError, LoadOptions, ScenarioCase, load_suite};
use serde_json::json;

/// Most files whose errors are shown.
const SHOWN_ERRORS: usize = 5;

/// Which scenarios are meant.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct Selection {
    /// Scenario files, or folders that hold them.
    #[arg(default_value = "scenarios", value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,

    /// Only these: `tag(smoke) & !id(slow/*)`, `file(hooks/*)`.
    #[arg(short = 'E', long = "filter", value_name = "EXPR")]
    pub(super) filter: Option<Filter>,
}

impl Selection {
    /// The cases that are meant, in the order of their files; or the exit code, everything having been said.
    pub(super) fn load(&self, seed: Option<u64>, colour: bool) -> Result<Vec<Arc<ScenarioCase>>, ExitCode> {
        let cases = load_suite(&self.paths, LoadOptions { seed }).map_err(|errors| refuse(&errors, colour))?;
        let meant = |case: &ScenarioCase| self.filter.as_ref().is_none_or(|filter| filter.selects(case));
        let selected: Vec<_> = cases.into_iter().filter(meant).map(Arc::new).collect();
        if selected.is_empty() {
            let paths: Vec<_> = self.paths.iter().map(|path| path.display().to_string()).collect();
            let filter = self.filter.as_ref().map(|filter| format!(" that fit {filter}")).unwrap_or_default();
            let _ = writeln!(
                std::io::stderr(),
                "no scenarios{filter} in {}; `greenroom list` shows what there is",
                paths.join(", ")
            );
            return Err(ExitCode::from(4));
        }
        Ok(selected)
    }
}

fn refuse(errors: &[LoadError], colour: bool) -> ExitCode {
    let mut stderr = std::io::stderr();
    for error in errors.iter().take(SHOWN_ERRORS) {
        let _ = writeln!(stderr, "{}", error.render(colour));
    }
    if errors.len() > SHOWN_ERRORS {
        let _ = writeln!(stderr, "… {} more files cannot be loaded", errors.len() - SHOWN_ERRORS);
    }
    if let Some(error) = errors.first() {
        let at = match error {
            LoadError::Invalid(found) => format!("{}:{}:{}", found.file.display(), found.span.line, found.span.column),
            LoadError::Unreadable { path, .. } => path.display().to_string(),
        };
        let _ = writeln!(stderr, "{}", json!({ "code": error.code(), "scenario": null, "at": at, "rerun": null }));
    }
    ExitCode::from(2)
}
