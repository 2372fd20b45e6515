//! Plays the steps of a case on a running host.
//!
//! Invariant: steps happen in order; between a step's end and the next one's start no time passes. Deliberately no verdict:
//! a step that cannot be done is a failure, the rest of the steps is then not played.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_boundary::CancellationToken;
use greenroom_boundary::trace::Outcome;
use greenroom_mocks::client::ScriptedClient;
use tokio::task::JoinHandle;

use super::Verdict;
use super::clients::Clients;
use super::rig::StageClock;
use crate::expect::{Facts, Judged, Subject, judge};
use crate::host::{HostUnderTest, Leftovers, TurnError, TurnReply, TurnRequest};
use crate::model::{Call, Expectation, Located, Scenario, Send, Step, Where};
use crate::trace::{Sides, TraceLog};

/// A step that could not be done.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    pub(super) verdict: Verdict,
    pub(super) code: &'static str,
    pub(super) line: u32,
    pub(super) what: String,
    pub(super) message: String,
}

/// What an `expect` step found, on the trace as it was then.
pub(super) struct MidRun {
    pub(super) line: u32,
    pub(super) seen: usize,
    pub(super) judged: Vec<Judged>,
}

struct Running {
    name: String,
    line: u32,
    cancel: CancellationToken,
    task: JoinHandle<TurnReply>,
}

/// A host with the steps that happen to it.
pub(super) struct Stage<'s> {
    scenario: &'s Scenario,
    host: Arc<dyn HostUnderTest>,
    clock: StageClock,
    log: TraceLog,
    running: Vec<Running>,
    tokens: BTreeMap<String, CancellationToken>,
    clients: Clients,
    pub(super) replies: BTreeMap<String, TurnReply>,
    pub(super) mid_run: Vec<MidRun>,
}

impl<'s> Stage<'s> {
    pub(super) fn new(
        scenario: &'s Scenario,
        host: Arc<dyn HostUnderTest>,
        clock: StageClock,
        log: TraceLog,
        clients: Vec<ScriptedClient>,
    ) -> Self {
        Self {
            scenario,
            host,
            clock,
            log,
            running: Vec::new(),
            tokens: BTreeMap::new(),
            clients: Clients::new(clients),
            replies: BTreeMap::new(),
            mid_run: Vec::new(),
        }
    }

    /// Plays all steps, then waits for the turns that are still under way.
    pub(super) async fn play(&mut self) -> Result<(), Trouble> {
        for (index, step) in self.scenario.run.iter().enumerate() {
            self.step(index, step).await?;
        }
        while !self.running.is_empty() {
            self.finish(0).await?;
        }
        Ok(())
    }

