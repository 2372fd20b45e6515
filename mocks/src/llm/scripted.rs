//! The scripted model.
//!
//! Invariant: a turn is used up the moment it matches, so each request of a run has one turn and each turn its number of
//! requests. Deliberately nothing between turns: no memory of the conversation but the ids of its own calls.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use futures::future::{Either, select};
use greenroom_boundary::clock::MonoNanos;
use greenroom_boundary::llm::{LlmCapabilities, LlmError, LlmEvent, LlmRequest, LlmStream};
use greenroom_boundary::{CancellationToken, Clock, Llm};

use super::chunks::{TimedEvent, timed_events};
use super::matching::RequestView;
use super::script::{LlmReply, LlmScript, ScriptedError};
use crate::SeededEntropy;

/// Longest "what differs" line of an error, in characters.
const DIFFERENCE_CHARS: usize = 400;
/// Most unused turns that an error lists.
const LISTED_TURNS: usize = 12;

/// A model that says what a script says.
pub struct ScriptedLlm {
    connector: String,
    script: LlmScript,
    clock: Arc<dyn Clock>,
    entropy: SeededEntropy,
    progress: Mutex<Progress>,
}

#[derive(Default)]
struct Progress {
    /// Uses so far, by turn.
    used: Vec<u32>,
    /// Which scripted call an id belongs to.
    aliases: BTreeMap<String, String>,
    /// Ids made so far, by alias.
    minted: BTreeMap<String, u32>,
}

struct Chosen {
    reply: LlmReply,
    call_ids: Vec<String>,
    label: String,
}

impl ScriptedLlm {
    /// A model that plays `script` for the connector `connector`. Chunk borders depend on the seed of `entropy`, the
    /// connector, the turn and its use alone.
    pub fn new(connector: impl Into<String>, script: LlmScript, clock: Arc<dyn Clock>, entropy: &SeededEntropy) -> Self {
        let connector = connector.into();
        let entropy = entropy.derive(&format!("llm.{connector}"));
        let progress = Progress { used: vec![0; script.0.len()], ..Progress::default() };
        Self { connector, script, clock, entropy, progress: Mutex::new(progress) }
    }

    /// The turns that were not used as often as the script says: `answer`, or `answer (1 of 3 uses left)`.
    pub fn unused(&self) -> Vec<String> {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let turns = self.script.0.iter().zip(&progress.used);
        turns
            .filter_map(|(turn, used)| {
                let uses = turn.repeat.map_or(1, u32::from);
                match uses.saturating_sub(*used) {
                    0 => None,
                    _ if uses == 1 => Some(turn.id.clone()),
                    left => Some(format!("{} ({left} of {uses} uses left)", turn.id)),
                }
            })
            .collect()
    }

    fn choose(&self, request: &LlmRequest) -> Result<Chosen, LlmError> {
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let view = RequestView::new(request, &progress.aliases);
        let mut nearest: Option<(usize, usize)> = None;
        for (index, turn) in self.script.0.iter().enumerate() {
            if progress.used[index] >= turn.repeat.map_or(1, u32::from) {
                continue;
            }
            let distance = view.distance(&turn.when);
            if distance.first_difference.is_none() {
                progress.used[index] += 1;
                let label = format!("{}/{}", turn.id, progress.used[index]);
                let call_ids = turn.reply.tool_calls.iter().map(|call| progress.mint(call.alias())).collect();
                return Ok(Chosen { reply: turn.reply.clone(), call_ids, label });
            }
            if nearest.is_none_or(|(_, matching)| distance.matching_fields > matching) {
                nearest = Some((index, distance.matching_fields));
            }
        }
        drop(progress);
        let message = self.no_turn(request, &view, nearest.map(|(index, _)| index));
        Err(LlmError::Unavailable { connector: self.connector.clone(), message })
    }

    /// At most five lines: what was asked, what is left, and why the nearest turn does not fit.
    fn no_turn(&self, request: &LlmRequest, view: &RequestView, nearest: Option<usize>) -> String {
        let agent = request.agent.as_deref().map(|agent| format!("agent: {agent}, ")).unwrap_or_default();
        let (messages, tools) = (request.messages.len(), request.tools.len());
        let mut text =
            format!("llm.{}: no scripted turn fits this request ({agent}messages: {messages}, tools: {tools})", self.connector);
        let Some(nearest) = nearest.map(|index| &self.script.0[index]) else {
            text += "\n  every turn of the script has been used; add a turn, or `repeat: N` to one";
            return text;
        };
        let mut left = self.unused();
        let more = left.len().saturating_sub(LISTED_TURNS);
        left.truncate(LISTED_TURNS);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        text += &format!("\n  turns left: {}{more}\n  nearest: {}", left.join(", "), nearest.id);
        if let Some((field, mismatch)) = view.distance(&nearest.when).first_difference {
            let difference = format!("when/{field}{}: expected {}, found {}", mismatch.path, mismatch.expected, mismatch.found);
            text += &format!("\n    {}", one_line(&difference));
        }
        text
    }

