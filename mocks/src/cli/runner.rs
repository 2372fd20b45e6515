//! The scripted runner, and the one that refuses everything.
//!
//! Invariant: a stream ends exactly once, with an exit or an error, and obeys cancellation and limits like a real run.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::StreamExt;
use greenroom_boundary::cli::{CliError, CliEvent, CliExit, CliStream, CommandSpec};
use greenroom_boundary::clock::MonoNanos;
use greenroom_boundary::{CancellationToken, CliRunner, Clock};
use serde_json::{Value, json};

use super::script::{CliEnd, CliFailure, CliOutput, CliRun, CliScript, CliWhen};

/// Runs that behave as their script says.
#[derive(Clone)]
pub struct ScriptedCli(Arc<Shared>);

struct Shared {
    runs: Vec<CliRun>,
    clock: Arc<dyn Clock>,
    used: Mutex<Vec<u32>>,
}

impl fmt::Debug for ScriptedCli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptedCli({} runs)", self.0.runs.len())
    }
}

impl ScriptedCli {
    /// A runner that waits on `clock`.
    pub fn new(script: CliScript, clock: Arc<dyn Clock>) -> Self {
        let used = Mutex::new(vec![0; script.0.len()]);
        Self(Arc::new(Shared { runs: script.0, clock, used }))
    }

    /// The scripted runs that did not come as often as foreseen, in words; empty if the script is fully consumed.
    pub fn unused(&self) -> Vec<String> {
        let used = self.0.used.lock().unwrap_or_else(PoisonError::into_inner);
        let runs = self.0.runs.iter().zip(used.iter()).enumerate();
        runs.filter(|(_, (run, used))| **used < run.repeat)
            .map(|(index, (run, used))| {
                let argv = run.when.argv.as_value();
                format!("runs[{index}] (argv {argv}) came {used} of {} times", run.repeat)
            })
            .collect()
    }
}

impl Shared {
    fn take(&self, command: &CommandSpec) -> Result<&CliRun, String> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reasons = Vec::new();
        for (index, run) in self.runs.iter().enumerate() {
            match mismatch(&run.when, command) {
                Some(reason) => reasons.push(format!("runs[{index}]: {reason}")),
                None if used[index] >= run.repeat => reasons.push(format!("runs[{index}] is used up")),
                None => {
                    used[index] += 1;
                    return Ok(run);
                }
            }
        }
        if reasons.is_empty() {
            reasons.push("the script has no runs".to_owned());
        }
        Err(format!("unscripted command {}; {}", json!(command.argv), reasons.join("; ")))
    }
}

fn mismatch(when: &CliWhen, command: &CommandSpec) -> Option<String> {
    let (argv, stdin, env) = (json!(command.argv), Value::from(command.stdin.as_str()), json!(command.env));
    let parts = [(Some(&when.argv), &argv, "argv"), (when.stdin.as_ref(), &stdin, "stdin"), (when.env.as_ref(), &env, "env")];
    parts.into_iter().find_map(|(pattern, value, what)| {
        let mismatch = pattern?.matches(Some(value)).err()?;
        Some(format!("{what}: {mismatch}"))
    })
}

fn program(command: &CommandSpec) -> String {
    command.argv.first().cloned().unwrap_or_default()
}

#[async_trait]
impl CliRunner for ScriptedCli {
    async fn run(&self, command: CommandSpec, cancel: &CancellationToken) -> Result<CliStream, CliError> {
        let program = program(&command);
        if cancel.is_cancelled() {
            return Err(CliError::Cancelled { program });
        }
        let run = match self.0.take(&command) {
            Ok(run) => run.clone(),
            Err(message) => return Err(CliError::Denied { program, message }),
        };
        if let CliEnd::Error(CliFailure::Start(message)) = run.end {
            return Err(CliError::Start { program, message });
        }
        let start = self.0.clock.now();
        let playback = Playback {
            program,
            clock: self.0.clock.clone(),
            cancel: cancel.clone(),
            start,
            deadline: start.after(command.limits.wall),
            wall_ms: u64::try_from(command.limits.wall.as_millis()).unwrap_or(u64::MAX),
            room_bytes: command.limits.output_bytes,
            limit_bytes: command.limits.output_bytes,
            events: run.events.into(),
            end: Some(run.end),
        };
        Ok(futures::stream::unfold(playback, Playback::step).boxed())
    }
}

/// A run that is being played.
struct Playback {
    program: String,
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
    start: MonoNanos,
    deadline: MonoNanos,
    wall_ms: u64,
    room_bytes: usize,
    limit_bytes: usize,
    events: VecDeque<CliOutput>,
    /// `None` once the end was said.
    end: Option<CliEnd>,
}

impl Playback {
    async fn step(mut self) -> Option<(Result<CliEvent, CliError>, Self)> {
        self.end.as_ref()?;
        let event = self.events.pop_front();
        let due = match (&event, &self.end) {
            (Some(event), _) => self.start.after(event.after.to_std()),
            (None, Some(CliEnd::Hang)) => MonoNanos(u64::MAX),
            (None, _) => self.start,
        };
        let item = match self.wait(due).await {
            Err(error) => Err(error),
            Ok(()) => match event {
                Some(event) => self.output(event),
                None => Ok(CliEvent::Exit(match self.end {
                    Some(CliEnd::Signal(signal)) => CliExit::Signal(signal),
                    Some(CliEnd::Exit(code)) => CliExit::Code(code),
                    // A start failure never gets here, and a hang never gets past the wait.
                    _ => CliExit::Code(-1),
                })),
            },
        };
        if !matches!(item, Ok(CliEvent::Stdout(_) | CliEvent::Stderr(_))) {
            self.end = None;
        }
        Some((item, self))
    }

    /// Waits until `due`, unless the run is cancelled or over its time before.
    async fn wait(&self, due: MonoNanos) -> Result<(), CliError> {
        let (wakes, late) = if due <= self.deadline { (due, false) } else { (self.deadline, true) };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => return Err(CliError::Cancelled { program: self.program.clone() }),
            () = self.clock.sleep_until(wakes) => {}
        }
        if late {
            return Err(CliError::Timeout { program: self.program.clone(), limit_ms: self.wall_ms });
        }
        Ok(())
    }

    fn output(&mut self, event: CliOutput) -> Result<CliEvent, CliError> {
        let (make, text): (fn(bytes::Bytes) -> CliEvent, String) = match (event.stdout, event.stderr) {
            (Some(text), _) => (CliEvent::Stdout, text),
            (None, text) => (CliEvent::Stderr, text.unwrap_or_default()),
        };
        match self.room_bytes.checked_sub(text.len()) {
            Some(room) => {
                self.room_bytes = room;
                Ok(make(text.into()))
            }
            None => Err(CliError::OutputLimit { program: self.program.clone(), limit_bytes: self.limit_bytes }),
        }
    }
}

/// Refuses every command.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyCli;

#[async_trait]
impl CliRunner for DenyCli {
    async fn run(&self, command: CommandSpec, _: &CancellationToken) -> Result<CliStream, CliError> {
        let program = program(&command);
        let message = format!("running {program} is denied here: list `cli.NAME` under `drivers`");
        Err(CliError::Denied { program, message })
    }
}
