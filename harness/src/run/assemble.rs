//! From what a case left behind to its result: judging, masking, naming the verdict.
//!
//! Invariant: judging sees the masked trace, the same that is written down; the worst failure names the verdict.
//! Deliberately no running.

use greenroom_boundary::Credentials;
use greenroom_boundary::trace::TraceEvent;
use sha2::{Digest, Sha256};

use super::act::Act;
use super::case::{base, place, rerun};
use super::stage::Trouble;
use super::{CaseResult, Failure, RunOptions, Verdict, mask};
use crate::expect::{Judged, Judgement, Subject, judge};
use crate::load::ScenarioCase;
use crate::model::{Check, Invariant};
use crate::snapshot::{self, SnapshotMode, SnapshotOutcome};
use crate::trace::{excerpt, to_jsonl};

/// Judges a case that ran.
pub(super) fn result(case: &ScenarioCase, act: Act, seed: u64, options: &RunOptions) -> CaseResult {
    let Act { events, replies, facts, mid_run, troubles, played, mut notes, credentials } = act;
    let events = mask::events(events, &credentials);
    let replies = replies.into_iter().map(|(name, reply)| (name, mask::reply(&reply, &credentials))).collect();
    let mut failures: Vec<Failure> = troubles.into_iter().map(|trouble| from_trouble(case, trouble, &events)).collect();
    for look in mid_run {
        let seen = &events[..look.seen.min(events.len())];
        failures.extend(look.judged.into_iter().filter_map(|judged| from_judged(case, look.line, judged, seen)));
    }
    // A run that broke off is judged by what was found on the way.
    if played {
        let subject = Subject { scenario: &case.scenario, events: &events, replies: &replies, facts: &facts, over: true };
        for expectation in &case.scenario.expect {
            if let Check::Snapshot { name, mask } = &expectation.check {
                let failure = snapshot_failure(case, expectation.line, name, mask, &events, options, &mut notes);
                failures.extend(failure);
                continue;
            }
            let judged = judge(&expectation.value, subject);
            failures.extend(judged.into_iter().filter_map(|judged| from_judged(case, expectation.line, judged, &events)));
        }
        // After another failure, what was not used is its consequence.
        if failures.is_empty() {
            failures.extend(unused_script(case, subject));
        }
    }
    for failure in &mut failures {
        failure.message = credentials.mask(&failure.message);
        failure.what = credentials.mask(&failure.what);
    }
    finish(case, failures, notes, &events, seed, options)
}

/// A case that gave no result of its own.
pub(super) fn broken(
    case: &ScenarioCase,
    mut failure: Failure,
    events: Vec<TraceEvent>,
    credentials: &Credentials,
    seed: u64,
    options: &RunOptions,
) -> CaseResult {
    let events = mask::events(events, credentials);
    failure.message = credentials.mask(&failure.message);
    failure.excerpt = excerpt(&events, events.len().saturating_sub(1));
    finish(case, vec![failure], Vec::new(), &events, seed, options)
}

fn finish(
    case: &ScenarioCase,
    mut failures: Vec<Failure>,
    notes: Vec<String>,
    events: &[TraceEvent],
    seed: u64,
    options: &RunOptions,
) -> CaseResult {
    let mut verdict = failures.iter().map(|failure| failure.verdict).fold(Verdict::Pass, Verdict::worst);
    let known_failing = case.scenario.known_failing.as_ref().map(|known| format!("{} ({})", known.reason, known.issue));
    match (verdict, &known_failing) {
        (Verdict::Pass, Some(known)) => {
            verdict = Verdict::UnexpectedPass;
            failures.push(Failure {
                verdict,
                code: "UNEXPECTED_PASS".to_owned(),
                at: place(case, 1),
                what: format!("to fail, as known: {known}"),
                message: "it passed; take `known_failing` out of the scenario".to_owned(),
                excerpt: None,
            });
        }
        (Verdict::Fail | Verdict::Vacuous | Verdict::Miss, Some(_)) => verdict = Verdict::KnownFailing,
        _ => {}
    }
    let trace = to_jsonl(events);
    CaseResult {
        id: case.id.clone(),
        title: case.scenario.title.clone().unwrap_or_default(),
        file: case.file.display().to_string(),
        verdict,
        failures,
        known_failing,
        seed,
        events: events.len(),
        virtual_ns: events.last().map_or(0, |event| event.vt),
        trace_sha256: hex::encode(Sha256::digest(trace.as_bytes())),
        rerun: rerun(case, seed, options),
        wall: std::time::Duration::ZERO,
        trace,
        notes,
    }
}

