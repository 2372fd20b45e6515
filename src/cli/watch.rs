//! `greenroom test --watch`: cases run again when what they are made of is saved.
//!
//! Invariant: a save runs exactly the cases that the saved files belong to; a file that cannot be loaded is told and the watch
//! goes on. The exit code is that of the newest result of every case. Deliberately no reading of keys.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use greenroom_boundary::Clock;
use greenroom_harness::load::ScenarioCase;
use greenroom_harness::run::{CaseResult, SuiteResult};

use super::serve::stop_on_interrupt;
use crate::config::{ScriptConfig, Variables, load_file};
use crate::drivers::{FileWatch, SystemClock, real_path};
use crate::rehearsal::translate;
use crate::scripts::ScriptLibrary;

/// Loads the selected cases; what is wrong has been said.
pub(super) type Load = Box<dyn Fn() -> Result<Vec<Arc<ScenarioCase>>, ExitCode>>;

/// Runs cases and reports.
pub(super) type Run = Arc<dyn Fn(&[Arc<ScenarioCase>]) -> SuiteResult + Send + Sync>;

/// What is watched.
pub(super) struct Watch {
    /// Where scenarios may appear.
    pub(super) paths: Vec<PathBuf>,
    /// Loads them.
    pub(super) load: Load,
    /// Runs them.
    pub(super) run: Run,
}

/// A case and the files that it is made of.
struct Watched {
    case: Arc<ScenarioCase>,
    files: BTreeSet<PathBuf>,
}

/// How it stands now.
struct State {
    watched: Vec<Watched>,
    latest: BTreeMap<String, CaseResult>,
    /// The newest load failed.
    broken: bool,
}

impl Watch {
    /// Watches until it is interrupted; then the exit code of what was seen last.
    pub(super) async fn run(self) -> anyhow::Result<u8> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
        let stop = stop_on_interrupt();
        let mut state = State { watched: Vec::new(), latest: BTreeMap::new(), broken: false };
        state.load(&self);
        let mut watch = self.watch(&state)?;
        if !state.broken {
            // What was saved before the files were watched.
            state.load(&self);
        }
        let mut due: Vec<Arc<ScenarioCase>> = state.watched.iter().map(|watched| watched.case.clone()).collect();
        loop {
            let run = self.run.clone();
            let running = tokio::task::spawn_blocking(move || (!due.is_empty()).then(|| run(&due)));
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                suite = running => state.take(suite?),
            }
            let files = state.files().len();
            eprintln!("watching {files} files of {} cases; Ctrl-C ends", state.watched.len());
            let saved = tokio::select! {
                biased;
                () = stop.cancelled() => break,
                saved = watch.changed(clock.as_ref()) => saved,
            };
            clear_screen();
            due = state.affected(&saved);
            state.load(&self);
            // The old one listens until the new one does.
            let next = self.watch(&state)?;
            next.take_over(&watch);
            watch = next;
            due = state.renewed(&due, &saved);
            tell(&saved, due.len());
        }
        Ok(state.exit_code())
    }

    fn watch(&self, state: &State) -> anyhow::Result<FileWatch> {
        let folders = self.paths.iter().filter(|path| path.is_dir()).cloned();
        let named = self.paths.iter().filter(|path| !path.is_dir()).cloned();
        Ok(FileWatch::with_folders(state.files().into_iter().chain(named), folders, is_scenario_like)?)
    }
}

impl State {
    fn load(&mut self, watch: &Watch) {
        match (watch.load)() {
            Ok(cases) => {
                self.broken = false;
                self.watched = cases.into_iter().map(|case| Watched { files: files_of(&case), case }).collect();
            }
            Err(_) => self.broken = true,
        }
        let ids: BTreeSet<&str> = self.watched.iter().map(|watched| watched.case.id.as_str()).collect();
        self.latest.retain(|id, _| ids.contains(id.as_str()));
    }

    fn files(&self) -> BTreeSet<PathBuf> {
        self.watched.iter().flat_map(|watched| watched.files.iter().cloned()).collect()
    }

    /// The cases that the saved files belong to.
    fn affected(&self, saved: &BTreeSet<PathBuf>) -> Vec<Arc<ScenarioCase>> {
        let hit = |watched: &&Watched| watched.files.iter().any(|file| saved.contains(file));
        self.watched.iter().filter(hit).map(|watched| watched.case.clone()).collect()
    }

    /// The same cases as they are now, and those that the saved files belong to now, in order. After a failed load nothing is
    /// run: its error is on the screen.
    fn renewed(&self, before: &[Arc<ScenarioCase>], saved: &BTreeSet<PathBuf>) -> Vec<Arc<ScenarioCase>> {
        if self.broken {
            return Vec::new();
        }
        let ids: BTreeSet<&str> = before.iter().map(|case| case.id.as_str()).collect();
        let is_due = |watched: &&Watched| {
            let unseen = !self.latest.contains_key(&watched.case.id);
            unseen || ids.contains(watched.case.id.as_str()) || watched.files.iter().any(|file| saved.contains(file))
        };
        self.watched.iter().filter(is_due).map(|watched| watched.case.clone()).collect()
    }

    fn take(&mut self, suite: Option<SuiteResult>) {
        for mut case in suite.into_iter().flat_map(|suite| suite.cases) {
            case.trace = String::new();
            self.latest.insert(case.id.clone(), case);
        }
    }

    fn exit_code(&self) -> u8 {
        if self.broken {
            return super::EXIT_INVALID;
        }
        SuiteResult { cases: self.latest.values().cloned().collect(), ..SuiteResult::default() }.exit_code()
    }
}

/// Clears a screen; a file or a pipe keeps everything.
fn clear_screen() {
    if std::io::stdout().is_terminal() {
        let _ = write!(std::io::stdout(), "\u{1b}[2J\u{1b}[3J\u{1b}[H");
    }
}

fn tell(saved: &BTreeSet<PathBuf>, due: usize) {
    let names: Vec<String> = saved.iter().filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned())).collect();
    eprintln!("saved: {}; cases to run: {due}", names.join(", "));
}

fn is_scenario_like(path: &Path) -> bool {
    path.extension().is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known)))
}

/// The files that a case is made of, by their real paths: itself, its config, scripts and what they import, cassettes.
fn files_of(case: &ScenarioCase) -> BTreeSet<PathBuf> {
    let base = case.file.parent().unwrap_or(Path::new(""));
    let host = &case.scenario.host;
    let mut files: BTreeSet<PathBuf> = [case.file.clone()].into_iter().collect();
    files.extend(host.config.iter().map(|config| base.join(config)));
    let named = host.assistants.values().filter_map(|assistant| assistant.script.as_ref()).map(|script| base.join(script));
    let mut scripts: BTreeSet<PathBuf> = named.collect();
    // A config that is not usable now says nothing; it is watched itself.
    let config = translate(host, base, &Variables::default()).ok().or_else(|| {
        let path = base.join(host.config.as_ref()?);
        load_file(&path, &Variables::default()).ok()
    });
    scripts.extend(config.iter().flat_map(|config| config.scripts()).filter_map(|script| match script {
        ScriptConfig::File(file) => Some(file.clone()),
        ScriptConfig::Inline { .. } => None,
    }));
    let library = config.as_ref().map_or_else(ScriptLibrary::default, ScriptLibrary::of);
    for script in &scripts {
        drop(library.load(&ScriptConfig::File(script.clone())));
    }
    files.extend(library.files());
    files.extend(scripts);
    files.extend(case.scenario.drivers.cassettes().map(|cassette| base.join(cassette)));
    files.iter().map(|file| real_path(file)).collect()
}
