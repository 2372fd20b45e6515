//! A search that answers as its script says.
//!
//! Invariant: it obeys limits and cancellation like a real one, and each answer is given as often as foreseen. Deliberately no
//! fallback to another answer.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use greenroom_boundary::clock::sleep;
use greenroom_boundary::search::{SearchAnswer, SearchError, SearchQuery};
use greenroom_boundary::{CancellationToken, Clock, Search};
use serde_json::{Value, json};

use super::script::{ScriptedAnswer, SearchScript};

/// A search that answers as its script says. Clones share it.
#[derive(Clone)]
pub struct ScriptedSearch(Arc<Shared>);

struct Shared {
    answers: Vec<ScriptedAnswer>,
    clock: Arc<dyn Clock>,
    used: Mutex<Vec<u32>>,
}

impl fmt::Debug for ScriptedSearch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptedSearch({} answers)", self.0.answers.len())
    }
}

impl ScriptedSearch {
    /// A search that waits on `clock`.
    pub fn new(script: SearchScript, clock: Arc<dyn Clock>) -> Self {
        let used = Mutex::new(vec![0; script.0.len()]);
        Self(Arc::new(Shared { answers: script.0, clock, used }))
    }

    /// The scripted answers that were not given as often as foreseen, in words.
    pub fn unused(&self) -> Vec<String> {
        let used = self.0.used.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = self.0.answers.iter().zip(used.iter()).enumerate();
        answers
            .filter(|(_, (answer, used))| **used < answer.repeat)
            .map(|(index, (answer, used))| {
                let when = answer.when.as_ref().map_or(&Value::Null, |when| when.as_value());
                format!("answers[{index}] (when {when}) was given {used} of {} times", answer.repeat)
            })
            .collect()
    }

    fn take(&self, query: &SearchQuery) -> Result<&ScriptedAnswer, String> {
        let asked = json!(query);
        let mut used = self.0.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reasons = Vec::new();
        for (index, answer) in self.0.answers.iter().enumerate() {
            match answer.when.as_ref().map(|when| when.matches(Some(&asked))) {
                Some(Err(mismatch)) => reasons.push(format!("answers[{index}]: {mismatch}")),
                None | Some(Ok(())) if used[index] >= answer.repeat => reasons.push(format!("answers[{index}] is used up")),
                None | Some(Ok(())) => {
                    used[index] += 1;
                    return Ok(answer);
                }
            }
        }
        if reasons.is_empty() {
            reasons.push("the script has no answers".to_owned());
        }
        Err(format!("unscripted search {asked}; {}", reasons.join("; ")))
    }
}

#[async_trait]
impl Search for ScriptedSearch {
    async fn search(&self, query: SearchQuery, cancel: &CancellationToken) -> Result<SearchAnswer, SearchError> {
        if cancel.is_cancelled() {
            return Err(SearchError::Cancelled);
        }
        let kind = query.kind.name();
        let answer = self.take(&query).map_err(|message| SearchError::Denied { kind, message })?;
        tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(SearchError::Cancelled),
            () = sleep(self.0.clock.as_ref(), answer.after.to_std()) => {}
        }
        if let Some(message) = &answer.error {
            return Err(SearchError::Unavailable { kind, message: message.clone() });
        }
        let all = answer.results.len() as u64;
        let hits = answer.results.iter().take(query.limit).cloned().collect();
        Ok(SearchAnswer { hits, total: answer.total.unwrap_or(all).max(all) })
    }
}