fn from_trouble(case: &ScenarioCase, trouble: Trouble, events: &[TraceEvent]) -> Failure {
    Failure {
        verdict: trouble.verdict,
        code: trouble.code.to_owned(),
        at: place(case, trouble.line),
        what: trouble.what,
        message: trouble.message,
        excerpt: excerpt(events, events.len().saturating_sub(1)),
    }
}

fn from_judged(case: &ScenarioCase, line: u32, judged: Judged, events: &[TraceEvent]) -> Option<Failure> {
    let (verdict, message, divergent) = match judged.judgement {
        Judgement::Pass => return None,
        Judgement::Fail(finding) => (Verdict::Fail, finding.message, finding.divergent),
        Judgement::Vacuous(why) => (Verdict::Vacuous, format!("it proves nothing: {why}"), None),
    };
    let excerpt = divergent.and_then(|index| excerpt(events, index));
    Some(Failure { verdict, code: judged.code, at: place(case, line), what: judged.what, message, excerpt })
}

/// A scripted answer that nobody asked for makes the scenario vacuous, also where it does not ask for that law.
fn unused_script(case: &ScenarioCase, subject: Subject<'_>) -> Option<Failure> {
    let unused = subject.facts.unused_script.as_deref().filter(|unused| !unused.is_empty())?;
    let asked = case.scenario.expect.iter().any(
        |expectation| matches!(&expectation.check, Check::Invariant(laws) if laws.contains(&Invariant::ScriptFullyConsumed)),
    );
    (!asked).then(|| Failure {
        verdict: Verdict::Vacuous,
        code: "SCRIPT_UNUSED".to_owned(),
        at: place(case, 1),
        what: "every scripted answer to be used".to_owned(),
        message: format!("never used: {}", unused.join("; ")),
        excerpt: None,
    })
}

fn snapshot_failure(
    case: &ScenarioCase,
    line: u32,
    name: &str,
    mask: &[String],
    events: &[TraceEvent],
    options: &RunOptions,
    notes: &mut Vec<String>,
) -> Option<Failure> {
    let path = snapshot::path(base(case), &case.id, name);
    let outcome = snapshot::compare(&path, &snapshot::content(name, events, mask), options.snapshots);
    let pending = match options.snapshots {
        SnapshotMode::Pending => format!("; the new one is at {}", snapshot::pending_path(&path).display()),
        _ => String::new(),
    };
    let (verdict, code, message) = match outcome {
        SnapshotOutcome::Same => return None,
        SnapshotOutcome::Written(path) => {
            notes.push(format!("snapshot written: {}", path.display()));
            return None;
        }
        SnapshotOutcome::Missing(path) => {
            let message = format!("there is no {} yet{pending}; run with --update to write it", path.display());
            (Verdict::Fail, "SNAPSHOT_MISSING", message)
        }
        SnapshotOutcome::Differs { path, diff } => {
            let message = format!("{} differs{pending}; --update accepts this:\n{diff}", path.display());
            (Verdict::Fail, "SNAPSHOT_DIFFERS", message)
        }
        SnapshotOutcome::Unusable { path, reason } => {
            (Verdict::Error, "SNAPSHOT_UNUSABLE", format!("{} cannot be used: {reason}", path.display()))
        }
    };
    let what = format!("snapshot {name}");
    Some(Failure { verdict, code: code.to_owned(), at: place(case, line), what, message, excerpt: None })
}

/// Holds two runs of a case under one seed against each other.
pub(super) fn compare(case: &ScenarioCase, mut first: CaseResult, second: &CaseResult) -> CaseResult {
    if first.trace == second.trace {
        return first;
    }
    let (mut one, mut other) = (first.trace.lines(), second.trace.lines());
    let mut at = 0;
    let (left, right) = loop {
        match (one.next(), other.next()) {
            (left, right) if left == right && left.is_some() => at += 1,
            (left, right) => break (left.unwrap_or("nothing"), right.unwrap_or("nothing")),
        }
    };
    first.failures.push(Failure {
        verdict: Verdict::Nondeterministic,
        code: "TRACE_DIFFERS".to_owned(),
        at: place(case, 1),
        what: "two runs under one seed to give the same trace".to_owned(),
        message: format!("they part at #{at}\nfirst  {left}\nsecond {right}"),
        excerpt: None,
    });
    first.verdict = Verdict::Nondeterministic;
    first
}
