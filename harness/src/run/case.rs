//! One case: on its own thread, judged, with its trace.
//!
//! Invariant: a case always gives a result, in bounded real time, even if its host never comes back. Deliberately no
//! parallelism: that is the suite's.

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use greenroom_boundary::{CancellationToken, Credentials};

use super::{CaseResult, Failure, Place, RunOptions, Verdict, act, assemble};
use crate::host::HostFactory;
use crate::load::ScenarioCase;
use crate::trace::TraceLog;

/// How long a case that was told to give up may take for it.
const GIVE_UP: Duration = Duration::from_secs(2);

/// The folder that relative paths of a scenario start in.
pub fn base(case: &ScenarioCase) -> &Path {
    case.file.parent().unwrap_or(Path::new(""))
}

pub(super) fn place(case: &ScenarioCase, line: u32) -> Place {
    Place { file: case.file.display().to_string(), line: u64::from(line.max(1)) }
}

/// The command that runs a case again.
pub fn rerun(case: &ScenarioCase, seed: u64, options: &RunOptions) -> String {
    let file = shell_word(&case.file.display().to_string());
    let filter = shell_word(&format!("id({})", case.id));
    format!("{} {file} -E {filter} --seed {seed}", options.rerun)
}

/// The text as one word of a POSIX shell.
fn shell_word(text: &str) -> String {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "._/-+=:,@%".contains(c));
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// Runs a case and judges it.
pub fn run_case(case: &Arc<ScenarioCase>, factory: &Arc<dyn HostFactory>, options: &RunOptions) -> CaseResult {
    let first = run_once(case, factory, options);
    if !options.check_determinism || first.verdict == Verdict::Error {
        return first;
    }
    let second = run_once(case, factory, options);
    assemble::compare(case, first, &second)
}

fn run_once(case: &Arc<ScenarioCase>, factory: &Arc<dyn HostFactory>, options: &RunOptions) -> CaseResult {
    let seed = options.seed.unwrap_or(case.scenario.seed);
    let log = TraceLog::new(usize::try_from(case.scenario.limits.events.get()).unwrap_or(usize::MAX));
    let abandon = CancellationToken::new();
    // Held here, too, so that a case that never comes back is masked like any other.
    let credentials = Credentials::default();
    let started = act::wall_now();
    let (done, waiting) = mpsc::channel();
    let thread = {
        let (case, factory, options) = (case.clone(), factory.clone(), options.clone());
        let (log, abandon, credentials) = (log.clone(), abandon.clone(), credentials.clone());
        std::thread::Builder::new().name(format!("case {}", case.id)).spawn(move || {
            // A receiver that has given up is no reason to fail here.
            let _ = done.send(act::perform(&case, &*factory, seed, &log, &abandon, &credentials, &options));
        })
    };
    let own = case.scenario.limits.wall.to_std();
    let limit = options.wall.map_or(own, |wall| wall.min(own));
    let ended = match &thread {
        Ok(_) => waiting.recv_timeout(limit),
        Err(_) => Err(mpsc::RecvTimeoutError::Disconnected),
    };
    let mut result = match ended {
        Ok(act) => assemble::result(case, act, seed, options),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            abandon.cancel();
            let act = waiting.recv_timeout(GIVE_UP).ok();
            let failure = over_time(case, act.is_some(), limit);
            assemble::broken(case, failure, log.events(), &credentials, seed, options)
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => {
            let message = match thread.map(std::thread::JoinHandle::join) {
                Ok(Err(panic)) => panic_text(&*panic),
                _ => "no thread could be started for it".to_owned(),
            };
            let failure = failure(case, "CASE_PANICKED", "the case to end", &message);
            assemble::broken(case, failure, log.events(), &credentials, seed, options)
        }
    };
    result.wall = started.elapsed();
    result
}

fn over_time(case: &Arc<ScenarioCase>, gave_up: bool, limit: Duration) -> Failure {
    let message = if gave_up {
        "it did not; the run was given up"
    } else {
        "it did not, and it did not give up either: its thread is left behind"
    };
    let asked =
        format!("the case to end within {} of real time (limits.wall)", crate::report::seconds(limit.as_nanos() as u64));
    failure(case, "LIMIT_WALL", &asked, message)
}

fn failure(case: &Arc<ScenarioCase>, code: &str, what: &str, message: &str) -> Failure {
    Failure {
        verdict: Verdict::Error,
        code: code.to_owned(),
        at: place(case, 1),
        what: what.to_owned(),
        message: message.to_owned(),
        excerpt: None,
    }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("it panicked: {}", text.unwrap_or("for an unknown reason"))
}