    async fn step(&mut self, index: usize, step: &Located<Step>) -> Result<(), Trouble> {
        match &step.value {
            Step::Send { send, .. } => {
                self.send(self.scenario.turn_name(index).unwrap_or_default(), step.line, send).await?;
            }
            Step::Call { call, .. } => {
                self.call(self.scenario.turn_name(index).unwrap_or_default(), step.line, call).await?;
            }
            Step::Tell(tell) => {
                let told = self.clients.tell(&self.host, tell).await;
                told.map_err(|message| no_client(step.line, &tell.client, message))?;
            }
            Step::HangUp(client) => self.clients.hang_up(client).await,
            Step::Await { event, within } => {
                let within = within.unwrap_or(self.scenario.limits.r#virtual).to_std();
                self.wait_for(event, within, step.line).await?;
            }
            Step::Advance(duration) => {
                let deadline = self.clock.now().after(duration.to_std());
                self.clock.sleep_until_last(deadline).await;
            }
            Step::Cancel(name) => self.cancel(name, step.line).await?,
            Step::Expect(expectation) => self.look(expectation, step.line).await,
        }
        self.collect().await
    }

    async fn send(&mut self, name: String, line: u32, send: &Send) -> Result<(), Trouble> {
        let turn = TurnRequest {
            id: name.clone(),
            agent: send.assistant.clone(),
            user: send.user.clone(),
            metadata: send.metadata.clone(),
            chat: send.chat.clone(),
        };
        let cancel = CancellationToken::new();
        let (host, token) = (self.host.clone(), cancel.clone());
        let task = tokio::spawn(async move { host.turn(turn, &token).await });
        self.begun(Running { name, line, cancel, task }, send.wait).await
    }

    async fn call(&mut self, name: String, line: u32, call: &Call) -> Result<(), Trouble> {
        let cancel = CancellationToken::new();
        let begun = self.clients.call(&self.host, call, cancel.clone()).await;
        let task = begun.map_err(|message| no_client(line, &call.client, message))?;
        self.begun(Running { name, line, cancel, task }, call.wait).await
    }

    async fn begun(&mut self, running: Running, wait: bool) -> Result<(), Trouble> {
        self.tokens.insert(running.name.clone(), running.cancel.clone());
        self.running.push(running);
        if wait {
            return self.finish(self.running.len() - 1).await;
        }
        // The turn has begun when the next step starts.
        tokio::task::yield_now().await;
        Ok(())
    }

    /// Waits for the end of a turn.
    async fn finish(&mut self, index: usize) -> Result<(), Trouble> {
        let Some(running) = self.running.get_mut(index) else { return Ok(()) };
        let ended = (&mut running.task).await;
        let running = self.running.remove(index);
        match ended {
            Ok(reply) => {
                self.replies.insert(running.name, reply);
                Ok(())
            }
            Err(error) => {
                let error = TurnError { code: "HOST_PANICKED".to_owned(), message: error.to_string() };
                let message = format!("the host panicked in turn {}: {}", running.name, error.message);
                let reply = TurnReply {
                    outcome: Outcome::Error,
                    text: String::new(),
                    data: serde_json::Value::Null,
                    error: Some(error),
                };
                self.replies.insert(running.name.clone(), reply);
                let what = format!("turn {} to end", running.name);
                Err(Trouble { verdict: Verdict::Error, code: "HOST_PANICKED", line: running.line, what, message })
            }
        }
    }

    /// Takes the replies of turns that have ended meanwhile.
    async fn collect(&mut self) -> Result<(), Trouble> {
        while let Some(index) = self.running.iter().position(|running| running.task.is_finished()) {
            self.finish(index).await?;
        }
        Ok(())
    }

    async fn wait_for(&self, event: &Where, within: std::time::Duration, line: u32) -> Result<(), Trouble> {
        let deadline = self.clock.now().after(within);
        let happened = self.log.wait_until(|events| !event.positions(events, Sides::Start).is_empty());
        tokio::select! {
            biased;
            () = happened => Ok(()),
            () = self.clock.sleep_until_last(deadline) => Err(Trouble {
                verdict: Verdict::Fail,
                code: "AWAIT_TIMEOUT",
                line,
                what: format!("await {} within {}", event.describe(), crate::report::seconds(within.as_nanos() as u64)),
                message: "it did not happen".to_owned(),
            }),
        }
    }

    async fn cancel(&mut self, name: &str, line: u32) -> Result<(), Trouble> {
        let Some(token) = self.tokens.get(name) else {
            let known: Vec<_> = self.tokens.keys().cloned().collect();
            return Err(Trouble {
                verdict: Verdict::Error,
                code: "CANCEL_UNKNOWN",
                line,
                what: format!("cancel {name}"),
                message: format!("no turn of that name has been started; there are: {}", known.join(", ")),
            });
        };
        token.cancel();
        self.clock.settle().await;
        Ok(())
    }

    async fn look(&mut self, expectation: &Expectation, line: u32) {
        self.clock.settle().await;
        // A turn may have ended just now; its trouble, if any, is told by the step's own collecting.
        let _ = self.collect().await;
        let events = self.log.events();
        let facts = Facts::default();
        let subject = Subject { scenario: self.scenario, events: &events, replies: &self.replies, facts: &facts, over: false };
        let judged = judge(expectation, subject);
        self.mid_run.push(MidRun { line, seen: events.len(), judged });
    }

    pub(super) async fn shut_down(&mut self) -> Leftovers {
        self.clients.hang_up_all().await;
        self.host.shutdown().await
    }

    /// Cancels what is still under way, so that a host can be shut down after trouble.
    pub(super) fn give_up(&mut self) -> Vec<String> {
        let names = self.running.iter().map(|running| running.name.clone()).collect();
        for running in self.running.drain(..) {
            running.cancel.cancel();
            drop(running.task);
        }
        names
    }
}

fn no_client(line: u32, client: &str, message: String) -> Trouble {
    let what = format!("the client {client} to reach the host");
    Trouble { verdict: Verdict::Error, code: "CLIENT_UNSERVED", line, what, message }
}