    fn status(&self, error: &ScriptedError) -> LlmError {
        LlmError::Status {
            connector: self.connector.clone(),
            status: error.status,
            message: error.message.clone(),
            retry_after_ms: error.retry_after.map(|after| u64::try_from(after.to_std().as_millis()).unwrap_or(u64::MAX)),
        }
    }
}

impl Progress {
    /// A fresh id for the call `alias`: `call_oslo`, then `call_oslo_2`, …
    fn mint(&mut self, alias: &str) -> String {
        let count = self.minted.entry(alias.to_owned()).or_default();
        *count += 1;
        let id = if *count == 1 { format!("call_{alias}") } else { format!("call_{alias}_{count}") };
        self.aliases.insert(id.clone(), alias.to_owned());
        id
    }
}

impl fmt::Debug for ScriptedLlm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptedLlm({}, {} turns)", self.connector, self.script.0.len())
    }
}

#[async_trait]
impl Llm for ScriptedLlm {
    fn capabilities(&self) -> LlmCapabilities {
        LlmCapabilities { tools: true, streaming: true }
    }

    async fn stream(&self, request: LlmRequest, cancel: &CancellationToken) -> Result<LlmStream, LlmError> {
        let Chosen { reply, call_ids, label } = self.choose(&request)?;
        let (events, end) = timed_events(&reply, &call_ids, &self.entropy.derive(&label));
        let started = self.clock.now();
        let wait = Wait { clock: self.clock.clone(), cancel: cancel.clone(), connector: self.connector.clone(), started };
        let error = reply.error.as_ref().map(|error| self.status(error));
        if let Some(error) = error.clone()
            && events.is_empty()
        {
            wait.until(end).await?;
            return Err(error);
        }
        let last = match (error, reply.cut) {
            (Some(error), _) => Err(error),
            (None, true) => Err(LlmError::Truncated { connector: self.connector.clone() }),
            (None, false) => Ok(LlmEvent::Finish { reason: finish_reason(&reply) }),
        };
        Ok(play(events, end, last, wait))
    }
}

fn finish_reason(reply: &LlmReply) -> String {
    let default = if reply.tool_calls.is_empty() { "stop" } else { "tool_calls" };
    reply.finish.clone().unwrap_or_else(|| default.to_owned())
}

fn play(events: Vec<TimedEvent>, end: Duration, last: Result<LlmEvent, LlmError>, wait: Wait) -> LlmStream {
    let pieces = events.into_iter().map(|piece| (piece.after, Ok(piece.event)));
    let steps = pieces.chain(std::iter::once((end, last)));
    let state = Some((steps, wait));
    futures::stream::unfold(state, |state| async move {
        let (mut steps, wait) = state?;
        let (after, event) = steps.next()?;
        match wait.until(after).await {
            Ok(()) if event.is_ok() => Some((event, Some((steps, wait)))),
            Ok(()) => Some((event, None)),
            Err(cancelled) => Some((Err(cancelled), None)),
        }
    })
    .boxed()
}

struct Wait {
    clock: Arc<dyn Clock>,
    cancel: CancellationToken,
    connector: String,
    started: MonoNanos,
}

impl Wait {
    /// Waits until `after` has passed since the request; a cancellation comes first.
    async fn until(&self, after: Duration) -> Result<(), LlmError> {
        let cancelled = || Err(LlmError::Cancelled { connector: self.connector.clone() });
        if self.cancel.is_cancelled() {
            return cancelled();
        }
        let deadline = self.started.after(after);
        if deadline <= self.clock.now() {
            return Ok(());
        }
        match select(std::pin::pin!(self.cancel.cancelled()), self.clock.sleep_until(deadline)).await {
            Either::Left(_) => cancelled(),
            Either::Right(_) => Ok(()),
        }
    }
}

fn one_line(text: &str) -> String {
    let line = text.replace('\n', "⏎");
    match line.char_indices().nth(DIFFERENCE_CHARS) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}
